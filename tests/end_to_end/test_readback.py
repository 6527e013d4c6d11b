"""What a run wrote, opened again: equal to what a second listener saw of the device, by script line, by command."""

import json
import mmap
import pickle

import dumprun
import numpy as np
import pytest

import dumpsim

pytestmark = pytest.mark.slow  # a dump of each mode, in a process each

# the script listens to the device itself, beside the dump
WITNESS = """
    import pickle
    import sys
    import numpy as np
    import mindspore as ms
    from mindspore import Tensor, nn, ops
    from dumpsim.runtime.session import Session

    ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": "O0"})

    class Witness:
        def __init__(self):
            self.seen, self.run, self.runs = [], 0, {}

        def wants(self, event): return True
        def graph_compiled(self, event): pass
        def before_task(self, event): self.see(event, "input", event.operands)
        def after_task(self, event): self.see(event, "output", event.outputs)

        def run_begin(self, event):
            self.graph = event.root_graph_id

        def run_end(self, event):
            self.run += 1

        def see(self, event, io, refs):
            for ref in refs:
                if ref.origin != "none" and ref.nbytes:
                    key = (self.run, event.op_type, event.full_name, io, ref.slot)
                    self.seen.append((key, event.task_id, ref.address, ref.dtype.name, ref.shape, ref.device_format,
                                      ref.device_dtype.name, ref.device_shape, ref.read().tobytes()))

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 20, 3, pad_mode="same", has_bias=True)
            self.fc = nn.Dense(20 * 4 * 4, 5)
            self.flat = nn.Flatten()

        def construct(self, x):
            x = self.conv(x)
            x = ops.relu(x)
            x = self.fc(self.flat(x))
            return ops.softmax(x), ops.argmax(x, -1)

    witness = Witness()
    Session.current().add_tap(witness)
    ms.set_seed(1)
    net = Net()
    for step in range(2):
        net(Tensor(np.random.RandomState(step).randn(2, 3, 4, 4).astype(np.float32)))
    with open(sys.argv[1], "wb") as file:
        pickle.dump(witness.seen, file)
"""
SAMPLE = """# IR entry: @kernel_graph_1
subgraph @kernel_graph_1() {
  %20(equivoutput) = Conv2D(%17, %19) {instance name: conv2d} primitive_attrs: {kernel_size: (3, 3), mode: 1}
      : (<Tensor[Float32], (32, 256, 13, 13)>, <Tensor[Float32], (384, 256, 3, 3)>) -> (<Tensor[Float32], (32, 384, 13, 13)>)
      : full_name_with_scope: (Default/network-WithLossCell/_backbone-AlexNet/conv3-Conv2d/Conv2D-op12)
      # In file /models/official/cv/alexnet/src/alexnet.py(175)/        x = self.conv3(x)/
}
"""  # noqa: E501
LINES = {
    text: 1 + number
    for number, line in enumerate(WITNESS.splitlines())
    for text in ("self.conv(x)", "ops.relu(x)", "self.fc(self.flat(x))", "return ops.softmax")
    if text in line
}
PROFILES = [
    ("seed", "ascend", "910B", True, "full"),
    ("seed", "ascend", "910A", True, "full"),
    ("seed", "ascend", "910A", False, "tensor"),
    ("seed", "gpu", None, True, "full"),
    ("seed", "cpu", None, True, "tensor"),
    ("2.7", "gpu", None, True, "full"),
    ("2.10", "ascend", "910B", True, "full"),
    ("2.10", "cpu", None, True, "tensor"),
]


@pytest.mark.parametrize(("release", "device", "chip", "trans_flag", "saved"), PROFILES)
def test_what_is_written_is_what_was_there(tmp_path, release, device, chip, trans_flag, saved):
    options = ["--mindspore", release, "--device", device, "--manifest", str(tmp_path / "m.json")]
    if chip is not None:
        options += ["--chip", chip]
    run = dumprun.dump(
        tmp_path,
        WITNESS,
        arguments=[str(tmp_path / "seen.pickle")],
        options=options,
        trans_flag=trans_flag,
        saved_data=saved,
        iteration="all",
    )
    seen = {row[0]: row[1:] for row in pickle.loads((tmp_path / "seen.pickle").read_bytes())}
    manifest = json.loads((tmp_path / "m.json").read_text())
    by_path = {str(run.rank / entry["path"]): entry for entry in manifest["files"]}
    dump = dumpsim.open(run.root)
    entries = [entry for entry in dump if entry.op_type != "Parameter"]
    assert len(entries) == len(seen)
    assert len(list(dump)) == len(by_path) == manifest["tensors"] == manifest["captured"]
    for entry in entries:
        key = (entry.iteration, entry.op_type, entry.op_name, entry.io, entry.slot)
        task, address, dtype, shape, device_format, device_dtype, device_shape, raw = seen[key]
        assert entry.graph_id == 0
        told = by_path[str(entry.path)]
        assert (told["full_name"], told["task_id"], told["address"]) == (entry.op_name, task, address)
        array = entry.array()
        assert is_mapped(array)
        if trans_flag:
            assert (entry.dtype, entry.shape, entry.format) == (dtype, shape, "DefaultFormat")
            if device_format in ("DefaultFormat", "ND", "NCHW") and device_dtype == dtype:
                assert array.tobytes() == raw
            elif device_format in ("DefaultFormat", "ND", "NCHW"):
                assert np.array_equal(array, np.frombuffer(raw, device_dtype).reshape(shape).astype(dtype))
            else:
                there = np.frombuffer(raw, device_dtype).reshape(device_shape)
                back = dumpsim.to_host(there, device_format, shape)
                assert np.array_equal(array, back.astype(dtype))
        else:
            assert (entry.dtype, entry.shape, entry.format) == (device_dtype, device_shape, device_format)
            assert array.tobytes() == raw
        if saved == "full":
            assert f"{entry.statistic('max'):g}" == f"{float(array.max()):g}"
            assert entry.row["l2norm"] == pytest.approx(float(np.linalg.norm(array.astype(np.float64))), rel=1e-5)
    parameters = {entry.op_name for entry in dump if entry.op_type == "Parameter"}
    weights = {"conv.weight", "conv.bias", "fc.weight", "fc.bias"}
    assert parameters == {"ascend": set(), "gpu": weights, "cpu": {*weights, "x"}}[device]
    check_lines(dump)
    if (release, device) in (("seed", "ascend"), ("2.10", "cpu")) and trans_flag:
        check_commands(run, tmp_path, saved)


def is_mapped(array):
    """Whether the bytes are those of the file itself, not a copy in memory."""
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array.obj if isinstance(array, memoryview) else array, mmap.mmap)


def check_lines(dump):
    """From a line of the script to its tensors, and back."""

    def types(line):
        return {entry.op_type for entry in dump.filter(source=f"script.py:{LINES[line]}")}

    assert types("self.conv(x)") == {"Conv2D", "BiasAdd"}
    assert types("ops.relu(x)") == {"ReLU"}
    assert types("self.fc(self.flat(x))") >= {"MatMul", "BiasAdd"}
    assert "Softmax" in types("return ops.softmax")
    assert not list(dump.filter(source="script.py:9999"))
    assert not list(dump.filter(source="cript.py"))
    relu = next(iter(dump.filter(op_type="relu", io="output", iteration=1)))
    assert relu.script_line.line == LINES["ops.relu(x)"]
    assert relu.script_line.code.strip() == "x = ops.relu(x)"


def check_commands(run, folder, saved):
    """ls, show, stat: plain when piped, JSON on request."""
    root = str(run.root)
    line = LINES["ops.relu(x)"]
    listed = dumprun.cli(folder, "ls", root, "--source", f"script.py:{line}", "--io", "output").out.splitlines()
    assert listed[0].split("\t")[:5] == ["rank", "graph", "iteration", "op_type", "op_name"]
    assert [row.split("\t")[2:5] for row in listed[1:]] == [[n, "ReLU", "Default/ReLU-op0"] for n in ("0", "1")]
    rows = [json.loads(row) for row in dumprun.cli(folder, "ls", root, "--summary", "--json").out.splitlines()]
    assert sum(row["tensors"] for row in rows) == len(run.names())
    shown = dumprun.cli(folder, "show", root, "--type", "relu", "--io", "output", "--iteration", "1", "--bins", "4").out
    assert f"script.py:{line}  x = ops.relu(x)" in shown
    assert shown.count("..") >= 4
    assert "\x1b" not in shown
    (facts,) = dumprun.cli(
        folder, "show", root, "--op", "*Softmax*", "--io", "output", "--limit", "1", "--json"
    ).out.splitlines()
    facts = json.loads(facts)
    assert sum(facts["histogram"]["counts"]) == facts["count"] == 10
    assert dumprun.cli(folder, "stat", root, "--bad").out.count("\n") == 1
    assert "nothing matches" in dumprun.cli(folder, "ls", root, "--type", "Nothing", code=1).err


def test_the_sample_of_the_documents_from_its_line_to_its_file(tmp_path):
    graphs, data = tmp_path / "rank_0/graphs", tmp_path / "rank_0/AlexNet/1/0"
    graphs.mkdir(parents=True)
    data.mkdir(parents=True)
    (graphs / "ms_output_trace_code_graph_1.ir").write_text(SAMPLE)
    name = "Conv2D.Conv2D-op12.0.0.1623124369613540.output.0.DefaultFormat.float16.npy"
    np.save(data / name, np.full((32, 384, 13, 13), 0.5, np.float16))
    np.save(data / name.replace("op12", "op13"), np.zeros(3, np.float16))
    (entry,) = dumpsim.open(tmp_path).filter(source="alexnet.py:175")
    assert entry.path == data / name
    assert entry.op_name == "Default/network-WithLossCell/_backbone-AlexNet/conv3-Conv2d/Conv2D-op12"
    assert (entry.dtype, entry.shape) == ("float16", (32, 384, 13, 13))
    assert entry.script_line.code.strip() == "x = self.conv3(x)"


def test_short_names_are_found_again(tmp_path):
    run = dumprun.dump(tmp_path, options=["--set", "op_name=short"], saved_data="full")
    assert "Conv2D.Conv2D-op0.0.0.input.0.DefaultFormat.float32.npy" in run.names()[0]
    entries = list(dumpsim.open(run.root))
    assert entries[0].op_name == "Default/conv-Conv2d/Conv2D-op0"
    assert all(entry.row and entry.source for entry in entries)
