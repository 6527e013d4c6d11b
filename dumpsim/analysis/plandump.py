"""Counts the files and bytes that a config would write, from the tensors of an existing dump."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

from dumpsim.analysis.dumpset import DumpSet
from dumpsim.analysis.dumpset import open as open_dump
from dumpsim.analysis.entry import Entry
from dumpsim.analysis.projection import OTHER
from dumpsim.codecs import npy, statcsv
from dumpsim.codecs.dumpdata import header
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import BadInputError, DumpConfigError, UnreadableError
from dumpsim.core.regular import read_bytes
from dumpsim.core.statistic import NAMES
from dumpsim.modes.configfile import MAX_CONFIG, load
from dumpsim.modes.profile import Profile, device_of, find
from dumpsim.modes.request import DumpRequest
from dumpsim.modes.variants import dumping_devices, smaller

__all__ = ["account_of"]

_TARGETS = {"ascend": "Ascend", "gpu": "GPU", "cpu": "CPU"}
_LARGEST_SERVER = 16
_CELL = "-0.123457"  # a statistic as long as most are
_DIGITS = {"md5": 32, "sha1": 40}
_BESIDE = ("graphs", "execution_order", ".dump_metadata")


def account_of(
    dump: "str | Path",
    config: "str | Path",
    *,
    device: str = "ascend",
    jit_level: str = "O0",
    release: str = "seed",
    fields: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Count what a config would write of the tensors of a dump, with one account per rank, as a planned dump writes it.

    Sizes are those of the tensors' files, or else follow from type and shape; rows of statistics are estimated.

    Parameters
    ----------
    dump, config : path-like
    device, jit_level, release : str
        The real run: ``ascend``, ``gpu`` or ``cpu``; ``O0``, ``O1`` or ``O2``; ``seed``, ``2.7`` or ``2.10``.
    fields : mapping of str to str, optional
        Single fields of the profile.
    environment : mapping of str to str, optional
        For ``MS_DIAGNOSTIC_DATA_PATH`` and ``ENABLE_MS_GE_DUMP``.

    Raises
    ------
    DumpConfigError
        For a config that the vendor refuses.
    BadInputError
        For marks of ``set_dump``, an API dump, a dump of single kernels with a config for whole graphs or the reverse,
        and for bin files if the dump has none.
    """
    environment = {} if environment is None else environment
    ge = environment.get("ENABLE_MS_GE_DUMP") == "1"
    profile = find(release, device_of(_TARGETS[device.lower()], jit_level, ge=ge), fields)
    try:
        text = read_bytes(config, MAX_CONFIG, follow=True)
    except UnreadableError as error:
        raise UnreadableError(error.what, where=str(config), code="DS-RUN-006") from None
    request, _ = load(text, environment, profile, file=str(config))
    listed = dumping_devices(text, environment, profile, _LARGEST_SERVER)
    if request.disabled is not None and listed:
        request, _ = load(text, environment, profile, device_id=listed[0], file=str(config))
    if request.disabled is not None:
        raise DumpConfigError(f"nothing is dumped: {request.disabled}", where=str(config))
    if request.selection.marked:
        raise _refused("marks of set_dump are not in a dump: plan from the script")
    found = open_dump(dump)
    others = smaller(text, environment, profile, device_id=listed[0])
    requests = {"": request, **{name: one for name, one in others if one.trigger == request.trigger}}
    models = profile.tree == "model"
    ranks: dict[int, dict[str, _Count]] = {}
    measured: dict[int, set[int]] = {}
    for entry in found:
        if entry.place.api:
            raise _refused("an API dump has calls, not operators: plan from the script")
        if bool(entry.place.time or entry.part) != models:
            of, level = ("single kernels", "O0") if models else ("whole graphs", "O2")
            hint = f"give --jit-level {level}, or plan from the script"
            raise _refused(f"the dump is of {of}, which --jit-level {jit_level} does not write: {hint}")
        if request.file_format == "bin" and entry.part is None:
            raise _refused("bin files have device layouts, which only a dump of bin files has: plan from the script")
        counts = ranks.setdefault(entry.rank, {name: _count(one, profile) for name, one in requests.items()})
        step = entry.place.step if models and profile.step_level else entry.iteration
        if step is not None:
            measured.setdefault(entry.rank, set()).add(step)
        for count in counts.values():
            count.add(entry, step)
    notes = ["counted from a dump: what that dump left out is not in the plan"]
    if not any(entry.io == "input" for entry in found) and request.inputs:
        notes.append("the dump has no inputs, and the config asks for them")
    if not request.selection.everything and not any(counts[""].any for counts in ranks.values()):
        notes.append("no tensor is of a kernel that the config names; without graphs, a dump does not tell scopes")
    return [
        {
            "rank": rank,
            "profile": profile.name,
            "chip": device,
            "config": str(config),
            "path": request.path,
            "trigger": request.trigger,
            "iteration": {
                "text": request.steps.text,
                "every": request.steps.every,
                "ranges": request.steps.ranges,
            },
            "measured": sorted(measured.get(rank, ())),
            "estimate": "" if request.statistics is None else "rows of statistics are an estimate",
            "devices": list(listed),
            "dump": {"notes": notes},
            "counts": {name: count.document(_beside(found, rank)) for name, count in counts.items()},
        }
        for rank, counts in sorted(ranks.items())
    ]


def _refused(what: str) -> BadInputError:
    return BadInputError(what, where="--dump", code="DS-RUN-012")


def _count(request: DumpRequest, profile: Profile) -> "_Count":
    """Return the counter for the files that a request writes."""
    return _FileCount(request, profile) if request.file_format == "bin" else _Count(request, profile)


class _Count:
    """Files and bytes of one request, by step and operator type: a file or a row for each tensor."""

    def __init__(self, request: DumpRequest, profile: Profile) -> None:
        self._request = request
        self._profile = profile
        self._steps: dict[int | None, dict[str, list[int]]] = {}
        self._headed: set[object] = set()

    @property
    def any(self) -> bool:
        """Whether the request dumps something."""
        return bool(self._steps)

    def add(self, entry: Entry, step: int | None) -> None:
        """Count what the request dumps of a tensor in a step."""
        request = self._request
        wanted = request.inputs if entry.io == "input" else request.outputs
        if wanted and request.selection.selects(entry.op_name, {}):
            self._add(entry, self._steps.setdefault(step, {}).setdefault(entry.op_type, [0, 0]))

    def _add(self, entry: Entry, amount: list[int]) -> None:
        """Add a selected tensor to the files and bytes of its operator type."""
        request = self._request
        if request.tensors and 0 not in entry.shape:
            amount[0] += 1
            amount[1] += self._file(entry)
        if request.statistics is not None and entry.iteration is not None:
            names = request.statistics.names
            if entry.place.path not in self._headed:
                self._headed.add(entry.place.path)
                amount[0] += 1
                amount[1] += len(statcsv.header(names))
            cells = ["0" * _DIGITS[name] if name not in NAMES else _CELL for name in names]
            record = replace(entry.record, timestamp=1_700_000_000_000_000)
            amount[1] += len(statcsv.row(record, entry.op_name, cells, self._profile.csv).encode())

    def _file(self, entry: Entry) -> int:
        """Return the size of a tensor's npy file."""
        if entry.path is not None and entry.part is None and self._request.sample is None:
            return os.stat(entry.path).st_size
        kind = dtype(entry.record.stored_dtype or entry.dtype)
        if kind.name == "bfloat16" and self._profile.bfloat16 == "float32":
            kind = dtype("float32")
        on_device = self._profile.host_layout == "rank4" and len(entry.shape) != 4  # [spec mindspore 5.6]
        shape = entry.device_shape if on_device or not self._request.host_layout else entry.shape
        size = prod(shape)
        if self._request.sample is not None and size > self._request.sample:
            shape = (self._request.sample,)
        if kind.descr is None:
            return 0
        return len(npy.header(kind.descr, shape)) + prod(shape) * kind.itemsize

    def document(self, beside: tuple[int, int]) -> dict[str, Any]:
        """Return the counts as a planned dump writes them; `beside` has the files that belong to no operator."""
        steps = {step: dict(types) for step, types in self._steps.items()}
        steps.setdefault(None, {})[OTHER] = list(beside)
        return {
            "skipped": {},
            "steps": [
                [step, {kind: {"files": files, "bytes": size} for kind, (files, size) in types.items()}]
                for step, types in steps.items()
            ],
        }


class _FileCount(_Count):
    """Counts bin files, each of which holds all tensors of an operator."""

    def _add(self, entry: Entry, amount: list[int]) -> None:
        part, path = entry.part, entry.path
        if part is None or path is None or path in self._headed:
            return
        self._headed.add(path)
        data = part.file.data
        inputs = data.inputs if self._request.inputs else ()
        outputs = data.outputs if self._request.outputs else ()
        kept = replace(data, inputs=inputs, outputs=outputs)
        if any(item.size for item in (*inputs, *outputs)):
            amount[0] += 1
            amount[1] += os.stat(path).st_size if kept == data else len(header(kept)) + kept.payload


def _beside(found: DumpSet, rank: int) -> tuple[int, int]:
    """Return files and bytes of a rank's graphs, orders and copies of the config."""
    sizes = [path.stat().st_size for path in _files(found.root, rank)]
    return len(sizes), sum(sizes)


def _files(root: Path, rank: int) -> Iterator[Path]:
    yield from (path for path in [root / f"acl_dump_{rank}.json"] if path.is_file() and not path.is_symlink())
    tops: Sequence[Path] = [root] if root.name == f"rank_{rank}" else sorted(root.glob(f"**/rank_{rank}"))
    for top in tops:
        for name in _BESIDE:
            yield from (path for path in sorted((top / name).glob("*")) if path.is_file() and not path.is_symlink())
