"""Data sets in their published file formats: MNIST and CIFAR-10."""

import struct
from pathlib import Path
from typing import Any

import numpy as np

from dumpsim.core.errors import ScriptRuntimeError, ScriptValueError
from dumpsim.frontends.mindspore.dataset.engine import Row, refuse_options
from dumpsim.frontends.mindspore.dataset.sources import Source

__all__ = ["Cifar10Dataset", "FashionMnistDataset", "MnistDataset"]

_IMAGES, _LABELS = 2051, 2049  # magic numbers of MNIST files
_CIFAR_ROW = 1 + 3 * 32 * 32


def _usage(usage: str | None, owner: str) -> tuple[str, ...]:
    parts = ("train", "test")
    if usage is not None and usage not in (*parts, "all"):
        raise ScriptValueError(f"usage is not within the valid set of {['all', *parts]}, but got {usage}.", where=owner)
    return parts if usage in (None, "all") else (str(usage),)


def _directory(path: Any) -> Path:
    found = Path(path)
    if not found.is_dir():
        raise ScriptValueError(f"The folder {path} does not exist or is not a directory or permission denied!")
    return found


def _idx(path: Path, magic: int) -> "np.ndarray[Any, Any]":
    """Read the array in a file of MNIST, and check its header."""
    data = path.read_bytes()
    axes = magic % 256
    size = 4 + 4 * axes
    if len(data) < size or struct.unpack(">I", data[:4])[0] != magic:
        raise ScriptRuntimeError(f"the file does not start with the magic number {magic}", where=str(path))
    shape = struct.unpack(f">{axes}I", data[4:size])
    if len(data) - size != int(np.prod(shape)):
        raise ScriptRuntimeError(f"the file has {len(data) - size} bytes of data for shape {shape}", where=str(path))
    return np.frombuffer(data, np.uint8, offset=size).reshape(shape)


class _Images(Source):
    """Images and labels in memory."""

    def __init__(
        self, images: Any, labels: Any, *, shuffle: bool | None, sampler: Any, num_samples: int | None,
        num_shards: int | None, shard_id: int | None,
    ) -> None:  # fmt: skip
        self.images, self.labels = images, labels
        super().__init__(
            ["image", "label"], shuffle=shuffle is not False, num_samples=num_samples, num_shards=num_shards,
            shard_id=shard_id, sampler=sampler, shuffle_given=shuffle is not None,
        )  # fmt: skip

    def row(self, number: int) -> Row:
        return self.images[number], self.labels[number]

    def count(self) -> int:
        return len(self.images)


class MnistDataset(_Images):
    """The digits of MNIST: images of shape (28, 28, 1) and labels.

    Parameters
    ----------
    dataset_dir : str
        Directory with ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte`` and the same with ``t10k``.
    usage : {"train", "test", "all"}, optional
    num_samples : int, optional
    shuffle : bool, optional
        Shuffle; None means True.
    sampler : Sampler, optional
    num_shards, shard_id : int, optional

    Raises
    ------
    ScriptValueError, ScriptRuntimeError
        For a missing directory, missing files or files of another format.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     stem = f"{folder}/train"
    ...     _ = Path(f"{stem}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 2051, 1, 28, 28) + bytes(28 * 28))
    ...     _ = Path(f"{stem}-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 2049, 1) + bytes([7]))
    ...     MnistDataset(folder, "train").get_dataset_size()
    1
    """

    def __init__(
        self,
        dataset_dir: Any,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        owner = type(self).__name__
        refuse_options(owner, {"cache": cache}, absent=("cache",))
        directory = _directory(dataset_dir)
        images, labels = [], []
        for part in _usage(usage, owner):
            stem = "train" if part == "train" else "t10k"
            files = [directory / f"{stem}-images-idx3-ubyte", directory / f"{stem}-labels-idx1-ubyte"]
            if not all(path.is_file() for path in files):
                if usage in (None, "all"):
                    continue
                raise ScriptRuntimeError(f"missing files {[path.name for path in files]}", where=owner)
            images.append(_idx(files[0], _IMAGES))
            labels.append(_idx(files[1], _LABELS))
            if len(images[-1]) != len(labels[-1]):
                raise ScriptRuntimeError(f"{len(images[-1])} images and {len(labels[-1])} labels", where=owner)
        if not images:
            raise ScriptRuntimeError(f"no files of MNIST in {directory}", where=owner)
        super().__init__(
            np.concatenate(images)[..., None], np.concatenate(labels).astype(np.uint32), shuffle=shuffle,
            sampler=sampler, num_samples=num_samples, num_shards=num_shards, shard_id=shard_id,
        )  # fmt: skip


class FashionMnistDataset(MnistDataset):
    """The clothes of Fashion-MNIST, in the format of MNIST."""


class Cifar10Dataset(_Images):
    """The images of CIFAR-10: images of shape (32, 32, 3) and labels.

    Parameters
    ----------
    dataset_dir : str
        Directory with ``data_batch_1.bin`` to ``data_batch_5.bin`` and ``test_batch.bin``.
    usage, num_samples, shuffle, sampler, num_shards, shard_id
        As in `MnistDataset`.

    Raises
    ------
    ScriptValueError, ScriptRuntimeError
        For a missing directory, missing files or files of another format.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "test_batch.bin").write_bytes(bytes(2 * (1 + 3 * 32 * 32)))
    ...     Cifar10Dataset(folder, "test").get_dataset_size()
    2
    """

    def __init__(
        self,
        dataset_dir: Any,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        owner = type(self).__name__
        refuse_options(owner, {"cache": cache}, absent=("cache",))
        directory = _directory(dataset_dir)
        patterns = {"train": "data_batch_*.bin", "test": "test_batch.bin"}
        paths = [path for part in _usage(usage, owner) for path in sorted(directory.glob(patterns[part]))]
        if not paths:
            raise ScriptRuntimeError(f"no files of CIFAR-10 in {directory}", where=owner)
        rows = np.concatenate([self._rows(path) for path in paths])
        images = rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        super().__init__(
            np.ascontiguousarray(images), rows[:, 0].astype(np.uint32), shuffle=shuffle, sampler=sampler,
            num_samples=num_samples, num_shards=num_shards, shard_id=shard_id,
        )  # fmt: skip

    @staticmethod
    def _rows(path: Path) -> "np.ndarray[Any, Any]":
        data = path.read_bytes()
        if not data or len(data) % _CIFAR_ROW:
            raise ScriptRuntimeError(f"{len(data)} bytes are not a multiple of {_CIFAR_ROW}", where=str(path))
        return np.frombuffer(data, np.uint8).reshape(-1, _CIFAR_ROW)
