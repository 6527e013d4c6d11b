"""LeNet-5 on handwritten digits, in graph mode.

    MS_DIAGNOSTIC_DATA_PATH=/some/dir dumpsim run --config lenet.json lenet.py

The digits are the test set of UCI's "Optical Recognition of Handwritten Digits" (E. Alpaydin, C. Kaynak, 1998): 1797
pictures of 8x8 pixels with 17 grey levels, enlarged here to the 32x32 that LeNet-5 takes.
"""

from pathlib import Path

import numpy as np

import mindspore as ms
from mindspore import Model, Tensor, context, nn
from mindspore import dataset as ds
from mindspore.common.initializer import Normal
from mindspore.train import LossMonitor

EPOCHS = 4
BATCH = 32
TEST_SAMPLES = 297


class LeNet5(nn.Cell):
    """The network of LeCun et al., 1998, with ReLU and max pooling."""

    def __init__(self, num_class=10, num_channel=1):
        super().__init__()
        self.conv1 = nn.Conv2d(num_channel, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.relu = nn.ReLU()
        self.max_pool2d = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(16 * 5 * 5, 120, weight_init=Normal(0.05))
        self.fc2 = nn.Dense(120, 84, weight_init=Normal(0.05))
        self.fc3 = nn.Dense(84, num_class, weight_init=Normal(0.05))

    def construct(self, x):
        x = self.max_pool2d(self.relu(self.conv1(x)))
        x = self.max_pool2d(self.relu(self.conv2(x)))
        x = self.flatten(x)
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


class Digits:
    """Pictures (1, 32, 32) of float32 in 0..1 with their labels."""

    def __init__(self, first, last):
        with np.load(Path(__file__).with_name("digits.npz")) as data:
            images, labels = data["images"][first:last], data["labels"][first:last]
        images = images.astype(np.float32)[:, None] / 16
        self.images = images.repeat(4, axis=2).repeat(4, axis=3)
        self.labels = labels.astype(np.int32)

    def __getitem__(self, index):
        return self.images[index], np.array(self.labels[index])

    def __len__(self):
        return len(self.labels)


def main():
    """Train, then test."""
    context.set_context(mode=context.GRAPH_MODE)
    ms.set_seed(1)
    train = ds.GeneratorDataset(Digits(0, -TEST_SAMPLES), ["image", "label"], shuffle=True)
    train = train.batch(BATCH, drop_remainder=True)

    net = LeNet5()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.03, momentum=0.9)
    model = Model(net, loss, optimizer)
    model.train(EPOCHS, train, callbacks=LossMonitor(46), dataset_sink_mode=False)

    test = Digits(-TEST_SAMPLES, None)
    net.set_train(False)
    scores = net(Tensor(test.images)).asnumpy()
    accuracy = (scores.argmax(axis=1) == test.labels).mean()
    print(f"accuracy on {TEST_SAMPLES} pictures that it never saw: {accuracy:.3f}")


if __name__ == "__main__":
    main()
