"""The dump pipeline driven by hand-made events, for every profile."""

import csv
import errno
import gc
import hashlib
import json
import os
import signal
import stat
import tracemalloc
import warnings
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import dumpsim
from dumpsim.archive.sink import Sink
from dumpsim.archive.tree import Tree, records
from dumpsim.codecs import npy
from dumpsim.core.abstract import ScalarType, TensorType
from dumpsim.core.clock import WallClock
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import BadInputError, DumpConfigError, DumpWriteError
from dumpsim.core.events import RunEvent
from dumpsim.core.options import CompileOptions
from dumpsim.dump.artefacts import write_metadata
from dumpsim.dump.control import DumpControl
from dumpsim.dump.manifest import Manifest
from dumpsim.modes.profile import names
from tests.dump.machine import Machine, graph, ref, task

KERNEL_BY_KERNEL = [name for name in names() if not name.endswith(("o2", "ge"))]
FIXTURES = Path(__file__).parents[2] / "fixtures/dump/mindspore_cpu"
X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
Y = np.array([[7, 8, 9], [10, 11, 12]], np.float32)


def add():
    return task(operands=[ref(X, 0), ref(Y, 1)], outputs=[ref(X + Y, 0)])


@pytest.fixture
def root(tmp_path):
    return tmp_path / "dump"


# -- bytes and names ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.npy")), ids=lambda path: path.stem)
def test_npy_bytes_equal_the_real_ones(root, path):
    expected = path.read_bytes()
    array = npy.read(path)
    machine = Machine(root, "2.10/cpu")
    machine.run(task(outputs=[ref(np.array(array), 0)]))
    found = machine.find(f".output.0.DefaultFormat.{path.stem}.npy").read_bytes()
    assert found == expected


TYPE_IN_NAME = {"ascend_o0": ".float32", "gpu": ".float32", "cpu": ".Float32"}


@pytest.mark.parametrize("profile", KERNEL_BY_KERNEL)
def test_the_tree_of_every_profile(root, profile):
    release, device = profile.split("/")
    machine = Machine(root, profile)
    constant = TensorType(dtype=dtype("float32"), shape=(2, 3), constant=True)
    number = ScalarType(dtype=dtype("int64"), value=3)
    machine.compile(graph(constants=((3, number), (Y, constant))))
    weight = ref(X, 5, name="w.x")
    machine.run(add(), parameters=(weight,))
    machine.service.finish()

    kind = TYPE_IN_NAME[device]
    if release == "seed" and device != "ascend_o0":
        kind = ""
    expected = {
        f"Net/0/0/Add.Default_Add-op0.0.0.{io}.DefaultFormat{kind}.npy" for io in ("input.0", "input.1", "output.0")
    }
    if device != "ascend_o0":
        expected.add(f"Net/0/0/Parameter.w_x.0.0.output.0.DefaultFormat{kind}.npy")
    assert set(machine.names()) == expected
    others = {name for name in machine.files() if not name.endswith(".npy")}
    basic = {
        "graphs/ms_output_trace_code_graph_0.ir",
        "graphs/ms_output_trace_code_graph_0.pb",
        "execution_order/ms_execution_order_graph_0.csv",
    }
    if device != "ascend_o0" or release == "seed":
        basic |= {".dump_metadata/config.json", ".dump_metadata/data_dump.json"}
    if device != "ascend_o0":
        basic.add("execution_order/ms_global_execution_order_graph_0.csv")
    assert others == basic
    order = (root / "rank_0/execution_order/ms_execution_order_graph_0.csv").read_text()
    assert order == "NodeExecutionOrder-FullNameWithScope\nDefault/Add-op0\n"
    for directory, _, files in os.walk(root):
        assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700
        assert {stat.S_IMODE(os.stat(f"{directory}/{name}").st_mode) for name in files} <= {0o400}


@pytest.mark.parametrize(
    ("profile", "expected"),
    [("seed/gpu", ""), ("seed/cpu", ""), ("2.10/gpu", ".float32"), ("2.10/cpu", None), ("seed/ascend_o0", None)],
)
def test_constants_are_tensors_only(root, profile, expected):
    machine = Machine(root, profile)
    constant = TensorType(dtype=dtype("float32"), shape=(2, 3), constant=True)
    number = ScalarType(dtype=dtype("int64"), value=3)
    event = graph(constants=((3, number), (Y, constant)))
    refs = (ref(np.int64(3), origin="constant", name="data-0"), ref(Y, origin="constant", name="data-1"))
    machine.compile(replace(event, constants=refs))
    found = machine.names()
    name = f"Net/0/constants/Parameter.data-1.0.0.output.0.DefaultFormat{expected}.npy"
    assert found == ([] if expected is None else [name])


def test_metadata_says_target_and_version_and_copies_the_config(root):
    machine = Machine(root, "2.10/cpu")
    metadata = root / "rank_0/.dump_metadata"
    assert (metadata / "config.json").read_bytes() == b'{"device_target":"CPU","ms_version":"2.10.0"}'
    assert (metadata / "data_dump.json").read_bytes() == machine.service.request.text


def test_copies_that_exist_are_left_with_the_vendors_warning(root):
    """[spec mindspore 3.8]"""
    said = []
    tree, sink = Tree(path=str(root), rank=0, net_name="Net"), Sink()
    for text in (b"{}", b"other"):
        write_metadata(sink, tree, "GPU", "2.5.0", text, lambda *words: said.append(words), lambda action: action())
    assert said == [
        ("WARNING", function, f"The file: {tree.metadata}/{name} is already exist, skip copy it.")
        for function, name in (("CopyMSCfgJsonToDir", "config.json"), ("CopyDumpJsonToDir", "data_dump.json"))
    ]
    assert Path(tree.metadata, "data_dump.json").read_bytes() == b"{}"


def test_over_long_names_go_to_mapping_csv(root):
    scope = "Default/" + "/".join(f"layer{i}-Dense" for i in range(20)) + "/MatMul-op0"
    numbers = []
    for profile in ("seed/ascend_o0", "2.10/ascend_o0"):
        machine = Machine(root / profile.replace("/", "_").replace(".", "_"), profile)
        machine.run(task(scope, outputs=[ref(X)]))
        machine.service.finish()
        lines = machine.find("mapping.csv").read_text().splitlines()
        assert len(lines) == 1
        short, original = lines[0].split(",")
        assert len(original) > 255
        assert original.startswith("MatMul.Default_layer0-Dense_")
        assert np.array_equal(npy.read(machine.find(short)), X)
        numbers.append(short)
    assert numbers[0] != numbers[1]


# -- selection ---------------------------------------------------------------------------------------------------------


def io_of(machine):
    return sorted(name.split(".DefaultFormat")[0].split("/")[-1] for name in machine.names())


@pytest.mark.parametrize(
    ("input_output", "expected"),
    [
        (0, ["Add.Default_Add-op0.0.0.input.0", "Add.Default_Add-op0.0.0.input.1", "Add.Default_Add-op0.0.0.output.0",
             "Parameter.w_x.0.0.output.0"]),
        (1, ["Add.Default_Add-op0.0.0.input.0", "Add.Default_Add-op0.0.0.input.1"]),
        (2, ["Add.Default_Add-op0.0.0.output.0", "Parameter.w_x.0.0.output.0"]),
    ],
)  # fmt: skip
def test_input_output(root, input_output, expected):
    machine = Machine(root, "2.10/cpu", input_output=input_output)
    machine.run(add(), parameters=(ref(X, name="w.x"),))
    assert io_of(machine) == expected


def test_kernels_select_operators_and_parameters(root):
    machine = Machine(root, "2.10/cpu", dump_mode=1, kernels=["mul", "w.x", "relu"], input_output=2)
    tasks = [task(f"Default/{name}-op0", outputs=[ref(X)]) for name in ("Mul", "MatMul", "Add")]
    machine.run(*tasks, parameters=(ref(X, name="w.x"), ref(Y, name="b")))
    summary = machine.service.finish()
    assert [name.split(".")[1] for name in io_of(machine)] == ["Default_MatMul-op0", "Default_Mul-op0", "w_x"]
    assert machine.log == [("WARNING", "[DataDump] Unused Kernel in json: relu")]
    assert (summary.asked, summary.captured, summary.tensors) == (3, 3, 3)


def test_set_dump_marks(root):
    machine = Machine(root, "seed/cpu", dump_mode=2)
    marked = task("Default/Add-op1", outputs=[ref(X)], attrs={"dump": "true"})
    machine.run(add(), marked, task("Default/Add-op2", outputs=[ref(X)], attrs={"dump": "false"}))
    assert io_of(machine) == ["Add.Default_Add-op1.0.0.output.0"]


def test_iterations_that_are_not_asked_for_cost_nothing(root):
    machine = Machine(root, "seed/ascend_o0", iteration="1")
    machine.compile(graph())

    class Unreadable:
        def __getattr__(self, name):
            raise AssertionError(f"{name} was looked at")

    service = machine.service
    service.run_begin(RunEvent(root_graph_id=0, graph_id=0, run_count=0))
    assert not service.wants(task(operands=[Unreadable()]))
    service.run_end(RunEvent(root_graph_id=0, graph_id=0, run_count=1))
    machine.run(add())
    assert {name.split("/")[2] for name in machine.names()} == {"1"}


@pytest.mark.parametrize(
    ("profile", "skipped"),
    [("2.10/cpu", {"its memory is free": 1, "no elements": 1}), ("2.10/gpu", {}), ("2.10/ascend_o0", {})],
)
def test_freed_operands_and_empty_parameters_are_counted_where_they_are_skipped(root, profile, skipped):
    machine = Machine(root, profile, saved_data="tensor" if profile == "2.10/cpu" else "statistic")
    empty = replace(ref(np.zeros((0, 2), np.float32), name="e"), address=1)
    machine.run(task(operands=[ref(X, 0, origin="freed")], outputs=[ref(X, 0)]), parameters=(empty,))
    assert dict(machine.service.finish().skipped) == skipped


@pytest.mark.parametrize("profile", ["2.10/cpu", "2.10/ascend_o0", "seed/cpu"])
def test_tensors_without_bytes_are_counted_as_skipped(root, profile):
    empty = ref(np.zeros((0, 2), np.float32), 1)
    nowhere = ref(np.zeros(0, np.uint8), 2, origin="none")  # a type or a text, for which nobody asks
    segment = ref(X, 3, origin="segment")
    machine = Machine(root, profile)
    machine.run(task(operands=[ref(X, 0), empty, nowhere, segment], outputs=[ref(X, 0)]))
    summary = machine.service.finish()
    on_cpu = profile.endswith("cpu")
    assert dict(summary.skipped) == {"no elements": 1} | (
        {"handed over by a control-flow segment": 1} if on_cpu else {}
    )
    assert summary.asked == 4 == summary.captured + sum(dict(summary.skipped).values())
    assert len(machine.names()) == summary.tensors == (2 if on_cpu else 3)


@pytest.mark.parametrize(("profile", "rows"), [("2.10/gpu", True), ("2.10/ascend_o0", False), ("seed/gpu", True)])
@pytest.mark.parametrize("data", ["statistic", "tensor", "full"])
def test_a_tensor_without_elements_has_a_row_of_nulls_where_it_has_one(root, profile, rows, data):
    machine = Machine(root, profile, saved_data=data)
    machine.run(task(operands=[ref(np.zeros((0, 2), np.float32), 1)], outputs=[ref(X, 0)]))
    summary = machine.service.finish()
    rows = rows and data != "tensor"
    assert (summary.asked, summary.captured, dict(summary.skipped)) == (2, 1 + rows, {} if rows else {"no elements": 1})
    assert (summary.rows, summary.tensors) == ((1 + rows) * (data != "tensor"), data != "statistic")
    if rows:
        table = csv.DictReader(machine.find("statistic.csv").read_text().splitlines())
        (row,) = (row for row in table if row["IO"] == "input")
        assert (row["Slot"], row["Data Size"], row["Data Type"], row["Shape"][1:-1]) == ("1", "0", "float32", "0,2")
        assert {row[name] for name in ("Max Value", "Min Value", "L2Norm Value")} == {"null"}


def test_host_operands_of_ascend_are_left_out(root):
    machine = Machine(root, "seed/ascend_o0")
    operands = [ref(X, 0), ref(np.array([3, 2]), 1)]
    machine.run(task("Default/Reshape-op0", operands, [ref(X.reshape(3, 2))]))
    machine.run(task("Default/BatchNorm-op0", outputs=[ref(X, slot) for slot in range(5)]))
    assert [name.split("op0.0.0.")[1] for name in io_of(machine)] == [
        "output.0",
        "output.3",
        "output.4",
        "input.0",
        "output.0",
    ]
    for profile, count in (("seed/gpu", 3), ("2.10/cpu", 2)):
        machine = Machine(root.parent / profile[-3:], profile)
        machine.run(task("Default/Reshape-op0", operands, [ref(X.reshape(3, 2))]))
        assert len(machine.names()) == count
    other = Machine(root.parent / "all", "seed/ascend_o0", env={"MINDSPORE_DUMP_IGNORE_USELESS_OUTPUT": "0"})
    other.run(task("Default/BatchNorm-op0", outputs=[ref(X, slot) for slot in range(5)]))
    assert len(other.names()) == 5


class Held:
    """Bytes of a planned tensor, with their version."""

    def __init__(self, array):
        self.data, self.version = np.frombuffer(bytearray(array.tobytes()), np.uint8), 1

    def __call__(self):
        return self.data


def planned_run(machine, run):
    """A run of a planned graph; which of its tasks have functions before and after them, None without a plan."""
    service = machine.service
    service.run_begin(RunEvent(root_graph_id=0, graph_id=0, run_count=run))
    followers = machine.plan.begin()
    for number, follower in enumerate(followers or ()):
        for step in follower or ():
            if step is not None:
                step(number, 1000)
    service.run_end(RunEvent(root_graph_id=0, graph_id=0, run_count=run + 1))
    return followers and [None if one is None else tuple(step is not None for step in one) for one in followers]


@pytest.mark.parametrize(
    ("profile", "history"), [("2.10/cpu", "0\n2\n"), ("2.10/gpu", "0\n2\n"), ("2.10/ascend_o0", None)]
)
def test_a_planned_run_is_in_the_history_and_has_its_files(root, profile, history):
    machine = Machine(root, profile, iteration="0|2", dump_mode=1, kernels=["Add", "Mul"])
    held = replace(ref(X, 0), read=Held(X))
    empty = replace(ref(np.zeros((0, 2), np.float32), 1), read=Held(np.zeros(0)))
    events = [
        task(f"Default/{name}-op0", operands=[held, empty], outputs=[held]) for name in ("Exp", "Add", "Mul", "Log")
    ]
    machine.plan = machine.service.plan(events)
    found = [planned_run(machine, run) for run in range(3)]
    first = profile != "2.10/cpu"  # where inputs are read after the kernel, nothing is done before it
    begun = (True, True)
    assert found == [[None, begun, (first, True), None], (), [None, begun, (first, True), None]]
    summary = machine.service.finish()
    assert (summary.iterations, summary.tensors, dict(summary.skipped)) == ((0, 2), 8, {"no elements": 4})
    assert {name.split("/")[2] for name in machine.names()} == {"0", "2"}
    logged = [name for name in machine.files() if "global_execution" in name]
    assert [(root / "rank_0" / name).read_text() for name in logged] == ([] if history is None else [history])


def test_operators_of_another_kind_of_graph_are_named_and_not_dumped(root):
    for profile, model in (("seed/ascend_o0", 1), ("seed/ascend_o2", 0)):
        machine = Machine(root / profile[-2:], profile)
        machine.run(task(operands=[ref(X, 0)], outputs=[ref(X, 0)], model_id=model, model_name="m"))
        text = "operators of graphs of another jit_level are not dumped: the first graph's decides"
        assert text in machine.service.finish().notes
        assert machine.service.finish().asked == 0


def test_operators_outside_of_graphs_are_not_dumped(root):
    machine = Machine(root, "seed/ascend_o0")
    machine.run(task(operands=[ref(X, 0)], outputs=[ref(X, 0)], graph_id=-1))
    assert machine.service.finish().asked == 0


# -- iterations --------------------------------------------------------------------------------------------------------

OBSERVED = [
    ("ababab", {"a": [0, 1, 2], "b": [1, 2, 3]}, {"a": [0], "b": [1, 2, 3]}),
    ("aaabbb", {"a": [0, 1, 2], "b": [3, 1, 2]}, {"a": [0, 1, 2], "b": [3, 1, 2]}),
    ("aababbba", {"a": [0, 1, 1, 4], "b": [2, 3, 2, 3]}, {"a": [0, 1, 1, 4], "b": [2, 3, 2, 3]}),
    ("aaabba", {"a": [0, 1, 2, 2], "b": [3, 1]}, {"a": [0, 1, 2, 2], "b": [3, 1]}),
    ("abab", {"a": [0, 1], "b": [1, 2]}, {"a": [0], "b": [1, 2]}),
    ("ttttvvtt", {"t": [0, 1, 2, 3, 2, 5], "v": [4, 1]}, None),
    ("abc", {"a": [0], "b": [1], "c": [1]}, None),
]


@pytest.mark.parametrize(("calls", "directories", "history"), OBSERVED, ids=[row[0] for row in OBSERVED])
def test_iterations_as_observed(root, calls, directories, history):
    machine = Machine(root, "2.10/cpu")
    numbers = {name: index for index, name in enumerate(sorted(set(calls)))}
    found = {name: [] for name in numbers}
    for name in calls:
        before = set(machine.files())
        number = numbers[name]
        machine.run(task(outputs=[ref(X)], graph_id=number, root=number), root=number)
        (new,) = {f for f in set(machine.files()) - before if f.endswith(".npy")}
        assert new.startswith(f"Net/{number}/")
        found[name].append(int(new.split("/")[2]))
    assert found == directories
    if history is not None:
        logged = {
            name: [int(n) for n in machine.find(f"ms_global_execution_order_graph_{number}.csv").read_text().split()]
            for name, number in numbers.items()
        }
        assert logged == history


def test_iterations_of_the_seed_count_runs_of_the_process(root):
    machine = Machine(root, "seed/cpu", initial_iteration=0)
    for number in (0, 1, 0, 1):
        machine.run(task(outputs=[ref(X)], graph_id=number, root=number), root=number)
    assert sorted({name.rsplit("/", 1)[0] for name in machine.names()}) == ["Net/0/0", "Net/0/2", "Net/1/1", "Net/1/3"]
    assert machine.find("ms_global_execution_order_graph_0.csv").read_text() == "0\n2\n"


@pytest.mark.parametrize("profile", ["seed/ascend_o0", "2.10/ascend_o0"])
def test_the_graph_of_a_data_sink_takes_no_number(root, profile):
    machine = Machine(root, profile)
    machine.run(task("Default/InitDataSetQueue-op0", outputs=[], graph_id=0), root=0, kind="dataset")
    for _ in range(3):
        machine.run(task(outputs=[ref(X)], graph_id=1, root=1), root=1)
    assert [name.split("/")[2] for name in machine.names()] == ["0", "1", "2"]


def test_initial_iteration_moves_directories_and_the_filter(root):
    machine = Machine(root, "2.10/cpu", initial_iteration=10, iteration="0|11")
    for _ in range(3):
        machine.run(add())
    assert {name.split("/")[2] for name in machine.names()} == {"11"}


def test_a_script_that_starts_and_stops_the_dump_itself(root):
    control = DumpControl(dynamic=True)
    machine = Machine(root, "2.10/ascend_o0", control=control, iteration="0")
    for running in (False, True, True, False):
        control.running = running
        machine.run(add())
    assert {name.split("/")[2] for name in machine.names()} == {"1", "2"}


def test_a_script_that_counts_its_own_steps(root):
    control = DumpControl(user_step=7)
    machine = Machine(root, "2.10/ascend_o0", control=control, iteration="7|9")
    for step in (7, 8, 9):
        control.user_step = step
        machine.run(add())
    assert {name.split("/")[2] for name in machine.names()} == {"7", "9"}


def test_a_gpu_refuses_a_data_sink(root):
    machine = Machine(root, "seed/gpu")
    with pytest.raises(DumpConfigError, match="dataset_sink_mode=True"):
        machine.run(kind="dataset")


def test_graph_ids_are_the_roots_on_ascend_only(root):
    for profile, expected in (("seed/ascend_o0", "0"), ("seed/cpu", "3")):
        machine = Machine(root / expected, profile)
        machine.run(task(outputs=[ref(X)], graph_id=3, root=0))
        assert [name.split("/")[1] for name in machine.names()] == [expected]


# -- number types and layouts ------------------------------------------------------------------------------------------


def test_bfloat16(root):
    array = np.array([[1.5, -2.0], [np.inf, 3.140625]], ml_dtypes.bfloat16)
    for profile in KERNEL_BY_KERNEL:
        machine = Machine(root / profile.replace(".", "_"), profile)
        machine.run(task(outputs=[ref(array), ref(np.array(1.5, ml_dtypes.bfloat16), 1)]))
        found = npy.read(machine.find("output.0"))
        raw = profile in ("2.7/cpu", "2.10/cpu")
        assert found.dtype == (ml_dtypes.bfloat16 if raw else np.float32)
        assert np.array_equal(found.astype(np.float32), array.astype(np.float32))
        assert npy.read(machine.find("output.1")).shape == ()
        if profile.endswith("ascend_o0"):
            assert ".bfloat16.npy" in machine.find("output.0").name


def test_packed_types_are_unpacked(root):
    nibbles = np.array([0x8F, 0x17], np.uint8)
    bits = np.array([0b10110000, 0b01000000], np.uint8)
    four = ref(nibbles, 0, kind="int4", shape=(4,))
    pairs = ref(nibbles, 1, kind="int4", shape=(1, 2))
    one = ref(bits, 2, kind="uint1", shape=(10,))
    machine = Machine(root, "seed/ascend_o0", saved_data="full", statistic_category=["max", "min"])
    machine.run(task(outputs=[four, pairs, one]))
    assert npy.read(machine.find("output.0")).tolist() == [-1, -8, 7, 1]
    assert npy.read(machine.find("output.1")).tolist() == [[-1, -8, 7, 1]]
    assert npy.read(machine.find("output.2")).tolist() == [1, 0, 1, 1, 0, 0, 0, 0, 0, 1]
    machine.service.finish()
    rows = machine.find("statistic.csv").read_text().splitlines()[1:]
    assert [row.split(",", 7)[7] for row in rows] == ['2,int4,"(4)",7,-8', '2,int4,"(1,4)",7,-8', '2,uint1,"(10)",1,0']


@pytest.mark.parametrize(
    ("profile", "kept"), [("seed/ascend_o0", {64, 128}), ("2.10/ascend_o0", {128}), ("seed/cpu", {64, 128})]
)
def test_complex_numbers(root, profile, kept):
    machine = Machine(root, profile)
    outputs = [ref(np.array([1 + 2j], np.complex64), 0), ref(np.array([3 - 1j], np.complex128), 1)]
    machine.run(task(outputs=outputs))
    paths = [root / "rank_0" / name for name in machine.files() if name.endswith(".npy")]
    assert {8 * npy.read(path).itemsize for path in paths} == kept


def test_complex_numbers_break_the_compile_of_a_release_on_a_cpu(root):
    machine = Machine(root, "2.10/cpu")
    with pytest.raises(DumpConfigError) as caught:
        machine.compile(graph(kind="complex64"))
    assert str(caught.value) == "Unexpected type Complex"


def test_complex_numbers_have_no_row(root):
    machine = Machine(root, "seed/ascend_o0", saved_data="full")
    machine.run(task(outputs=[ref(np.array([1 + 2j], np.complex64), 0), ref(X, 1)]))
    summary = machine.service.finish()
    assert (summary.tensors, summary.rows) == (2, 1)


def test_complex_numbers_are_counted_where_only_statistics_are_asked_for(root):
    machine = Machine(root, "seed/ascend_o0", saved_data="statistic")
    machine.run(task(outputs=[ref(np.array([1 + 2j], np.complex64), 0), ref(X, 1)]))
    summary = machine.service.finish()
    assert summary.skipped == (("complex numbers have no statistics", 1),)
    assert (summary.asked, summary.captured, summary.rows) == (2, 1, 1)


def test_types_without_npy_form_are_skipped(root):
    small = np.array([1.5, -2], ml_dtypes.float8_e5m2)
    machine = Machine(root, "seed/ascend_o0", saved_data="full", statistic_category=["max"])
    raw = ref(np.zeros(2, np.uint8), 1)
    machine.run(task(outputs=[ref(small, 0), replace(raw, dtype=dtype("hifloat8"), device_dtype=dtype("hifloat8"))]))
    summary = machine.service.finish()
    assert dict(summary.skipped) == {"float8_e5m2 has no npy form": 1, "hifloat8 has no npy form": 1}
    assert (summary.asked, summary.captured, summary.tensors, summary.rows) == (2, 0, 0, 1)
    assert sum(level == "WARNING" for level, _ in machine.log) == 2


def conv():
    host = np.arange(2 * 20 * 3 * 3, dtype=np.float32).reshape(2, 20, 3, 3)
    return host, ref(host, 0, device="float16", layout="NC1HWC0")


@pytest.mark.parametrize("profile", ["seed/ascend_o0", "seed/gpu"])
def test_trans_flag_true_gives_the_host_layout_and_type(root, profile):
    host, output = conv()
    machine = Machine(root, profile, trans_flag=True)
    machine.run(task(outputs=[output]))
    path = machine.find(".output.0.DefaultFormat")
    found = npy.read(path)
    assert found.dtype == np.float32
    assert np.array_equal(found, host.astype(np.float16).astype(np.float32))
    assert path.name.endswith("DefaultFormat.float32.npy" if profile == "seed/ascend_o0" else "DefaultFormat.npy")


def test_trans_flag_false_keeps_the_devices_layout_and_type(root):
    host, output = conv()
    machine = Machine(root, "seed/ascend_o0", trans_flag=False)
    machine.run(task(outputs=[output, ref(X, 1)]))
    found = npy.read(machine.find(".output.0.NC1HWC0.float16.npy"))
    assert found.shape == (2, 2, 3, 3, 16)
    assert np.array_equal(found[1, 1, 2, 0, :4], host[1, 16:20, 2, 0].astype(np.float16))
    assert machine.find(".output.1.DefaultFormat.float32.npy")


def test_a_layout_that_the_dump_cannot_convert_is_skipped_with_its_reason(root):
    machine = Machine(root, "seed/ascend_o0")
    host = np.arange(16, dtype=np.float16).reshape(1, 1, 4, 4)
    machine.run(task(outputs=[ref(host, 0, layout="CHWN"), ref(X, 1)]))
    summary = machine.service.finish()
    assert dict(summary.skipped) == {"the dump does not convert CHWN": 1}
    assert summary.tensors == 1


def test_asynchronous_dump_of_a_release_copies_raw_bytes(root):
    host, _output = conv()
    arrays = {}
    for profile in ("seed/ascend_o0", "2.10/ascend_o0"):
        machine = Machine(root / profile.replace(".", "_"), profile, enable=False)
        same = ref(host, 0, layout="NC1HWC0")
        machine.run(task(outputs=[same]))
        arrays[profile] = npy.read(machine.find("output.0"))
        assert arrays[profile].shape == host.shape
    assert np.array_equal(arrays["seed/ascend_o0"], host)
    assert not np.array_equal(arrays["2.10/ascend_o0"], host)


def test_samples_are_the_head(root):
    changes = {"sample_mode": 1, "sample_num": 4, "saved_data": "full", "statistic_category": ["max", "count"]}
    machine = Machine(root, "seed/ascend_o0", **changes)
    machine.run(task(outputs=[ref(X, 0), ref(X[0], 1)]))
    machine.service.finish()
    assert npy.read(machine.find("output.0")).tolist() == [1, 2, 3, 4]
    assert npy.read(machine.find("output.1")).shape == (3,)
    rows = machine.find("statistic.csv").read_text().splitlines()[1:]
    assert [row.split(",", 7)[7] for row in rows] == ['16,float32,"(4)",4,4', '12,float32,"(3)",3,3']
    gpu = Machine(root.parent / "gpu", "seed/gpu", **changes)
    gpu.run(task(outputs=[ref(X, 0)]))
    assert npy.read(gpu.find("output.0")).shape == (2, 3)


def test_big_tensors_are_written_without_a_copy(root):
    big = ref(np.zeros(1 << 23, np.float32))
    machine = Machine(root, "seed/ascend_o0")
    machine.run(add())
    tracemalloc.start()
    machine.run(task("Default/Big-op0", operands=[big], outputs=[big]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20
    sizes = [(root / "rank_0" / name).stat().st_size for name in machine.files() if "Big-op0" in name]
    assert sizes == [128 + (4 << 23)] * 2


# -- statistics --------------------------------------------------------------------------------------------------------

TITLES = (
    "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value,L2Norm Value"
)
ROWS = {
    "seed": ('Default_Add-op0', '"(2,3)"', ""),
    "2.7": ('Default_Add-op0', '"(2,3)"', ","),
    "2.10": ('Default/Add-op0', '"[2,3]"', ","),
}  # fmt: skip


@pytest.mark.parametrize("device", ["ascend_o0", "gpu"])
@pytest.mark.parametrize("release", ROWS)
@pytest.mark.parametrize("saved_data", ["statistic", "full"])
def test_statistic_csv(root, release, device, saved_data):
    name, shape, end = ROWS[release]
    machine = Machine(root, f"{release}/{device}", saved_data=saved_data)
    machine.run(add())
    summary = machine.service.finish()
    path = machine.find("statistic.csv")
    lines = path.read_text().splitlines()
    assert lines[0] == TITLES
    expected = [("input", 0, "6,1,9.53939"), ("input", 1, "12,7,23.6432"), ("output", 0, "18,8,32.9242")]
    for line, (io, slot, cells) in zip(lines[1:], expected, strict=True):
        stamp = line.split(",")[4]
        assert line == f"Add,{name},0,0,{stamp},{io},{slot},24,float32,{shape},{cells}{end}"
        if saved_data == "full":
            assert f".{stamp}.{io}.{slot}." in machine.find(stamp).name
    assert len(machine.names()) == (3 if saved_data == "full" else 0)
    assert summary.rows == 3
    assert stat.S_IMODE(path.stat().st_mode) == 0o400


def test_every_category_in_the_users_order(root):
    values = np.array([np.nan, -np.inf, np.inf, -1.5, 0.0, -0.0, 2e7], np.float32)
    categories = ["md5", "negative inf count", "zero count", "count", "nan count", "positive zero count", "avg",
                  "negative zero count", "positive inf count", "max", "l2norm", "min"]  # fmt: skip
    machine = Machine(root, "seed/gpu", saved_data="statistic", statistic_category=categories)
    tame = np.array([-1.0, 2.0, 1e10, 3.4028235e38], np.float32)
    brain = np.array([1.0, 2.0], ml_dtypes.bfloat16)
    machine.run(task(outputs=[ref(values, 0), ref(tame, 1), ref(brain, 2), ref(np.array([True, False]), 3)]))
    machine.service.finish()
    lines = machine.find("statistic.csv").read_text().splitlines()
    assert lines[0].split(",")[10:] == [
        "MD5", "Negative Inf Count", "Zero Count", "Count", "NaN Count", "Positive Zero Count", "Avg Value",
        "Negative Zero Count", "Positive Inf Count", "Max Value", "L2Norm Value", "Min Value",
    ]  # fmt: skip
    md5 = [hashlib.md5(a.tobytes()).hexdigest() for a in (values, tame, brain)]
    assert lines[1].split(')",')[1] == f"{md5[0]},1,2,7,1,2,nan,2,1,nan,nan,nan"
    assert lines[2].split(')",')[1] == f"{md5[1]},0,0,4,0,3,8.50706e+37,1,0,3.40282e+38,3.40282e+38,-1"
    assert lines[3].split(')",')[1] == f"{md5[2]},0,0,2,0,2,1.5,0,0,2,2.23607,1"
    assert lines[4].split(')",')[1].split(",")[1:] == ["0", "1", "2", "0", "1", "0.5", "0", "0", "1", "1", "0"]


def test_digests_of_2_10(root):
    categories = ["hash", "hash:md5", "max", "max"]
    small, large = np.arange(20480, dtype=np.float32), np.arange(20481, dtype=np.float32)
    machine = Machine(root, "2.10/ascend_o0", saved_data="statistic", statistic_category=categories)
    machine.run(task(outputs=[ref(small, 0), ref(large, 1)]))
    machine.service.finish()
    lines = machine.find("statistic.csv").read_text().splitlines()
    assert lines[0].endswith("Shape,SHA1,MD5,Max Value")
    slices = [hashlib.sha1(part.tobytes()).hexdigest() for part in (large[:20480], large[20480:])]
    sha1 = [hashlib.sha1(small.tobytes()).hexdigest(), hashlib.sha1("".join(slices).encode()).hexdigest()]
    assert [line.split(']",')[1].split(",")[0] for line in lines[1:]] == sha1


def test_statistics_of_the_device(root):
    changes = {"saved_data": "statistic", "stat_calc_mode": "device"}
    outputs = [
        ref(np.array([300.0, 400.0], np.float16), 0),
        ref(np.array([5, -7], np.int32), 1),
        ref(np.array([True]), 2),
    ]
    rows = {}
    for precision in ("high", "low"):
        machine = Machine(
            root / precision, "seed/ascend_o0", **changes, device_stat_precision_mode=precision,
            statistic_category=["max", "avg", "l2norm"],
        )  # fmt: skip
        _host, blocked = conv()
        machine.run(task(outputs=[*outputs, blocked]))
        machine.service.finish()
        lines = machine.find("statistic.csv").read_text().splitlines()
        rows[precision] = [line.split(",", 7)[7].split(')",')[1] for line in lines[1:]]
        sizes = [line.split(",", 8)[7] for line in lines[1:]]
        assert sizes == ["4", "8", "1", str(2 * 2 * 3 * 3 * 16 * 2)]
    assert rows["high"][:3] == ["400,350,500", "5,-1,null", "True,null,null"]
    assert rows["low"][:3] == ["400,350,inf", "5,-1,null", "null,null,null"]
    assert rows["high"][3].startswith("359,179.5,")


@pytest.mark.parametrize(
    ("profile", "changes", "count", "tensors", "rows"),
    [
        ("seed/ascend_o0", {}, 3, 3, 0),
        ("seed/ascend_o0", {"saved_data": "statistic"}, 3, 0, 3),
        ("seed/ascend_o0", {"saved_data": "full"}, 3, 3, 3),
        ("seed/ascend_o0", {"saved_data": "statistic", "stat_calc_mode": "device"}, 3, 0, 3),
        ("seed/gpu", {}, 5, 5, 0),  # with a constant and a parameter
        ("seed/gpu", {"saved_data": "statistic"}, 5, 1, 4),  # constants have no rows
        ("seed/gpu", {"saved_data": "full"}, 5, 5, 4),
        ("seed/cpu", {}, 5, 5, 0),
    ],
)  # fmt: skip
def test_the_summary_counts_each_tensor_once(root, profile, changes, count, tensors, rows):
    machine = Machine(root, profile, **changes)
    constant = TensorType(dtype=dtype("float32"), shape=(2, 3), constant=True)
    event = graph(constants=((Y, constant),))
    machine.compile(replace(event, constants=(ref(Y, origin="constant", name="data-0"),)))
    machine.run(add(), parameters=(ref(X, name="w"),))
    summary = machine.service.finish()
    assert (summary.asked, summary.captured, summary.tensors, summary.rows) == (count, count, tensors, rows)
    assert (summary.skipped, summary.facts) == ((), ())
    assert len(machine.names()) == tensors


def test_parameters_belong_to_no_task(root, tmp_path):
    """They have the ids 0 in names and in the manifest. [spec mindspore 3.10]"""
    manifest = tmp_path / "m.json"
    machine = Machine(root, "seed/gpu", settings={"manifest": str(manifest), "overrides": {"task_id": "device"}})
    machine.run(task(outputs=[ref(X)], task_id=7, stream_id=3), parameters=(ref(X, name="w"),))
    machine.service.finish()
    entries = {
        Path(entry.path).name.split(".")[0]: entry for entry in Manifest.model_validate_json(manifest.read_text()).files
    }
    ids = {name: (entry.task_id, entry.stream_id) for name, entry in entries.items()}
    assert ids == {"Add": (7, 3), "Parameter": (0, 0)}
    assert {Path(name).name.split(".output")[0] for name in machine.names()} == {
        "Add.Default_Add-op0.7.3",
        "Parameter.w.0.0",
    }


@pytest.mark.parametrize(
    ("op_type", "arguments", "logged"),
    [("Print", {"0": "a"}, True), ("Print", {"0": 1}, False), ("Print", {}, False), ("Print", {"0": 1, "1": "a"}, True),
     ("Add", {"0": "a"}, False)],
)  # fmt: skip
@pytest.mark.parametrize("inputs", [True, False])
def test_strings_that_an_operator_prints_are_logged_as_an_error(root, op_type, arguments, logged, inputs):
    """[seed 001]"""
    machine = Machine(root, "seed/ascend_o0", input_output=0 if inputs else 2)
    machine.run(task("Default/x-op0", [ref(X, 0)], [ref(X)], op_type=op_type, arguments=arguments))
    text = "Default/x-op0: an input is a string, which dump does not support"
    assert [one for one in machine.log if one[0] == "ERROR"] == ([("ERROR", text)] if logged and inputs else [])


@pytest.mark.parametrize("saved", ["tensor", "statistic"])
def test_a_tensor_takes_its_start_and_its_bytes_of_time(root, saved):
    """25 microseconds and a nanosecond for each byte. [spec observed 1.2]"""
    machine = Machine(root, "seed/gpu", saved_data=saved)
    for array in (np.zeros((0, 2), np.float32), X[:0], X[:1], X, np.zeros(5, np.int8)):
        before = machine.info.clock.now_ns
        machine.run(task(outputs=[ref(array)]))
        asked = array.size or saved == "statistic"  # without elements there is a row alone
        assert machine.info.clock.now_ns - before == (25_000 + array.nbytes if asked else 0)


@pytest.mark.parametrize(
    ("profile", "mode", "saves"),
    [("seed/ascend_o2", 4, True), ("seed/ascend_o2", 0, False), ("seed/ascend_o2", 3, False),
     ("seed/ascend_o0", 4, False), ("2.10/gpu", 4, False)],
)  # fmt: skip
def test_where_cann_saves_an_operator_that_fails(root, profile, mode, saves):
    """Whole graphs have CANN's own dump. [spec mindspore 5.4]"""
    machine = Machine(root, profile, op_debug_mode=mode)
    assert machine.service.exception_path == (str(root) if saves else None)
    assert (
        Machine(root.parent / "other", profile, op_debug_mode=mode, support_device=[1]).service.exception_path is None
    )


def test_a_planned_whole_graph_leaves_out_what_is_no_kernel(root):
    """[spec ge 2.6]"""
    machine = Machine(root, "seed/ascend_o2", file_format="npy")
    held, made = (replace(ref(X, 0), read=Held(X)) for _ in range(2))
    events = [task(name, [held], [made], op_type=name, model_name="m", model_id=1) for name in ("Send", "Add", "Const")]
    machine.plan = machine.service.plan(events)
    assert len(planned_run(machine, 0)) == 3
    names = [path.name.split(".")[0] for path in root.rglob("*.npy")]
    assert names == ["Add"] * 2


@pytest.mark.parametrize(("written", "shared"), [(True, False), (False, True), (True, True)])
def test_a_planned_whole_graph_shows_operands_as_they_were(root, written, shared):
    """Whether the kernel says that it writes the operand, or has an output in its memory."""
    machine = Machine(root, "seed/ascend_o2", file_format="npy")
    held = Held(X)
    weight = replace(ref(X, 0), read=held, written=written)
    output = replace(ref(X, 0), read=held, address=weight.address if shared else weight.address + (1 << 40))
    event = task("Default/AssignAdd-op0", [weight], [output], model_name="m", model_id=1)
    run = RunEvent(root_graph_id=0, graph_id=0, run_count=0)
    machine.service.run_begin(run)
    (follower,) = machine.service.plan([event]).begin()
    follower.before(0, 1000)
    held.data.view(np.float32)[:] = 9
    follower.after(0, 1000)
    machine.service.run_end(replace(run, run_count=1))
    found = {path.name.split(".")[-5]: npy.read(path) for path in root.rglob("*.npy")}
    assert np.array_equal(found["input"], X)
    assert np.array_equal(found["output"], np.full((2, 3), 9))


@pytest.mark.parametrize("addresses", [(0, 0), (4096, 8192), (0, 4096)])
def test_tensors_without_an_address_are_tested_for_nan_one_by_one(root, addresses):
    """Neither size nor version of the bytes tells such tensors apart."""
    machine = Machine(root, "seed/gpu")
    refs = [
        replace(ref(X, slot), read=Held(array), address=address)
        for slot, (array, address) in enumerate(zip((X, X * np.float32(np.nan)), addresses, strict=True))
    ]
    machine.plan = machine.service.plan([task(outputs=refs)])
    for run in range(2):
        planned_run(machine, run)
    assert [(fact.kind, fact.tensor, fact.count) for fact in machine.service.finish().facts] == [("NaN", "output.1", 2)]


@pytest.mark.parametrize(("mode", "warned"), [(0, False), (1, False), (2, True)])
def test_marks_that_fusion_loses_are_named_where_marks_count(root, mode, warned):
    machine = Machine(root, "seed/ascend_o2", dump_mode=mode, kernels=["a"] if mode == 1 else [])
    machine.compile(replace(graph(), lost_marks=(("Default/a", "Default/b"),)))
    text = "the mark of set_dump on Default/a is lost: Default/b fused it and is not dumped"
    assert (("WARNING", text) in machine.log) is warned


def test_a_failure_that_cann_saves_is_named(root):
    """Only the operator that failed. [spec mindspore 5.4]"""
    machine = Machine(root, "seed/ascend_o2", op_debug_mode=4)
    assert machine.service.exception_path is not None
    machine.run(task("Default/A-op0", outputs=[ref(X)], model_id=1))
    assert (machine.service.tally.elsewhere, machine.service.finish().notes) == (False, (
        "nothing was dumped: no operator failed",
    ))  # fmt: skip
    machine = Machine(root.parent / "failed", "seed/ascend_o2", op_debug_mode=4)
    good, failed = (
        task("Default/A-op0", outputs=[ref(X)], model_id=1),
        task("Default/B-op0", model_id=1, error="EZ9999"),
    )
    machine.run(good, failed)
    assert machine.service.why_nothing() == ""
    assert machine.service.finish().notes == ("Default/B-op0 failed: CANN saves its tensors below extra-info",)


@pytest.mark.parametrize(
    ("op_type", "arguments", "name"),
    [("TensorDump", {"file": "a/x"}, "a/x|Default/x-op0"), ("TensorDump", {}, "Default/x-op0"),
     ("Add", {"file": "a/x"}, "Default/x-op0")],
)  # fmt: skip
def test_the_file_of_a_tensordump_comes_before_its_name(root, op_type, arguments, name):
    """[spec mindspore 3.4]"""
    machine = Machine(root, "2.10/ascend_o0", saved_data="statistic")
    machine.run(task("Default/x-op0", [ref(X, 0)], [ref(X)], op_type=op_type, arguments=arguments))
    machine.service.finish()
    rows = list(csv.DictReader(machine.find("statistic.csv").read_text().splitlines()))
    assert {row["Op Name"] for row in rows} == {name}
    assert {row["Op Type"] for row in rows} == {op_type}


@pytest.mark.parametrize("raised", [True, False])
def test_a_flag_of_the_device_is_a_finding_of_any_dump(root, raised):
    machine = Machine(root, "seed/ascend_o2")
    machine.run(task(outputs=[ref(X)], model_id=1, overflow=raised))
    facts = machine.service.finish().facts
    assert [(fact.kind, fact.op_name, fact.iteration) for fact in facts] == (
        [("overflow", "Default/Add-op0", 0)] if raised else []
    )


# -- the other modes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "seen"), [("seed/cpu", 1.0), ("seed/ascend_o0", 1.0), ("2.10/cpu", 9.0), ("2.10/ascend_o0", 1.0)]
)
def test_inputs_that_the_kernel_overwrites(root, profile, seen):
    weight = ref(np.ones(4, np.float32), 0)
    machine = Machine(root, profile)

    def kernel(event):
        weight.read().view(np.float32)[:] = 9

    machine.run(task("Default/AssignAdd-op0", [weight], [weight]), kernel=kernel)
    assert npy.read(machine.find("input.0"))[0] == seen
    assert npy.read(machine.find("output.0"))[0] == 9
    first, second = sorted(machine.files(), key=lambda name: name.split(".")[4] if name.endswith(".npy") else "")[-2:]
    assert "input" in first
    assert "output" in second


def test_overflow_dump(root):
    bad = np.array([1, np.inf], np.float32)
    tasks = [
        add(),
        task("Default/Exp-op0", [ref(X, 0)], [ref(bad)]),
        task("Default/Cast-op0", [ref(bad, 0)], [ref(np.array([np.inf]), 0)]),
        task("Default/Log-op0", [ref(bad, 0)], [ref(np.array([np.nan], np.float16), 0)]),
        task("Default/Sqrt-op0", [ref(bad, 0)], [ref(np.array([np.nan], ml_dtypes.bfloat16), 0)]),
    ]
    machine = Machine(root, "seed/ascend_o0", op_debug_mode=3, overflow_number=2)
    machine.run(*tasks)
    assert io_of(machine) == [
        f"{op}.Default_{op}-op0.0.0.{io}.0" for op in ("Exp", "Log") for io in ("input", "output")
    ]
    everything = Machine(root.parent / "all", "seed/ascend_o0", op_debug_mode=3)
    everything.run(*tasks)
    assert len(everything.names()) == 6


def test_overflow_dump_shows_operands_as_they_were(root):
    weight = ref(np.ones(4, np.float32), 0)
    machine = Machine(root, "seed/ascend_o0", op_debug_mode=3)

    def kernel(event):
        weight.read().view(np.float32)[:] = np.inf

    machine.run(task("Default/AssignAdd-op0", [weight], [weight]), kernel=kernel)
    assert npy.read(machine.find("input.0"))[0] == 1
    assert np.isinf(npy.read(machine.find("output.0"))[0])


def test_overflow_mode_of_a_release_on_a_cpu_dumps_everything(root):
    machine = Machine(root, "2.10/cpu", op_debug_mode=3)
    machine.run(add())
    assert len(machine.names()) == 3


def test_exception_dump_saves_the_inputs_of_the_operator_that_failed(root):
    machine = Machine(root, "seed/ascend_o0", op_debug_mode=4, input_output=2)
    failed = task("Default/Exp-op0", [ref(X, 0), ref(Y, 1)], [ref(X)], error="EZ9999: AI Core error")
    machine.run(add(), failed)
    assert io_of(machine) == ["Exp.Default_Exp-op0.0.0.input.0", "Exp.Default_Exp-op0.0.0.input.1"]
    assert any(level == "ERROR" and "Default/Exp-op0" in text for level, text in machine.log)


def test_exception_mode_of_a_release_on_a_cpu_saves_parameters_only(root):
    machine = Machine(root, "2.10/cpu", op_debug_mode=4)
    machine.run(add(), parameters=(ref(X, name="x"), ref(Y, name="y")))
    assert io_of(machine) == ["Parameter.x.0.0.output.0", "Parameter.y.0.0.output.0"]
    assert ("WARNING", "Abnormal dump is not supported on CPU backend.") in machine.log
    assert not [name for name in machine.files() if "global_execution_order" in name]


def test_arguments_of_kernels(root):
    event = task(
        "Default/fc.1-Dense/MatMul-op0", [], [ref(X)], attrs={"kernel_name": "x"},
        arguments={"transpose_b": True, "transpose_a": False, "axis": (0, 1), "nothing": None},
    )  # fmt: skip
    machine = Machine(root, "seed/ascend_o0", save_kernel_args=True)
    machine.run(event)
    path = machine.find("MatMul.Default_fc_1-Dense_MatMul-op0.json")
    assert json.loads(path.read_text()) == {"axis": "[0, 1]", "transpose_a": "False", "transpose_b": "True"}
    for profile, enable in (("2.10/cpu", True), ("seed/ascend_o0", False)):
        other = Machine(root.parent / f"none{enable}", profile, save_kernel_args=True, enable=enable)
        other.run(event)
        assert not [name for name in other.files() if "MatMul-op0.json" in name]


class Buffer:
    """A tensor whose writes are counted."""

    def __init__(self, array, **options):
        self.ref = ref(array, **options)
        self.reads = 0
        self.version = 1

    def at(self, slot):
        def read():
            self.reads += 1
            return self.ref.read()

        return replace(self.ref, slot=slot, version=self.version, read=read)


@pytest.mark.parametrize("layout", ["DefaultFormat", "FRACTAL_NZ"])
def test_what_was_made_of_a_buffer_holds_for_one_version(root, layout):
    array = np.arange(32 * 32, dtype=np.float16).reshape(32, 32)
    buffer = Buffer(array, layout=layout)
    machine = Machine(root, "seed/ascend_o0", saved_data="full", statistic_category=["max", "md5"])
    machine.run(task("Default/A-op0", outputs=[buffer.at(0)]), task("Default/B-op0", operands=[buffer.at(0)]))
    data = buffer.ref.read()
    data.flags.writeable = True
    data[:2] = np.array([2000], np.float16).view(np.uint8)
    buffer.version = 2
    machine.run(task("Default/C-op0", operands=[buffer.at(0)]))
    machine.service.finish()
    rows = [
        line.split(',"(32,32)",')[1].split(",")
        for name in machine.files()
        if name.endswith("statistic.csv")
        for line in (root / "rank_0" / name).read_text().splitlines()[1:]
    ]
    changed = array.copy()
    changed.flat[0] = 2000
    assert [row[0] for row in rows] == ["1023", "1023", "2000"]
    assert [row[1] for row in rows] == [hashlib.md5(a.tobytes()).hexdigest() for a in (array, array, changed)]
    for name, expected in (("A-op0", array), ("B-op0", array), ("C-op0", changed)):
        (path,) = [n for n in machine.files() if name in n and n.endswith(".npy")]
        assert np.array_equal(npy.read(root / "rank_0" / path), expected)


# -- the run as a whole ------------------------------------------------------------------------------------------------


def whole_run(root, profile="seed/gpu", **options):
    machine = Machine(root, profile, saved_data="full", **options)
    machine.compile(graph())
    for _ in range(3):
        machine.run(add(), parameters=(ref(X, name="w"),))
    return machine, machine.service.finish()


@pytest.mark.parametrize("profile", KERNEL_BY_KERNEL)
def test_records_read_back_are_those_that_were_written(root, profile):
    machine = Machine(root, profile)
    for _ in range(2):
        machine.run(add(), parameters=(ref(X, name="w.x"),))
    found = [record for _, record in records(str(root / "rank_0"), "Net")]
    per_run = [
        ("Add", "Default_Add-op0", "input", 0),
        ("Add", "Default_Add-op0", "input", 1),
        ("Add", "Default_Add-op0", "output", 0),
    ]
    if not profile.endswith("ascend_o0"):
        per_run.append(("Parameter", "w_x", "output", 0))
    assert [(r.op_type, r.op_name, r.io, r.slot) for r in found] == per_run * 2
    assert [r.iteration for r in found] == [0] * len(per_run) + [1] * len(per_run)
    assert {r.graph_id for r in found} == {0}
    assert {r.dtype for r in found} == {"" if profile in ("seed/gpu", "seed/cpu") else "float32"}
    stamps = [r.timestamp for r in found]
    assert stamps == sorted(set(stamps))


def digest(root):
    found = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.name != "data_dump.json":
            found.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return found.hexdigest()


def test_two_runs_write_the_same_bytes(root):
    machines = [whole_run(root / name)[0] for name in ("one", "two")]
    assert machines[0].files() == machines[1].files()
    assert digest(root / "one") == digest(root / "two")


def test_a_second_dump_into_the_same_directory(root):
    machine, _ = whole_run(root)
    newest = max(name.split(".")[4] for name in machine.files() if name.endswith(".npy"))
    with pytest.raises(BadInputError, match="already contains a dump") as caught:
        whole_run(root)
    assert "--append" in str(caught.value)
    before = set(machine.files())
    again, _ = whole_run(root, settings={"append": True})
    new = set(again.files()) - before
    assert len(new) == 12
    assert all(name.split(".")[4] > newest for name in new)
    assert any("already exist, skip copy it" in text for _, text in again.log)
    assert again.find("ms_global_execution_order_graph_0.csv").read_text() == "0\n1\n2\n" * 2
    rows = (root / "rank_0/Net/0/0/statistic.csv").read_text().splitlines()
    assert len(rows) == 9
    assert sum(row.startswith("Op Type") for row in rows) == 1
    before = set(again.files())
    wall, _ = whole_run(root, clock=WallClock())
    assert before < set(wall.files())


def test_append_goes_on_after_a_killed_run(root):
    """The half row is cut off, with a warning in the log and in the summary; every row is whole again."""
    machine, _ = whole_run(root)
    path = machine.find("Net/0/0/statistic.csv")
    rows = path.read_text().splitlines(keepends=True)
    path.chmod(0o600)
    path.write_text("".join(rows)[:-15])
    path.chmod(0o400)
    again, summary = whole_run(root, settings={"append": True})
    after = path.read_text().splitlines(keepends=True)
    assert after[: len(rows) - 1] == rows[:-1]
    assert len(after) == 2 * len(rows) - 2
    assert {line.count(",") for line in after} == {rows[1].count(",")} | {rows[0].count(",")}
    assert any("statistic.csv: the last line was unfinished" in text for _, text in again.log)
    assert any("bytes are cut off" in note for note in summary.notes)


def test_a_second_process_is_refused_while_the_first_one_dumps(root):
    """Before either has written a file, which is when looking for files finds none."""
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            machine = Machine(root, "seed/ascend_o0")
            os.write(told, b"1")
            signal.pause()
        finally:
            os._exit(0 if machine else 1)
    try:
        assert os.read(ready, 1) == b"1"
        for settings in ({}, {"append": True}):
            with pytest.raises(BadInputError, match=f"another process is writing this dump .process {pid}."):
                Machine(root, "seed/ascend_o0", settings=settings)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert whole_run(root, settings={"append": True})[1].complete


def test_a_close_that_fails_is_counted_and_named(root, monkeypatch):
    machine = Machine(root, "seed/ascend_o0", settings={"overrides": {"unwritable": "log"}}, saved_data="statistic")
    machine.compile(graph())
    with monkeypatch.context() as full:
        really = os.close

        def close(descriptor):
            grows = os.readlink(f"/proc/self/fd/{descriptor}").endswith("statistic.csv")
            really(descriptor)
            if grows:
                raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

        full.setattr(os, "close", close)
        machine.run(task(outputs=[ref(Y, 0)], task_id=12))
    summary = machine.service.finish()
    assert summary.failed
    (note,) = [note for note in summary.notes if "not everything is written" in note]
    assert "statistic.csv" in note
    assert "the disk quota is used up" in note


@pytest.mark.parametrize("durable", [False, True])
def test_the_summary_says_that_a_dump_is_durable(root, durable, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    _, summary = whole_run(root, settings={"durable": durable})
    assert any("--durable" in note for note in summary.notes) is durable
    assert any("statistic.csv" in path for path in synced) is durable
    assert any(path.endswith("/Net/0/0") for path in synced) is durable


@pytest.mark.parametrize("cell", ['a,"b"', "line\nbreak", "long" * 80 + "\n,", "tab\tand\x85"])
def test_a_dump_is_readable_whatever_a_cell_is_called(root, cell):
    machine = Machine(root, "seed/ascend_o0", saved_data="full")
    machine.compile(graph())
    machine.run(task(f"Default/{cell}/Add-op0", [ref(X, 0)], [ref(Y, 0)]), task(outputs=[ref(Y, 0)]))
    assert machine.service.finish().complete
    rows = list(dumpsim.open(root).rows())
    assert [(row["io"], row["shape"], row["max"] is None) for row in rows] == [
        ("input", [2, 3], False),
        ("output", [2, 3], False),
        ("output", [2, 3], False),
    ]
    assert all(row["path"] for row in rows)


@pytest.mark.parametrize("cell", ["nul\0", "\ud800"])
def test_a_name_that_no_file_can_have_is_counted_and_the_rest_is_written(root, cell):
    machine = Machine(root, "seed/ascend_o0", settings={"overrides": {"unwritable": "log"}}, saved_data="full")
    machine.compile(graph())
    machine.run(task(f"Default/{cell}/Add-op0", [ref(X, 0)], [ref(Y, 0)]), task(outputs=[ref(Y, 0)]))
    summary = machine.service.finish()
    assert summary.failed
    assert summary.tensors == 1
    assert any("the name has a" in note for note in summary.notes)


def test_the_summary_counts_and_the_manifest_tells_ids(root, tmp_path):
    manifest = tmp_path / "m.json"
    machine = Machine(root, "seed/ascend_o0", settings={"manifest": str(manifest), "seed": 7})
    machine.compile(graph())
    machine.run(
        task(operands=[ref(X, 0), ref(np.zeros(0, np.float32), 1)], outputs=[ref(Y, 0)], task_id=12, stream_id=3)
    )
    summary = machine.service.finish()
    assert machine.service.finish() is summary
    assert (summary.asked, summary.captured, summary.tensors, summary.rows, summary.files) == (3, 2, 2, 0, 7)
    assert summary.bytes == sum((root / "rank_0" / name).stat().st_size for name in machine.files())
    text = str(summary)
    assert "asked 3, captured 2, skipped 1 (1 no elements), written 2 tensors; 7 files" in text
    found = Manifest.model_validate_json(manifest.read_text())
    assert {entry.path for entry in found.files} == {name for name in machine.files() if name.endswith(".npy")}
    assert {(entry.task_id, entry.stream_id) for entry in found.files} == {(12, 3)}
    assert (found.profile, found.seed, found.iterations) == ("seed/ascend_o0", 7, [0])


def test_a_dump_that_is_never_finished_leaves_nothing_open(root, tmp_path):
    machine = Machine(root, "seed/ascend_o0", settings={"manifest": str(tmp_path / "m.json")}, saved_data="full")
    machine.run(add())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del machine
        gc.collect()
    assert not (tmp_path / "m.json").exists()


def test_a_manifest_that_cannot_be_written_is_an_error_and_the_dump_is_whole(root, tmp_path):
    machine = Machine(root, "seed/ascend_o0", settings={"manifest": str(tmp_path / "missing/m.json")})
    machine.run(add())
    with pytest.raises(DumpWriteError, match=r"missing/m\.json"):
        machine.service.finish()
    assert len(machine.names()) == 3


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"iteration": "7-3"}, "matches nothing"),
        ({"iteration": "99"}, "no graph ran in an iteration"),
        ({"dump_mode": 1, "kernels": ["conv"]}, "kernels matches no operator"),
        ({"dump_mode": 2}, "no operator has the mark"),
        ({"op_debug_mode": 3}, "no operator overflowed"),
        ({"op_debug_mode": 4}, "no operator failed"),
        ({"support_device": [4]}, "support_device does not list device 0"),
    ],
)
def test_an_empty_dump_says_why(root, changes, reason):
    machine = Machine(root, "seed/ascend_o0", **changes)
    machine.run(add())
    summary = machine.service.finish()
    assert reason in str(summary)
    assert summary.asked == 0


def test_a_device_that_is_not_listed_writes_nothing_at_all(root):
    machine = Machine(root, "seed/ascend_o0", support_device=[4])
    machine.compile(graph())
    machine.run(add())
    assert not machine.service.enabled
    assert machine.service.compile_options(CompileOptions()).memory_reuse
    assert not root.exists()


def test_a_graph_without_ir_text_leaves_its_execution_order_alone(root):
    for number, profile in enumerate(("seed/ascend_o0", "2.10/ascend_o0", "seed/cpu")):
        machine = Machine(root / str(number), profile, dump_mode=1, kernels=["Default/Add-op0"])
        machine.compile(replace(graph(), doc=None))
        machine.run(add())
        machine.service.finish()
        left = {path.name for path in (root / str(number)).rglob("*") if path.is_file()}
        assert "ms_execution_order_graph_0.csv" in left
        assert not any(name.endswith((".ir", ".pb")) for name in left)
        assert any(name.startswith("Add.") for name in left), left


def test_mixed_training_is_refused_by_the_seed(root):
    event = graph()
    node = replace(event.doc.nodes[0], primitive_attrs=(("primitive_target", "CPU"),))
    event = replace(event, doc=replace(event.doc, nodes=(node,)))
    with pytest.raises(DumpConfigError, match=r"Default/Add-op0.*mixed training"):
        Machine(root / "a", "seed/ascend_o0").compile(event)
    Machine(root / "b", "2.10/ascend_o0").compile(event)
    Machine(root / "c", "seed/cpu").compile(event)


def test_synchronous_dump_turns_memory_reuse_off(root):
    assert not Machine(root).service.compile_options(CompileOptions()).memory_reuse


class FullAfter:
    def __init__(self, room):
        self.room = room

    def charge(self, nbytes):
        if nbytes > self.room:
            raise OSError(28, "No space left on device")
        self.room -= nbytes


def test_a_full_disk_stops_the_seed_and_not_a_release(root):
    plain = {"overrides": {"metadata": "false"}}
    machine = Machine(root / "a", "seed/ascend_o0", settings=plain, disk=FullAfter(400))
    with pytest.raises(DumpWriteError, match="the disk is full"):
        machine.run(add())
    assert len(machine.names()) == 2
    assert "not everything is written" in str(machine.service.finish())
    other = Machine(root / "b", "2.10/ascend_o0", disk=FullAfter(400))
    other.run(add())
    summary = other.service.finish()
    assert (summary.captured, summary.tensors) == (3, 2)
    assert "the disk is full" in str(summary)
    assert [level for level, _ in other.log] == ["ERROR"]


def test_a_path_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DumpWriteError, match="is a file"):
        Machine(tmp_path / "file/dump", "seed/ascend_o0")
    machine = Machine(tmp_path / "file/dump", "2.10/ascend_o0")
    machine.run(add())
    assert "is a file" in str(machine.service.finish())


def test_a_dump_that_is_finished_in_a_step_closes_its_tables(root):
    """As where a script ends in the middle of a step."""
    machine = Machine(root, "seed/ascend_o0", saved_data="statistic")
    machine.compile(graph())
    machine.service.run_begin(RunEvent(root_graph_id=0, graph_id=0, run_count=0, kind="train"))
    operator = add()
    assert machine.service.wants(operator)
    machine.service.before_task(operator)
    machine.service.after_task(operator)

    def is_open():
        links = []
        for descriptor in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                links.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        return any(link.startswith(str(root)) and link.endswith("statistic.csv") for link in links)

    assert is_open()
    machine.service.finish()
    assert not is_open()
    assert len(next(root.rglob("statistic.csv")).read_text().splitlines()) == 4
