"""What is fuzzed: the readers of everything that strangers' dumps hold, with sound inputs to start from.

A reader may refuse its input by the errors of its target; any other exception is a crash.
"""

import math
import struct
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import dumpsim
from dumpsim._ext import layout
from dumpsim.analysis.namemap import read_names
from dumpsim.analysis.overflow import overflows
from dumpsim.analysis.place import Place
from dumpsim.archive.naming import parse_bin, parse_npy, parse_tensordump
from dumpsim.archive.tree import newest_stamp
from dumpsim.codecs import irproto, irtext, mapping, npy, opcsv, opdebug, statcsv
from dumpsim.codecs.apidump import read_stack
from dumpsim.codecs.dumpdata import DumpData, Item, Space, header
from dumpsim.codecs.wire import bytes_field, int_field
from dumpsim.core.errors import (
    BadInputError,
    DumpConfigError,
    FaultPlanError,
    UnfinishedWarning,
    UnreadableError,
    UnsupportedError,
)
from dumpsim.device.faults import check_plan, load_plan
from dumpsim.modes import configfile
from dumpsim.modes.profile import find

__all__ = ["Target", "targets"]

FIXTURES = Path(__file__).parents[2] / "fixtures"
BIN_NAME = "Add.Default_Add-op1.3.5.1700000000000000"
OPDEBUG_NAME = "Opdebug.Node_OpDebug.3.5.1700000000000000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A reader.

    Attributes
    ----------
    name : str
    seeds : tuple of bytes
        Inputs that it reads.
    run : callable
        Reads one input to its end.
    errors : tuple of exception types
        How it may refuse one.
    """

    name: str
    seeds: tuple[bytes, ...]
    run: Callable[[bytes], object]
    errors: tuple[type[Exception], ...] = (UnreadableError, BadInputError)

    def accepts(self, data: bytes) -> bool:
        """Whether the input is read; an exception that is no refusal is a crash and passes through."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnfinishedWarning)  # what is cut is read up to there
                self.run(data)
        except self.errors:
            return False
        return True


# -- seeds


def _item(array: "np.ndarray", dtype: int, format: int, original: tuple[int, ...] = (), **more: int) -> Item:
    return Item(
        dtype=dtype, format=format, shape=array.shape, size=array.nbytes, original_shape=original, address=1, **more
    )


def _bins() -> Iterator[bytes]:
    """Bin files of the usual layouts and types, a bare message and the container of small chips."""
    blocks = np.arange(2 * 16 * 2 * 2, dtype=np.float16).reshape(2, 1, 2, 2, 16)
    matrix = np.arange(256, dtype=np.float16).reshape(1, 1, 16, 16)
    codes = np.arange(16, dtype=np.uint8)
    for inputs, outputs in (
        ([(blocks, _item(blocks, 2, 3, (2, 3, 2, 2)))], [(matrix, _item(matrix, 2, 29, (5, 7)))]),
        ([(matrix, _item(matrix, 2, 4, (4, 3, 1, 1), sub_format=2))], []),
        ([(codes, _item(codes, 33, 2)), (codes, _item(codes, 4, 2))], [(codes, _item(codes, 13, 2))]),
    ):
        data = DumpData(
            op_name="Default/Add-op1", dump_time=17 * 10**14, inputs=tuple(item for _, item in inputs),
            outputs=tuple(item for _, item in outputs), spaces=(Space(type=0, size=3),), attrs=(("a", "b"),),
            dfx_message="m",
        )  # fmt: skip
        yield header(data) + b"".join(array.tobytes() for array, _ in (*inputs, *outputs)) + b"log"
    shape = bytes_field(3, b"\x08\x02")
    output = int_field(1, 4) + int_field(2, 2) + shape + bytes_field(5, b"ab") + int_field(6, 2)
    yield bytes_field(1, b"1.0") + int_field(2, 5) + bytes_field(3, output) + bytes_field(6, b"Add_1")
    shapes = struct.pack("<IIQIIQ", 0, 8, 2, 1, 8, 2)
    entry = struct.pack("<iiiQQQI", 1, 2, 0, 1, 0, 4, len(shapes)) + shapes
    head = struct.pack("<IIIII", 0x5A5A5A5A, 0, 4, 4 + len(entry), 1) + entry
    yield struct.pack("<Q", len(head)) + head + b"abcd"


def _npys() -> Iterator[bytes]:
    for descr, shape in (("<f4", (2, 3)), ("<E2", (3,)), ("|b1", ()), ("<c8", (1, 1))):
        yield npy.header(descr, shape) + bytes(24)
    yield b"\x93NUMPY\x02\x00" + struct.pack("<I", 118) + npy.header("<f4", (2,))[10:] + bytes(8)


_STATISTICS = (
    statcsv.header(["max", "l2norm", "nan", "md5"])
    + 'Add,Default/Add-op0,0,0,1700000000000005,output,0,12,float32,"(1,3)",nan,1.5,2,abc\n'
    + 'Mul,"a,b",0,0,1700000000000009,input,1,2,float16,"[]",null,-inf,0,def,\n'
).encode()
_OPERATOR = (opcsv.header() + "Input,0,8,DT_FLOAT,ND,2x1,2.5,-inf,nan,2,0,0,0\nOutput,0,4,-,-,-,,,,,,,\n").encode()
_OVERFLOWS = (
    opdebug.OpDebug(ai_core=opdebug.Block(task_id=3, status=0x120, pc_start=0x1000)),
    opdebug.NewOpDebug(acc_type="AIV", data={"task_id": 3, "status": (8, 0, 0, 1)}, version=1),
    opdebug.NewOpDebug(acc_type="SDMA", data={"src_addr": 7}),
)
_CONFIG = b"""{"common_dump_settings": {"op_debug_mode": 0, "dump_mode": 1, "path": "/data/dump", "net_name": "Net",
"iteration": "0|5-8|100-120", "saved_data": "full", "input_output": 0, "kernels": ["name-regex(conv.+)", "Add"],
"support_device": [0, 1], "statistic_category": ["max", "l2norm"], "file_format": "npy"},
"e2e_dump_settings": {"enable": true, "trans_flag": true, "stat_calc_mode": "host",
"sample_mode": 1, "sample_num": 9}
}"""


def _graphs() -> tuple[bytes, ...]:
    """The smallest graphs that MindSpore wrote."""
    found = sorted(FIXTURES.rglob("ms_output_trace_code_graph_*.ir"), key=lambda p: (p.stat().st_size, str(p)))
    return tuple(path.read_bytes() for path in found[:2])


# -- readers


@cache
def _directory() -> "tempfile.TemporaryDirectory[str]":
    """One of this process; it goes with it."""
    return tempfile.TemporaryDirectory(prefix="dumpsim-fuzz-")


def _file(name: str, data: bytes, read: Callable[[Path], object]) -> None:
    """Read the input as a file, the only one of its directory."""
    path = Path(_directory().name) / name
    path.write_bytes(data)
    try:
        read(path)
    finally:
        path.unlink()


def _read_dump(path: Path) -> None:
    """All that can be asked of a file."""
    for entry in dumpsim.open(path):
        _ = (entry.record, repr(entry), entry.device_shape, entry.opdebug)
        if entry.path is None:
            entry.statistic("max")
            continue
        try:
            entry.array()
        except UnsupportedError:
            assert entry.part is not None
            entry.part.raw()
        entry.statistic("max")


def _read_overflow(path: Path) -> None:
    for found in overflows(Place(path=path.parent)):
        list(found.rows())


def _read_names(data: bytes) -> None:
    text = data.decode("utf-8", errors="surrogateescape")
    for parse in (parse_bin, parse_npy, parse_tensordump):
        try:
            parse(text)
        except UnreadableError:
            continue


def _read_config(data: bytes) -> None:
    configfile.check_all(data, {}, find("seed", "cpu"), file="data_dump.json")


_INFO = (
    b'["NN_Linear_0_forward_input.0", 1, [], "torch.float32", [2, 3], [1.0, -1.0, NaN]]\n'
    b'["LAYER_a_b_forward_output.k", 1, [], "torch.int8", [], [[], [], []], "abc", 1.5]\n'
)
_STACK = b"""{
    "torch.nn.Linear(0) forward": [
        "File net.py, line 1, in f, \\n a\\u0041 = [\\"x\\"]"
    ],
    "LAYER: a.b forward": [], "x": ["", "b"]
}"""
_PLAN = b"""{"faults": [{"kind": "overflow", "op": "Add", "nth": 2, "value": 1e5, "rank": null},
{"kind": "stomp", "after": "x*", "address": 77, "nbytes": 3}, {"kind": "aicore_error", "op": "b", "code": 507015}]}"""


def _read_stack(path: Path) -> None:
    stacks = read_stack(path)
    assert all(stacks[key] is not None for key in stacks)
    assert "no such key" not in stacks


def _read_plan(path: Path) -> None:
    check_plan(path)
    load_plan(path)


def _copy(data: bytes) -> None:
    """A forged plan of a copy: offsets, then axes of an extent and two strides, eight bytes each."""
    numbers = [int.from_bytes(data[at : at + 8], "little", signed=True) for at in range(0, len(data) - 7, 8)]
    to, *axes = numbers if len(numbers) > 1 else (0, 0)
    start, *axes = axes
    region = (to, start, tuple(zip(axes[::3], axes[1::3], axes[2::3], strict=False)))
    if not 0 <= math.prod(max(0, n) for n, _, _ in region[2]) < 1 << 20:
        return  # strides of 0 copy one element for years
    guard = 64
    target = np.full(96 + 2 * guard, 7, np.uint8)
    layout.copy(target[guard:-guard], np.arange(96, dtype=np.uint8), 1, [region])
    assert (target[:guard] == 7).all()
    assert (target[-guard:] == 7).all()


def _plans() -> tuple[bytes, ...]:
    regions = ((0, 0, 96, 1, 1), (5, 7, 3, 8, 1, 4, 1, 20), (95, 0, 96, -1, 1))
    return tuple(b"".join(n.to_bytes(8, "little", signed=True) for n in region) for region in regions)


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


def targets() -> dict[str, Target]:
    """All targets by name."""
    graphs = _graphs()
    found = (
        Target(name="bin", seeds=tuple(_bins()), run=lambda data: _file(BIN_NAME, data, _read_dump)),
        Target(name="npy", seeds=tuple(_npys()), run=lambda data: _file("7_x.npy", data, _read_dump)),
        Target(name="statistic", seeds=(_STATISTICS,), run=lambda data: _file("statistic.csv", data, _read_dump)),
        Target(name="operator", seeds=(_OPERATOR,), run=lambda data: _file(f"{BIN_NAME}.csv", data, _read_dump)),
        Target(name="mapping", seeds=(b"5,Add.x.1.2.3\n5.npy,b\n",), run=lambda data: mapping.parse(_text(data))),
        Target(name="pb", seeds=tuple(irproto.encode(irtext.parse(_text(g))) for g in graphs), run=irproto.decode),
        Target(name="ir", seeds=graphs, run=lambda data: irtext.parse(_text(data))),
        Target(name="opdebug", seeds=tuple(map(opdebug.encode, _OVERFLOWS)), run=opdebug.decode),
        Target(
            name="json",
            seeds=tuple(
                opdebug.to_json(opdebug.decode(opdebug.encode(record)), style).encode()
                for record in _OVERFLOWS
                for style in ("mindspore", "msaccucmp")
            ),
            run=lambda data: _file(f"{OPDEBUG_NAME}.output.0.json", data, _read_overflow),
        ),
        Target(name="config", seeds=(_CONFIG,), run=_read_config, errors=(DumpConfigError, UnsupportedError)),
        Target(name="info", seeds=(_INFO,), run=lambda data: _file("torch_api_dump_info.pkl", data, _read_dump)),
        Target(name="stack", seeds=(_STACK,), run=lambda data: _file("stack.json", data, _read_stack)),
        Target(
            name="append",
            seeds=(_STATISTICS,),
            run=lambda data: _file("statistic.csv", data, lambda path: newest_stamp(str(path.parent))),
        ),
        Target(
            name="append_mapping",
            seeds=(f"5,{BIN_NAME}\nmapping.csv,mapping.csv\n".encode(),),
            run=lambda data: _file("mapping.csv", data, lambda path: newest_stamp(str(path.parent))),
        ),
        Target(
            name="plan",
            seeds=(_PLAN,),
            run=lambda data: _file("faults.json", data, _read_plan),
            errors=(FaultPlanError,),
        ),
        Target(
            name="name_map",
            seeds=(b'{"NN.Own": ["NN_Dense", "NN_ReLU"]}', b"Torch.foo: Functional.bar  # x\nNN.A: [NN.B, NN.C]\n"),
            run=lambda data: _file("names.yaml", data, read_names),
        ),
        Target(name="layout", seeds=_plans(), run=_copy, errors=(IndexError, ValueError)),
        Target(name="names", seeds=(BIN_NAME.encode(), f"{BIN_NAME}.input.0.ND.Float16.npy".encode()), run=_read_names),
    )
    return {target.name: target for target in found}
