"""Three training steps of AlexNet on random pictures.

    dumpsim run --config alexnet.json alexnet.py [--narrow N] [--batch N] [--steps N] [--jit-level O0|O1|O2]

`--narrow 16` leaves a sixteenth of the channels, for machines that have little time.
"""

import argparse

import numpy as np

import mindspore as ms
from mindspore import Tensor, context, nn
from mindspore.common.initializer import TruncatedNormal


def conv(in_channels, out_channels, kernel_size, stride=1, pad_mode="same"):
    """A convolution without bias."""
    return nn.Conv2d(
        in_channels,
        out_channels,
        kernel_size,
        stride=stride,
        pad_mode=pad_mode,
        weight_init=TruncatedNormal(0.02),
        has_bias=False,
    )


def dense(in_channels, out_channels):
    """A fully connected layer."""
    return nn.Dense(in_channels, out_channels, TruncatedNormal(0.02), TruncatedNormal(0.02))


class AlexNet(nn.Cell):
    """The network of Krizhevsky et al., 2012, on one device."""

    def __init__(self, num_classes=10, channel=3, narrow=1):
        super().__init__()
        c1, c2, c3, c5, hidden = (width // narrow for width in (96, 256, 384, 256, 4096))
        self.conv1 = conv(channel, c1, 11, stride=4, pad_mode="valid")
        self.conv2 = conv(c1, c2, 5)
        self.conv3 = conv(c2, c3, 3)
        self.conv4 = conv(c3, c3, 3)
        self.conv5 = conv(c3, c5, 3)
        self.relu = nn.ReLU()
        self.max_pool2d = nn.MaxPool2d(kernel_size=3, stride=2)
        self.flatten = nn.Flatten()
        self.fc1 = dense(6 * 6 * c5, hidden)
        self.fc2 = dense(hidden, hidden)
        self.fc3 = dense(hidden, num_classes)

    def construct(self, x):
        x = self.conv1(x)
        x = self.relu(x)
        x = self.max_pool2d(x)
        x = self.conv2(x)
        x = self.relu(x)
        x = self.max_pool2d(x)
        x = self.conv3(x)
        x = self.relu(x)
        x = self.conv4(x)
        x = self.relu(x)
        x = self.conv5(x)
        x = self.relu(x)
        x = self.max_pool2d(x)
        x = self.flatten(x)
        x = self.fc1(x)
        x = self.relu(x)
        x = self.fc2(x)
        x = self.relu(x)
        return self.fc3(x)


def main():
    """Train for a few steps and print the losses."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--narrow", type=int, default=1)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--jit-level", default="O0", choices=("O0", "O1", "O2"))
    options = parser.parse_args()

    context.set_context(mode=context.GRAPH_MODE, jit_level=options.jit_level)
    ms.set_seed(1)
    net = AlexNet(narrow=options.narrow)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.01, momentum=0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
    step.set_train()
    random = np.random.default_rng(0)
    images = Tensor(random.normal(size=(options.batch, 3, 227, 227)).astype(np.float32))
    labels = Tensor(random.integers(0, 10, options.batch).astype(np.int32))
    for number in range(options.steps):
        print(f"step {number}: loss {float(step(images, labels).asnumpy()):.4f}")


if __name__ == "__main__":
    main()
