"""What a config would write of the tensors that another dump holds."""

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
    """Return what a config counts of the tensors of a dump, one account for each rank, as a planned dump leaves it.

    Sizes of tensors are those of their files, else they follow from type and shape; rows of statistics are estimated.

    Parameters
    ----------
    dump, config : path-like
    device, jit_level, release : str
        The real run: ``ascend``, ``gpu`` or ``cpu``; ``O0`` or ``O1``; ``seed``, ``2.7`` or ``2.10``.
    fields : mapping of str to str, optional
        Single fields of the profile.
    environment : mapping of str to str, optional
        For ``MS_DIAGNOSTIC_DATA_PATH``.

    Raises
    ------
    DumpConfigError
        For a config that the vendor refuses.
    BadInputError
        For a config or a dump of whole graphs, of which files hold several tensors, and for an API dump.
    """
    environment = {} if environment is None else environment
    profile = find(release, device_of(_TARGETS[device.lower()], jit_level), fields)
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
    if profile.tree != "rank" or request.selection.marked:
        what = "marks of set_dump are not in a dump" if request.selection.marked else "a dump of whole graphs"
        raise BadInputError(f"{what}: plan from the script", where="--dump", code="DS-RUN-012")
    found = open_dump(dump)
    others = smaller(text, environment, profile, device_id=listed[0] if listed else 0)
    requests = {"": request, **{name: one for name, one in others if one.trigger == request.trigger}}
    ranks: dict[int, dict[str, _Count]] = {}
    measured: dict[int, set[int]] = {}
    for entry in found:
        if entry.place.api or entry.part is not None:
            raise BadInputError(f"{entry.label} is not a tensor of a kernel-by-kernel dump: plan from the script",
                                where="--dump", code="DS-RUN-012")  # fmt: skip
        counts = ranks.setdefault(entry.rank, {name: _Count(one, profile) for name, one in requests.items()})
        if entry.iteration is not None:
            measured.setdefault(entry.rank, set()).add(entry.iteration)
        for count in counts.values():
            count.add(entry)
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


class _Count:
    """Files and bytes of one request, by step and operator type."""

    def __init__(self, request: DumpRequest, profile: Profile) -> None:
        self._request = request
        self._profile = profile
        self._steps: dict[int | None, dict[str, list[int]]] = {}
        self._headed: set[object] = set()

    @property
    def any(self) -> bool:
        """Whether the request dumps something."""
        return bool(self._steps)

    def add(self, entry: Entry) -> None:
        """Count what the request dumps of a tensor."""
        request = self._request
        wanted = request.inputs if entry.io == "input" else request.outputs
        if not wanted or not request.selection.selects(entry.op_name, {}):
            return
        amount = self._steps.setdefault(entry.iteration, {}).setdefault(entry.op_type, [0, 0])
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
        """The size of a tensor's file."""
        if entry.path is not None and self._request.sample is None:
            return os.stat(entry.path).st_size
        kind = dtype(entry.record.stored_dtype or entry.dtype)
        if kind.name == "bfloat16" and self._profile.bfloat16 == "float32":
            kind = dtype("float32")
        size = prod(entry.shape)
        shape = entry.shape
        if self._request.sample is not None and size > self._request.sample:
            shape = (self._request.sample,)
        if kind.descr is None:
            return 0
        return len(npy.header(kind.descr, shape)) + prod(shape) * kind.itemsize

    def document(self, beside: tuple[int, int]) -> dict[str, Any]:
        """The counts as a planned dump leaves them; `beside` is what belongs to no operator."""
        steps = {step: dict(types) for step, types in self._steps.items()}
        steps.setdefault(None, {})[OTHER] = list(beside)
        return {
            "skipped": {},
            "steps": [
                [step, {kind: {"files": files, "bytes": size} for kind, (files, size) in types.items()}]
                for step, types in steps.items()
            ],
        }


def _beside(found: DumpSet, rank: int) -> tuple[int, int]:
    """Files and bytes of a rank's graphs, orders and copies of the config."""
    sizes = [path.stat().st_size for path in _files(found.root, rank)]
    return len(sizes), sum(sizes)


def _files(root: Path, rank: int) -> Iterator[Path]:
    tops: Sequence[Path] = [root] if root.name == f"rank_{rank}" else sorted(root.glob(f"**/rank_{rank}"))
    for top in tops:
        for name in _BESIDE:
            yield from (path for path in sorted((top / name).glob("*")) if path.is_file() and not path.is_symlink())
