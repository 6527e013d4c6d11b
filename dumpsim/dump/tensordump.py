"""The receiver of TensorDump's messages: one npy file for each tensor. [spec mindspore 9] [spec parallel 1.1, 1.7]

It needs no ``MINDSPORE_DUMP_CONFIG``. Files are written in the order of arrival, when the device is synchronised.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from dumpsim.archive.sink import DiskFaults, Sink
from dumpsim.codecs import npy
from dumpsim.core.dtype import from_numpy
from dumpsim.core.errors import DumpWriteError, UnsupportedError
from dumpsim.device.queue import Message
from dumpsim.modes.profile import Profile, find
from dumpsim.tensor.cast import widen

__all__ = ["CHANNEL", "UPDATE_STEP", "TensorDumpRule", "TensorDumpWriter", "profile_of"]

CHANNEL = "ms_tensor_dump"  # [spec parallel 1.7]
UPDATE_STEP = "<tensordump-update-step>"  # [spec mindspore 9]
_FEATURE = "<sdc-feature-value>"  # for the detector of silent data corruption, without a file [spec mindspore 9]

Log = Callable[[str, str, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorDumpRule:
    """The behaviour of one generation of TensorDump. [spec parallel 1.1]

    Attributes
    ----------
    modes : tuple of str
        Allowed values of `mode`, in the order of the vendor's text.
    placeholders : bool
        Whether ``{step}`` and ``{rank}`` are replaced, and steps can be selected.
    number_first : bool
        Whether names are ``{id}_{base}.npy``; otherwise they are ``{base}_{dtype}_{id}.npy``.
    """

    modes: tuple[str, ...]
    placeholders: bool
    number_first: bool

    def name(self, file: str, kind: str, number: int) -> tuple[str, str]:
        """Return directory and name of a file.

        Examples
        --------
        >>> RULES["A"].name("dumps/mul.npy", "float32", 0)
        ('dumps', '0_mul.npy')
        >>> RULES["C"].name("dumps/mul.npy", "float32", 0)
        ('dumps', 'mul_float32_0.npy')
        """
        directory, base = os.path.split(file)
        if self.number_first:
            name = f"{number}_{base}"
            return directory or ".", name if name.endswith(".npy") else f"{name}.npy"
        return directory or ".", f"{base.removesuffix('.npy')}_{kind}_{number}.npy"


RULES: Mapping[str, TensorDumpRule] = MappingProxyType(
    {
        "A": TensorDumpRule(modes=("out", "in", "all"), placeholders=False, number_first=True),
        "B": TensorDumpRule(modes=("out", "in"), placeholders=True, number_first=False),
        "C": TensorDumpRule(modes=("out", "in"), placeholders=True, number_first=False),
    }
)


def profile_of(release: str, target: str, overrides: Mapping[str, str]) -> Profile:
    """Return the profile for a session's TensorDump."""
    return find(release, target, overrides)


class TensorDumpWriter:
    """Writes the tensors that arrive.

    Parameters
    ----------
    profile : Profile
    rank : int
    disk : DiskFaults, optional
    durable : bool
        As of `Sink`.
    log : callable
        ``log(level, function, text)`` writes a line in the vendor's form.

    Examples
    --------
    >>> writer = TensorDumpWriter(find("seed", "Ascend"), rank=0)
    >>> writer.rule.modes
    ('out', 'in', 'all')
    """

    def __init__(
        self,
        profile: Profile,
        *,
        rank: int,
        disk: DiskFaults | None = None,
        durable: bool = False,
        log: Log = lambda level, function, text: None,
    ) -> None:
        self.rule = RULES[profile.tensordump]
        self.written: list[str] = []
        self._profile = profile
        self._rank = rank
        self._sink = Sink(
            file_mode=profile.file_mode, directory_mode=profile.directory_mode, disk=disk, durable=durable
        )
        self._log = log
        self._number = 0  # one count over all names [spec mindspore 9]
        self._steps = {"graph": 0, "host": 0}
        self._wanted: frozenset[int] = frozenset()

    def set_steps(self, steps: Iterable[int]) -> None:
        """Select the steps to write; an empty selection means all.

        Raises
        ------
        UnsupportedError
            For a generation without steps.
        """
        if not self.rule.placeholders:
            raise UnsupportedError("steps of TensorDump", where="generation A", nearest="--set tensordump=B")
        self._wanted = frozenset(steps)

    def __call__(self, message: Message) -> None:
        """Handle a message: a file name and a tensor.

        Raises
        ------
        DumpWriteError
            If the file cannot be written, unless the release only logs that.
        """
        file, tensor = message.items
        if self.rule.placeholders and file == UPDATE_STEP:
            self._steps[message.source] += 1
            return
        graph = self._profile.tensordump_step == "graph"
        if graph and file.startswith(_FEATURE):
            return
        if self._wanted and self._steps[message.source] not in self._wanted:
            return
        step = self._steps["graph" if graph else message.source]
        if self._wanted and step not in self._wanted:  # quirk: the name uses the other counter [2.10 observed]
            text = "For 'TensorDump' ops, open  file failed, the args of 'file' is invalid."
            self._log("ERROR", "SaveTensor2NPY", text)
            return
        self._write(self._placed(file, step), tensor)

    def _placed(self, file: str, step: int) -> str:
        """Replace the placeholders in a file name."""
        if not self.rule.placeholders:
            return file
        return file.replace("{step}", f"step{step}").replace("{rank}", f"rank{self._rank}")

    def _write(self, file: str, tensor: "np.ndarray[Any, Any]") -> None:
        kind = from_numpy(tensor.dtype)
        if kind.name == "bfloat16":
            tensor = widen(tensor, kind.name)  # the name keeps bfloat16 [spec mindspore 9]
        stored = from_numpy(tensor.dtype)
        if stored.descr is None:
            self._log("ERROR", "SaveTensor2NPY", f"For 'TensorDump' ops, the type of {kind.name} has no npy form.")
            return
        directory, name = self.rule.name(os.path.join(os.getcwd(), file), kind.name, self._number)
        self._number += 1
        try:
            self._sink.write(directory, name, npy.encode(np.ascontiguousarray(tensor).reshape(tensor.shape), stored))
        except DumpWriteError as error:
            if self._profile.unwritable == "error":
                raise
            self._log("ERROR", "SaveTensor2NPY", f"For 'TensorDump' ops, open {directory}/{name} failed: {error}")
            return
        self.written.append(f"{directory}/{name}")
