"""``mindspore.dataset``: rows for training from arrays, files and the script's own sources."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.dataset import config, samplers, transforms, vision
from dumpsim.frontends.mindspore.dataset.engine import BatchInfo, ConcatDataset, Dataset, zip
from dumpsim.frontends.mindspore.dataset.files import Cifar10Dataset, FashionMnistDataset, MnistDataset
from dumpsim.frontends.mindspore.dataset.samplers import (
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    SubsetSampler,
    WeightedRandomSampler,
)
from dumpsim.frontends.mindspore.dataset.sources import GeneratorDataset, NumpySlicesDataset

__all__ = [
    "BatchInfo",
    "Cifar10Dataset",
    "ConcatDataset",
    "Dataset",
    "DistributedSampler",
    "FashionMnistDataset",
    "GeneratorDataset",
    "MnistDataset",
    "NumpySlicesDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "SubsetSampler",
    "WeightedRandomSampler",
    "config",
    "samplers",
    "transforms",
    "vision",
    "zip",
]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.dataset", name)
