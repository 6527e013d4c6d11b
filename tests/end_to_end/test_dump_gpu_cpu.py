"""GPU and CPU as the documents describe them, and where releases differ."""

import csv
import json
import re

import dumprun
import numpy as np
import pytest

TYPES = """
    import sys
    import numpy as np
    import mindspore as ms
    from mindspore import Parameter, Tensor, nn, ops

    ms.set_context(mode=ms.GRAPH_MODE)
    COMPLEX = len(sys.argv) == 1

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.count = Parameter(Tensor(np.array([1, 2, 3], np.float32)), name="my.count")
            self.assign = ops.AssignAdd()

        def construct(self, x, z):
            half = ops.cast(x, ms.bfloat16)
            half = half + half
            self.assign(self.count, x)
            if COMPLEX:
                z = z * z
            return ops.cast(half, ms.float32), z, ops.cast(x, ms.int32)

    z = np.array([1 + 2j, 2, 3], np.complex64) if COMPLEX else np.ones(3)
    Net()(Tensor(np.array([1.5, -2, 3], np.float32)), Tensor(z))
"""


def header(path):
    """The header of an npy file, as text."""
    raw = path.read_bytes()
    return raw[10 : 10 + int.from_bytes(raw[8:10], "little")].decode().rstrip()


def test_a_gpu_saves_statistics_parameters_constants_metadata_and_history(tmp_path):
    run = dumprun.dump(tmp_path, options=("--device", "gpu"), saved_data="full", save_kernel_args=True, iteration="0|2")
    below = sorted(path.relative_to(run.rank).as_posix() for path in run.files() if path.suffix != ".npy")
    assert [name for name in below if not name.endswith(".json")] == [
        "Net/0/0/statistic.csv",
        "Net/0/2/statistic.csv",
        "execution_order/ms_execution_order_graph_0.csv",
        "execution_order/ms_global_execution_order_graph_0.csv",
        "graphs/ms_output_trace_code_graph_0.ir",
        "graphs/ms_output_trace_code_graph_0.pb",
    ]
    assert "Net/0/0/MatMul.Default_fc-Dense_MatMul-op0.json" in below
    assert json.loads((run.rank / ".dump_metadata/config.json").read_text()) == {
        "device_target": "GPU",
        "ms_version": "2.5.0",
    }
    assert (run.rank / ".dump_metadata/data_dump.json").read_bytes() == (tmp_path / "dump.json").read_bytes()
    assert (run.rank / "execution_order/ms_global_execution_order_graph_0.csv").read_text() == "0\n2\n"
    constants = [name for name in run.names() if "constants" in name]
    assert len(constants) == 1  # Tensor constants only
    assert re.fullmatch(r"Net/0/constants/Parameter\.data-\d+\.0\.0\.output\.0\.DefaultFormat\.npy", constants[0])
    assert np.array_equal(np.load(next((run.rank / "Net/0/constants").iterdir())), np.arange(5, dtype=np.float32))
    assert {name.rsplit(".", 2)[1] for name in run.names()} == {"DefaultFormat"}  # no number type in names
    parameters = [row for row in run.rows(2) if row["Op Type"] == "Parameter"]
    assert sorted(row["Op Name"] for row in parameters) == ["conv_weight", "fc_bias", "fc_weight"]
    for row in parameters:
        array = np.load(run.tensor(f"Parameter.{row['Op Name']}.0.0.output.0.", 2))
        assert (row["Max Value"], row["Data Size"]) == (f"{array.max():g}", str(array.nbytes))
    assert len(run.rows(2)) == len([name for name in run.names() if name.startswith("Net/0/2/")])


def test_a_cpu_of_the_documents_saves_constants_and_refuses_statistics(tmp_path):
    run = dumprun.dump(
        tmp_path, options=("--device", "cpu"), support_device=[], trans_flag=False, save_kernel_args=True
    )
    assert len([name for name in run.names() if "constants" in name]) == 1
    assert {name.split("/")[-1].split(".")[1] for name in run.names() if "/Parameter." in name} >= {"fc_bias", "x"}
    assert not list((run.rank / "Net").rglob("*.json"))
    assert (run.rank / "execution_order/ms_global_execution_order_graph_0.csv").read_text() == "0\n"
    for changes, text in (
        ({"saved_data": "full"}, "storing statistic dump is only supported on GPU and Ascend"),
        ({"enable": False}, "$.e2e_dump_settings.enable: on CPU this field must be true"),
        ({"op_debug_mode": 3}, "on CPU only op_debug_mode 0 is supported"),
    ):
        refused = dumprun.dump(tmp_path, name="refused", options=("--device", "cpu"), code=1, **changes)
        assert text in refused.err
        assert "RuntimeError" in refused.err or "DumpConfigError" in refused.err
        assert not refused.root.exists()


SUM = """
    import numpy as np
    import mindspore as ms
    from mindspore import Tensor, nn, ops

    ms.set_context(mode=ms.GRAPH_MODE)

    class Net(nn.Cell):
        def construct(self, x, y):
            return x + y, ops.masked_select(x, x > 9)

    x = Tensor(np.ones((2, 3), np.float32))
    Net()(x, x)
"""


def test_a_gpu_saves_no_inputs_of_the_graph_and_rows_of_tensors_without_elements(tmp_path):
    run = dumprun.dump(
        tmp_path, SUM, options=("--device", "gpu"), saved_data="full", statistic_category=["max", "count"]
    )
    assert not [name for name in run.names() if "Parameter." in name and "constants" not in name]
    assert len([name for name in run.names() if "/Add.Default_Add" in name]) == 3, run.names()
    (row,) = [row for row in run.rows() if row["Data Size"] == "0"]
    assert (row["IO"], row["Shape"], row["Max Value"], row["Count"]) == ("output", "(0)", "null", "null")
    assert not [name for name in run.names() if f"/{row['Op Type']}." in name and ".output." in name]


# release, device: last field of bfloat16 names, descr of bfloat16 files, complex numbers, first operand of AssignAdd
RULES = {
    ("seed", "ascend"): ("bfloat16", "<f4", "saved", "before"),
    ("seed", "gpu"): ("DefaultFormat", "<f4", "saved", "before"),
    ("seed", "cpu"): ("DefaultFormat", "<f4", "saved", "before"),
    ("2.7", "ascend"): ("bfloat16", "<f4", "dropped", "before"),
    ("2.10", "gpu"): ("bfloat16", "<f4", "dropped", "before"),
    ("2.10", "cpu"): ("BFloat16", "<E2", "error", "after"),
}


@pytest.mark.parametrize(("release", "device"), RULES)
def test_number_types_and_operands_in_place(tmp_path, release, device):
    word, descr, numbers, inplace = RULES[release, device]
    statistics = {} if device == "cpu" else {"saved_data": "full"}
    options = ("--mindspore", release, "--device", device)
    if numbers == "error":
        refused = dumprun.dump(tmp_path, TYPES, name="refused", options=options, code=1, **statistics)
        assert "Unexpected type Complex" in refused.err
        run = dumprun.dump(tmp_path, TYPES, arguments=["plain"], options=options, **statistics)
    else:
        run = dumprun.dump(tmp_path, TYPES, options=options, **statistics)
    half = run.tensor("Cast.Default_Cast-op0.0.0.output.0.")
    assert half.name.split(".")[-2] == word
    assert f"'descr': '{descr}'" in header(half)
    if descr == "<f4":
        assert np.array_equal(np.load(half), np.array([1.5, -2, 3], np.float32))
    else:
        assert half.read_bytes()[-6:] == np.array([0x3FC0, 0xC000, 0x4040], "<u2").tobytes()
    before = np.load(run.tensor("AssignAdd.Default_AssignAdd-op0.0.0.input.0."))
    assert before.tolist() == ([1, 2, 3] if inplace == "before" else [2.5, 0, 6])
    assert np.load(run.tensor("AssignAdd.Default_AssignAdd-op0.0.0.output.0.")).tolist() == [2.5, 0, 6]
    if device != "ascend":
        assert np.load(run.tensor("Parameter.my_count.")).tolist() == [2.5, 0, 6]
    if numbers != "dropped":
        assert "skipped" not in run.err  # a cast's type is not a tensor that is missing
    squares = [name for name in run.names() if "/Mul." in name]
    assert len(squares) == {"saved": 3, "dropped": 0, "error": 0}[numbers]
    if numbers == "saved":
        assert np.load(run.tensor("Mul.Default_Mul-op0.0.0.output.0.")).tolist() == [-3 + 4j, 4, 9]
    if numbers == "dropped":
        assert "complex64 is dropped" in run.err
    if statistics:
        with open(run.rank / "Net/0/0/statistic.csv") as file:
            rows = list(csv.reader(file))
        assert "Mul" not in {row[0] for row in rows}  # complex numbers have no statistics
        kinds = {row[8] for row in rows if row[0] == "Cast"}
        assert kinds == {"bfloat16", "float32", "int32"}
        trailing = release != "seed"
        assert {len(row) - len(rows[0]) for row in rows[1:]} == {int(trailing)}
        first = next(row for row in rows if row[0] == "AssignAdd")
        assert (first[1], first[9]) == (
            ("Default/AssignAdd-op0", "[3]") if release == "2.10" else ("Default_AssignAdd-op0", "(3)")
        )


NETS = """
    import numpy as np
    import mindspore as ms
    from mindspore import Tensor, nn, ops

    ms.set_context(mode=ms.GRAPH_MODE)

    class A(nn.Cell):
        def construct(self, x):
            return ops.exp(x)

    class B(nn.Cell):
        def construct(self, x):
            return ops.sin(x)

    class Deep(nn.Cell):
        def __init__(self, depth):
            super().__init__()
            if depth:
                self.a_cell_whose_name_is_rather_long_for_a_cell = Deep(depth - 1)
            self.depth = depth

        def construct(self, x):
            return self.a_cell_whose_name_is_rather_long_for_a_cell(x) if self.depth else ops.cos(x)

    a, b, x = A(), B(), Tensor(np.ones(3, np.float32))
    for net in (a, b, a, b):
        net(x)
    Deep(5)(x)
"""


@pytest.mark.parametrize(
    ("release", "device", "places", "histories"),
    [
        ("seed", "gpu", ["0/0", "0/2", "1/1", "1/3", "2/4"], ["0\n2\n", "1\n3\n", "4\n"]),
        ("2.10", "gpu", ["0/0", "0/1", "1/1", "1/2", "2/2"], ["0\n", "1\n2\n", None]),
        ("seed", "ascend", ["0/0", "0/2", "1/1", "1/3", "2/4"], [None, None, None]),
    ],
)
def test_iteration_numbers_of_several_graphs_and_names_that_are_too_long(tmp_path, release, device, places, histories):
    run = dumprun.dump(tmp_path, NETS, options=("--mindspore", release, "--device", device), iteration="all")
    assert sorted({path.parent.relative_to(run.rank / "Net").as_posix() for path in run.rank.rglob("*.npy")}) == places
    for graph, text in enumerate(histories):
        path = run.rank / f"execution_order/ms_global_execution_order_graph_{graph}.csv"
        assert (path.read_text() if path.exists() else None) == text
    directory = run.rank / "Net" / places[-1]
    lines = [line.split(",", 1) for line in (directory / "mapping.csv").read_text().splitlines()]
    assert len(lines) == 2  # input and output of the cosine
    for short, name in lines:
        assert re.fullmatch(r"\d+\.npy", short)
        assert len(name.encode()) > 255
        assert name.startswith("Cos.Default_")
        expected = np.ones(3, np.float32) if ".input.0." in name else np.cos(np.ones(3, np.float32))
        assert np.allclose(np.load(directory / short), expected)
    again = dumprun.dump(
        tmp_path, NETS, name="again", options=("--mindspore", release, "--device", device), iteration="all"
    )
    assert run.digest() == again.digest()


FLOW = """
    import numpy as np
    import mindspore as ms
    from mindspore import Tensor, nn, ops

    ms.set_context(mode=ms.GRAPH_MODE)

    class Net(nn.Cell):
        def construct(self, x):
            if ops.reduce_sum(x) > 0:
                y = ops.exp(x)
            else:
                y = ops.sin(x)
            return ops.relu(y)

    net = Net()
    for sign in (1, 1, -1):
        net(Tensor(sign * np.ones(3, np.float32)))
"""


@pytest.mark.parametrize("device", ["gpu", "ascend"])
def test_segments_of_control_flow(tmp_path, device):
    run = dumprun.dump(tmp_path, FLOW, options=("--device", device), iteration="all")
    graphs = {int(path.stem.rsplit("_", 1)[1]) for path in (run.rank / "graphs").glob("*.ir")}
    orders = {int(path.stem.rsplit("_", 1)[1]) for path in (run.rank / "execution_order").glob("ms_exec*.csv")}
    assert graphs == orders
    assert len(graphs) > 2
    histories = {path.name: path.read_text() for path in (run.rank / "execution_order").glob("ms_global*")}
    places = {}
    for path in run.rank.rglob("*.npy"):
        kind = path.name.split(".")[0]
        if kind in ("Exp", "Sin", "ReLU"):
            places.setdefault(kind, set()).add(path.parent.relative_to(run.rank / "Net").as_posix())
    iterations = {kind: sorted(place.split("/")[1] for place in found) for kind, found in places.items()}
    assert iterations == {"Exp": ["0", "1"], "Sin": ["2"], "ReLU": ["0", "1", "2"]}  # of the root graph
    owners = {kind: {place.split("/")[0] for place in found} for kind, found in places.items()}
    if device == "ascend":
        assert histories == {}
        assert set().union(*owners.values()) == {"0"}  # data lies with the root graph
    else:
        assert histories == {"ms_global_execution_order_graph_0.csv": "0\n1\n2\n"}
        assert owners["Exp"] != owners["Sin"]
        assert {int(graph) for found in owners.values() for graph in found} <= graphs
