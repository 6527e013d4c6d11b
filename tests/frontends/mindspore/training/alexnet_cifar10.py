"""Trains AlexNet on files of CIFAR-10, with the calls of MindSpore's published samples; a user's script, not a test."""

import argparse

import mindspore as ms
import mindspore.dataset as ds
import mindspore.dataset.transforms as transforms
import mindspore.dataset.vision as vision
from mindspore import nn
from mindspore.common.initializer import TruncatedNormal
from mindspore.dataset.vision import Inter
from mindspore.train import CheckpointConfig, LossMonitor, Model, ModelCheckpoint, TimeMonitor

parser = argparse.ArgumentParser()
parser.add_argument("--data_path", required=True)
parser.add_argument("--device_target", default="Ascend", choices=["Ascend", "GPU", "CPU"])
parser.add_argument("--narrow", type=int, default=1)
args = parser.parse_args()


def create_dataset_cifar10(data_path, batch_size=2, repeat_size=1, status="train"):
    cifar = ds.Cifar10Dataset(data_path)
    operations = [
        vision.Resize(size=(227, 227), interpolation=Inter.LINEAR),
        vision.Rescale(1.0 / 255.0, 0.0),
        vision.Normalize((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
        vision.HWC2CHW(),
    ]
    if status == "train":
        operations = [vision.RandomCrop([32, 32], [4, 4, 4, 4]), vision.RandomHorizontalFlip(), *operations]
    cifar = cifar.map(input_columns="label", operations=transforms.TypeCast(ms.int32))
    cifar = cifar.map(input_columns="image", operations=operations)
    cifar = cifar.shuffle(buffer_size=1000)
    cifar = cifar.batch(batch_size, drop_remainder=True)
    return cifar.repeat(repeat_size)


def conv(in_channels, out_channels, kernel_size, stride=1, padding=0, pad_mode="valid"):
    return nn.Conv2d(
        in_channels,
        out_channels,
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        weight_init=TruncatedNormal(0.02),
        has_bias=False,
        pad_mode=pad_mode,
    )


def dense(inputs, outputs):
    return nn.Dense(inputs, outputs, TruncatedNormal(0.02), TruncatedNormal(0.02))


class AlexNet(nn.Cell):
    def __init__(self, num_classes=10, channel=3):
        super().__init__()
        first, second, third, last, hidden = (width // args.narrow for width in (96, 256, 384, 256, 4096))
        self.conv1 = conv(channel, first, 11, stride=4)
        self.conv2 = conv(first, second, 5, pad_mode="same")
        self.conv3 = conv(second, third, 3, pad_mode="same")
        self.conv4 = conv(third, third, 3, pad_mode="same")
        self.conv5 = conv(third, last, 3, pad_mode="same")
        self.relu = nn.ReLU()
        self.max_pool2d = nn.MaxPool2d(kernel_size=3, stride=2)
        self.flatten = nn.Flatten()
        self.fc1 = dense(6 * 6 * last, hidden)
        self.fc2 = dense(hidden, hidden)
        self.fc3 = dense(hidden, num_classes)

    def construct(self, x):
        x = self.max_pool2d(self.relu(self.conv1(x)))
        x = self.max_pool2d(self.relu(self.conv2(x)))
        x = self.relu(self.conv3(x))
        x = self.relu(self.conv4(x))
        x = self.max_pool2d(self.relu(self.conv5(x)))
        x = self.flatten(x)
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


if __name__ == "__main__":
    ms.set_context(mode=ms.GRAPH_MODE, device_target=args.device_target)
    ms.set_seed(1)
    data = create_dataset_cifar10(args.data_path)
    network = AlexNet()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    rates = ms.Tensor([0.002] * data.get_dataset_size(), ms.float32)
    optimizer = nn.Momentum(network.trainable_params(), learning_rate=rates, momentum=0.9)
    model = Model(network, loss, optimizer, metrics={"Accuracy": nn.Accuracy()})
    saving = ModelCheckpoint("alexnet", config=CheckpointConfig(save_checkpoint_steps=5, keep_checkpoint_max=1))
    model.train(1, data, callbacks=[TimeMonitor(), saving, LossMonitor()], dataset_sink_mode=False)
