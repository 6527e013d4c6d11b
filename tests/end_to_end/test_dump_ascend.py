"""Ascend O0 and O1 as the documents describe them: what a config asks for is what is on disk."""

import hashlib
import json
import re
import stat
from pathlib import Path

import dumprun
import numpy as np
import pytest

from dumpsim.codecs import irtext
from dumpsim.tensor.device_stats import device_statistics
from dumpsim.tensor.layout import to_device

OPERATORS = ["Add", "BiasAdd", "Conv2D", "Flatten", "MatMul", "ReLU"]
CONVERSIONS = ["Cast", "TransData"]  # kernels of the 910A between private formats and the host's
TENSORS = {"910B": 19, "910A": 43}
CATEGORIES = {
    "max": ("Max Value", np.max),
    "min": ("Min Value", np.min),
    "avg": ("Avg Value", lambda x: np.mean(x, dtype=np.float64)),
    "count": ("Count", np.size),
    "negative zero count": ("Negative Zero Count", lambda x: np.sum(x < 0)),
    "positive zero count": ("Positive Zero Count", lambda x: np.sum(x > 0)),
    "nan count": ("NaN Count", lambda x: np.sum(x != x)),
    "negative inf count": ("Negative Inf Count", lambda x: np.sum(x == -np.inf)),
    "positive inf count": ("Positive Inf Count", lambda x: np.sum(x == np.inf)),
    "zero count": ("Zero Count", lambda x: np.sum(x == 0)),
    "md5": ("MD5", lambda x: hashlib.md5(x.tobytes()).hexdigest()),
    "l2norm": ("L2Norm Value", lambda x: np.sqrt(np.sum(np.square(x, dtype=np.float64)))),
}


def nc1hwc0(host):
    """The five-dimensional layout, written down once more. [spec mindspore 10.3]"""
    n, c, h, w = host.shape
    padded = np.zeros((n, -(-c // 16) * 16, h, w), host.dtype)
    padded[:, :c] = host
    return padded.reshape(n, -1, 16, h, w).transpose(0, 1, 3, 4, 2)


def both(folder, chip):
    """Runs of one chip with trans_flag true and false."""
    return [
        dumprun.dump(
            folder,
            name=f"trans_{flag}",
            options=("--chip", chip),
            trans_flag=flag,
            saved_data="full",
            statistic_category=list(CATEGORIES),
            support_device=None,
        )
        for flag in (True, False)
    ]


@pytest.mark.parametrize("chip", ["910A", "910B"])
def test_a_full_dump_of_each_chip_in_both_layouts(tmp_path, chip, graph_proto):
    host, device = both(tmp_path, chip)
    check_graphs(host, chip, graph_proto)
    check_layouts(host, device, chip)
    check_statistics(host)
    check_files(host, TENSORS[chip])
    if chip == "910A":
        for precision in ("high", "low"):
            check_device_statistics(host, device, tmp_path, precision)
    else:
        check_samples_and_arguments(host, tmp_path)


def check_layouts(host, device, chip):
    """trans_flag true gives tensors of the host, false the bytes of the device."""
    assert host.types() == sorted([*OPERATORS, *(CONVERSIONS if chip == "910A" else [])])
    assert {name.split(".")[-3] for name in host.names()} == {"DefaultFormat"}
    assert {name.split(".")[-3] for name in device.names()} == (
        {"DefaultFormat", "NC1HWC0", "FRACTAL_Z", "FRACTAL_NZ"} if chip == "910A" else {"DefaultFormat"}
    )
    pairs = list(zip(host.names(), device.names(), strict=True))
    assert len(pairs) == TENSORS[chip]
    for one, other in pairs:
        assert one.rsplit(".", 3)[0] == other.rsplit(".", 3)[0]  # operator, io and slot
        there = np.load(device.tensor(other.split("/")[-1]))
        here = np.load(host.tensor(one.split("/")[-1]))
        layout, kind = other.split(".")[-3:-1]
        if layout == "DefaultFormat":
            assert np.array_equal(here, there)
            continue
        assert (kind, here.dtype) == ("float16", np.float32)
        rounded = here.astype(np.float16)
        assert np.array_equal(rounded.astype(np.float32), here)  # the host's values went through the device's type
        assert there.tobytes() == to_device(rounded, layout).tobytes()
        if layout == "NC1HWC0":
            assert np.array_equal(there, nc1hwc0(rounded))


def check_graphs(run, chip, graph_proto):
    """Text and protobuf tell of the same operators; the text's second line tells what the device works on."""
    text = (run.rank / "graphs/ms_output_trace_code_graph_0.ir").read_text()
    model = graph_proto.decode((run.rank / "graphs/ms_output_trace_code_graph_0.pb").read_bytes())
    document = irtext.parse(text)
    assert irtext.render(document, "old") == text
    assert re.search(r"\n      : full_name_with_scope: \(Default/conv-Conv2d/Conv2D-op0\)\n", text)
    assert re.search(r"\n      # In file \S+\.py\(\d+\)/ +x = self.relu\(self.conv\(x\)\)/\n", text)
    kernels = {node.full_name: node for node in document.kernels()}
    assert kernels.keys() <= {node["full_name"] for node in model["graph"]["node"]}
    order = (run.rank / "execution_order/ms_execution_order_graph_0.csv").read_text().splitlines()[1:]
    assert set(order) <= kernels.keys()
    line = (
        "      : (<Float16xNC1HWC0[const vector]{2, 1, 4, 4, 16}>, <Float16xFRACTAL_Z[const vector]{9, 2, 16, 16}>) -> "
        "(<Float16xNC1HWC0[const vector]{2, 2, 4, 4, 16}>)"
        if chip == "910A"
        else "      : (<Float32xDefaultFormat[const vector]{2, 3, 4, 4}>, <Float32xDefaultFormat[const vector]"
        "{20, 3, 3, 3}>) -> (<Float32xDefaultFormat[const vector]{2, 20, 4, 4}>)"
    )
    assert line in text.splitlines()


def check_statistics(run):
    """Every category, held against numpy."""
    rows = run.rows()
    assert list(rows[0]) == [
        *["Op Type", "Op Name", "Task ID", "Stream ID", "Timestamp", "IO", "Slot", "Data Size", "Data Type", "Shape"],
        *(title for title, _ in CATEGORIES.values()),
    ]
    assert len(rows) == len(run.names())
    for row in rows:
        part = f"{row['Op Type']}.{row['Op Name']}.0.0.{row['IO']}.{row['Slot']}."
        path = run.tensor(part)
        assert f".{row['Timestamp']}." in path.name
        array = np.load(path)
        assert row["Shape"] == str(array.shape).replace(" ", "").replace(",)", ")")
        assert (row["Data Size"], row["Data Type"]) == (str(array.nbytes), array.dtype.name)
        for title, truth in CATEGORIES.values():
            value = truth(array)
            assert row[title] == (value if isinstance(value, str) else f"{float(value):g}"), (part, title)


def check_files(run, tensors):
    """Permissions, and the files beside tensors."""
    for path in [run.root, *run.root.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o400), path
    below = {path.relative_to(run.rank).as_posix() for path in run.files() if path.suffix != ".npy"}
    assert below == {
        ".dump_metadata/config.json",
        ".dump_metadata/data_dump.json",
        "Net/0/0/statistic.csv",
        "graphs/ms_output_trace_code_graph_0.ir",
        "graphs/ms_output_trace_code_graph_0.pb",
        "execution_order/ms_execution_order_graph_0.csv",
    }  # no execution history on Ascend
    order = (run.rank / "execution_order/ms_execution_order_graph_0.csv").read_text().splitlines()
    assert order[0] == "NodeExecutionOrder-FullNameWithScope"
    stamped = [name.split("/")[-1].split(".")[1] for name in run.names()]
    assert [line.replace("/", "_") for line in order[1:]] == list(dict.fromkeys(stamped))
    assert f"asked {tensors}, captured {tensors}" in run.err


def check_device_statistics(host, device, folder, precision):
    """Statistics of the device's own number types, null where its kernels do not take the type."""
    run = dumprun.dump(
        folder,
        name=f"device_{precision}",
        options=("--chip", "910A"),
        saved_data="statistic",
        stat_calc_mode="device",
        device_stat_precision_mode=precision,
        statistic_category=["max", "md5", "min", "avg", "l2norm"],
    )
    assert run.names() == []
    assert "md5" not in "".join(run.rows()[0]).lower()
    assert "dropped: md5" in run.err
    by_kind = {}
    for row in run.rows():
        by_kind.setdefault(row["Data Type"], []).append(row)
        if row["Data Type"] != "float16" or row["Op Type"] != "Conv2D":
            continue
        part = f"{row['Op Type']}.{row['Op Name']}.0.0.{row['IO']}.{row['Slot']}."
        found = device_statistics(np.load(host.tensor(part)).astype(np.float16), precision)
        expected = [f"{float(value):g}" for value in (found.max, found.min, found.avg, found.l2norm)]
        assert [row[t] for t in ("Max Value", "Min Value", "Avg Value", "L2Norm Value")] == expected
        assert int(row["Data Size"]) == np.load(device.tensor(part)).nbytes  # of the allocation, padding included
    assert set(by_kind) == {"float16", "float32", "bool", "int64"}
    booleans = {row["Max Value"] for row in by_kind["bool"]}
    assert booleans == ({"True", "False"} if precision == "high" else {"null"})
    assert {row["L2Norm Value"] for row in by_kind["int64"]} == {"null"}


def check_samples_and_arguments(whole, folder):
    """A sample is the head of its tensor; arguments of kernels are texts."""
    run = dumprun.dump(folder, name="samples", sample_mode=1, sample_num=7, saved_data="full", save_kernel_args=True)
    for name in run.names():
        found, all_of_it = np.load(run.tensor(name.split("/")[-1])), np.load(whole.tensor(name.split("/")[-1]))
        assert np.array_equal(found, all_of_it.reshape(-1)[:7] if all_of_it.size > 7 else all_of_it)
        assert found.shape == ((7,) if all_of_it.size > 7 else all_of_it.shape)
    assert {row["Shape"] for row in run.rows() if row["Op Type"] == "Conv2D"} == {"(7)"}
    arguments = {path.name: json.loads(path.read_text()) for path in (run.rank / "Net/0/0").glob("*.json")}
    assert len(arguments) == len(OPERATORS)
    # the example of the documents
    assert arguments["MatMul.Default_fc-Dense_MatMul-op0.json"] == {"transpose_a": "False", "transpose_b": "True"}
    assert arguments["Conv2D.Default_conv-Conv2d_Conv2D-op0.json"]["kernel_size"] == "[3, 3]"


def test_kernels_by_type_by_name_and_by_pattern(tmp_path):
    run = dumprun.dump(
        tmp_path,
        dump_mode=1,
        kernels=["conv", "Default/relu-ReLU/ReLU-op0", "name-regex(Default/.+/Bias.+)", "Softmax", "default/Add-op0"],
        iteration="0 | 2",
    )
    assert run.types() == ["BiasAdd", "Conv2D", "ReLU"]
    assert sorted(path.name for path in (run.rank / "Net/0").iterdir()) == ["0", "2"]
    unused = [line.rsplit(": ", 1)[1] for line in run.err.splitlines() if "Unused Kernel in json" in line]
    assert unused == ["Softmax", "default/Add-op0"]


def test_inputs_only_below_the_diagnostic_path(tmp_path):
    run = dumprun.dump(
        tmp_path,
        name="debug_dump",
        path=None,
        net_name="Le-Net_5",
        input_output=1,
        initial_iteration=10,
        iteration="11-12|40",
        env={"MS_DIAGNOSTIC_DATA_PATH": str(tmp_path)},
    )
    assert {name.rsplit("/", 1)[0] for name in run.names()} == {"Le-Net_5/0/11", "Le-Net_5/0/12"}
    assert {name.split(".")[-5] for name in run.names()} == {"input"}


def test_outputs_only_without_waiting_for_them(tmp_path):
    run = dumprun.dump(tmp_path, input_output=2, enable=False, op_debug_mode=0)
    assert {name.split(".")[-5] for name in run.names()} == {"output"}
    assert run.types() == OPERATORS


TRAINING = """
    import sys
    import numpy as np
    import mindspore as ms
    from mindspore import Tensor, nn, ops

    ms.set_context(mode=ms.GRAPH_MODE)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.first = nn.Dense(4, 4)
            self.second = nn.Dense(4, 2)
            self.tanh = ops.Tanh()

        def construct(self, x):
            return ops.reduce_sum(self.second(self.tanh(self.first(x))))

    ms.set_seed(1)
    net = Net()
    ms.set_dump(net.second if sys.argv[1] == "cell" else net.tanh)
    gradient = ms.value_and_grad(net, None, net.trainable_params())
    gradient(Tensor(np.ones((2, 4), np.float32)))
"""


@pytest.mark.parametrize("target", ["cell", "primitive"])
def test_set_dump_takes_the_gradients_of_a_cell_and_the_forward_side_of_a_primitive(tmp_path, target):
    run = dumprun.dump(tmp_path, TRAINING, arguments=[target], dump_mode=2)
    types = [(name.split(".")[1].startswith("Gradients"), Path(name).name.split(".")[0]) for name in run.names()]
    if target == "primitive":
        assert set(types) == {(False, "Tanh")}
        return
    assert set(types) == {(False, "MatMul"), (False, "BiasAdd"), (True, "BiasAddGrad"), (True, "MatMul")}
    weights = [
        np.load(path) for path in run.files() if path.name.startswith("MatMul.Default") and ".input.1." in path.name
    ]
    assert [weight.shape for weight in weights] == [(2, 4)]  # of the marked cell, and of no other


def test_a_device_that_is_not_listed_dumps_nothing_and_says_so(tmp_path):
    run = dumprun.dump(tmp_path, support_device=[1, 2])
    assert not run.root.exists()
    assert "nothing is dumped: support_device does not list device 0" in run.err
    assert run.out.startswith("shape")


def test_without_the_second_section_three_alerts_and_nothing_else(tmp_path):
    document = dumprun.config(tmp_path / "dump")
    del document["e2e_dump_settings"]
    run = dumprun.dump(tmp_path, document=document)
    assert [f"[Dump Alert {n}/3]" in run.err for n in (1, 2, 3, 4)] == [True, True, True, False]
    assert not run.root.exists()
    assert "there is no e2e_dump_settings section, which O0 and O1 need" in run.err


MODES = """
    import os
    import numpy as np
    import mindspore as ms
    from mindspore import Tensor, nn, ops
    from dumpsim.core.errors import DumpsimError

    ms.set_context(mode=ms.GRAPH_MODE, jit_level="O2")

    class Net(nn.Cell):
        def construct(self, x):
            return ops.exp(x)

    for ge in ("0", "1"):
        os.environ["ENABLE_MS_GE_DUMP"] = ge
        try:
            Net()(Tensor(np.ones(3, np.float32)))
        except DumpsimError as error:
            print(type(error).__name__, error)
"""


def test_whole_graphs_are_refused_by_the_release_that_removed_them(tmp_path):
    run = dumprun.dump(tmp_path, MODES, options=("--mindspore", "2.10"))
    o2, ge = run.out.splitlines()
    for line in (o2, ge):
        assert line.startswith("UnsupportedError")
        assert "are gone since MindSpore 2.6" in line
        assert "--set o2=present" in line
    assert not run.root.exists()


def test_the_variable_is_read_before_the_first_compile_and_later_changes_are_told(tmp_path):
    script = (
        dumprun.NET.rstrip()
        + """
    import os
    os.environ["MINDSPORE_DUMP_CONFIG"] = "/nowhere/other.json"
    net(Tensor(np.zeros((2, 3, 4, 4), np.float32)))
"""
    )
    run = dumprun.dump(tmp_path, script, iteration="3")
    assert "MINDSPORE_DUMP_CONFIG was read before the first graph was compiled" in run.err
    assert {name.rsplit("/", 1)[0] for name in run.names()} == {"Net/0/3"}


def test_a_path_that_cannot_be_written_stops_the_run_before_its_first_step(tmp_path):
    (tmp_path / "file").write_text("")
    script = dumprun.NET.replace("y = net(", 'print("step"); y = net(')
    run = dumprun.dump(tmp_path, script, document=dumprun.config(tmp_path / "file/dump"), code=1)
    assert "a parent is a file" in run.err
    assert run.out == "step\n"  # the first call compiles; it never ran
    logged = dumprun.dump(
        tmp_path, script, document=dumprun.config(tmp_path / "file/dump"), options=("--mindspore", "2.10")
    )
    assert "shape" in logged.out
    assert "not everything is written" in logged.err


def test_asynchronous_dump_of_releases_copies_raw_bytes(tmp_path):
    options = ("--chip", "910A", "--mindspore", "2.10")
    device = dumprun.dump(tmp_path, name="device", options=options, trans_flag=False)
    run = dumprun.dump(tmp_path, options=options, enable=False)
    host = dumprun.dump(tmp_path, name="host", options=options)
    written = {name.split("/")[-1].rsplit(".", 3)[0] + "." for name in run.names()}
    skipped = 0
    for name in (name.split("/")[-1].rsplit(".", 3)[0] + "." for name in device.names()):
        raw, size = np.load(device.tensor(name)).tobytes(), np.load(host.tensor(name)).nbytes
        if size > len(raw):  # nothing is made up for bytes that are not there
            skipped += 1
            assert name not in written
            continue
        path = run.tensor(name)
        assert ".DefaultFormat." in path.name  # the label of a host tensor, whatever the bytes are
        assert np.load(path).tobytes() == raw[:size]
    assert skipped > 0
    assert f"skipped {skipped} ({skipped} the host tensor is larger than the device tensor)" in run.err
    assert len(run.names()) == len(device.names()) - skipped


NORM = """
    import numpy as np
    import mindspore as ms
    from mindspore import Tensor, nn

    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.SequentialCell(nn.BatchNorm2d(3), nn.ReLU())
    net.set_train()
    net(Tensor(np.ones((2, 3, 2, 2), np.float32)))
"""


@pytest.mark.parametrize(("value", "slots"), [("1", "034"), ("0", "01234")])
def test_useless_outputs_are_left_out_unless_the_variable_keeps_them(tmp_path, value, slots):
    variable = {"MINDSPORE_DUMP_IGNORE_USELESS_OUTPUT": value}
    run = dumprun.dump(tmp_path, NORM, env=variable, input_output=2, dump_mode=1, kernels=["BatchNorm"])
    assert [name.split(".")[-4] for name in run.names()] == list(slots)
    assert ("2 the output is known to be useless" in run.err) == (value == "1")
