"""``mindspore.dataset``: rows for training, from arrays and from the script's own sources."""

from typing import Any

from dumpsim.frontends.mindspore._absent import absent
from dumpsim.frontends.mindspore.dataset import config, transforms
from dumpsim.frontends.mindspore.dataset.engine import Dataset, zip
from dumpsim.frontends.mindspore.dataset.sources import GeneratorDataset, NumpySlicesDataset

__all__ = ["Dataset", "GeneratorDataset", "NumpySlicesDataset", "config", "transforms", "zip"]


def __getattr__(name: str) -> Any:
    raise absent("mindspore.dataset", name)
