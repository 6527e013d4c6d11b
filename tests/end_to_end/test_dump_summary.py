"""How a run ends: the summary, the exit code, what is left of a run that was killed; and what dump costs in memory."""

import re
import shlex

import dumprun
import numpy as np
import pytest

import dumpsim
from dumpsim.core.partname import CLAIM


def following(run, folder, code=0):
    """Type the command that the summary ends with."""
    command = run.err.splitlines()[-1].removeprefix("dumpsim: next: ")
    program, *arguments = shlex.split(command)
    assert program == "dumpsim"
    return dumprun.cli(folder, *arguments, code=code)


def test_the_tree_the_account_and_the_next_command(tmp_path):
    run = dumprun.dump(tmp_path, saved_data="full", iteration="all", options=("--device", "gpu"), arguments=["14"])
    lines = run.err.splitlines()
    assert lines[0] == f"dumpsim: {run.rank}"
    tree = [re.fullmatch(r"  (\S+|and \d+ more) +(\d+) files? +([\d.]+) (B|kB)", line) for line in lines[1:13]]
    assert all(tree)
    assert [found[1] for found in tree] == [
        *(f"Net/0/{n}" for n in range(7)),
        "and 7 more",
        "Net/0/constants",
        ".dump_metadata",
        "execution_order",
        "graphs",
    ]
    files = run.files()
    assert sum(int(found[2]) for found in tree) == len(files)
    tensors = len(run.names())
    assert lines[13].startswith(f"dumpsim: asked {tensors}, captured {tensors}, written {tensors} tensors, ")
    assert f"; {len(files)} files, " in lines[13]
    assert lines[14:] == [f"dumpsim: next: dumpsim ls {run.root} --summary"]
    assert len(following(run, tmp_path).out.splitlines()) == 1 + 14 + 1  # heading, iterations, constants
    assert "\x1b" not in run.err


def test_the_next_command_fits_what_was_dumped(tmp_path):
    statistics = dumprun.dump(tmp_path, name="statistics", saved_data="statistic", arguments=["1"])
    assert following(statistics, tmp_path).out.count("\n") == 1 + len(statistics.rows())
    overflow = dumprun.dump(
        tmp_path, name="overflow", op_debug_mode=3, arguments=["1"], faults=[{"kind": "overflow", "op": "Conv2D"}]
    )
    assert "Conv2D" in following(overflow, tmp_path, code=1).out
    nothing = dumprun.dump(
        tmp_path,
        name="nothing",
        options=("--mindspore", "2.10", "--set", "op_name=short"),
        iteration="7",
        arguments=["1"],
    )
    assert "no graph ran in an iteration that the config asks for" in nothing.err
    assert "2.10/ascend_o0: 0 errors" in following(nothing, tmp_path).out
    quiet = dumprun.dump(tmp_path, name="quiet", options=("--quiet",), arguments=["1"])
    assert quiet.err == ""
    assert quiet.names()


ENDS = (
    dumprun.NET
    + """
    how = sys.argv[2]
    if how == "exit":
        sys.exit(5)
    if how == "raise":
        raise KeyError(how)
    if how == "kill":
        import os, signal
        os.kill(os.getpid(), signal.SIGKILL)
"""
)


@pytest.mark.parametrize(("how", "code"), [("exit", 5), ("raise", 1), ("kill", -9)])
def test_the_exit_code_is_the_scripts_and_what_was_written_stays(tmp_path, how, code):
    run = dumprun.dump(tmp_path, ENDS, arguments=["2", how], saved_data="full", iteration="all", code=code)
    assert len(run.names()) == 2 * 19
    left = [path.name for path in run.files() if path.name.startswith(".dumpsim")]
    assert left == [] if how != "kill" else [name[: len(CLAIM)] for name in left] == [CLAIM]
    assert len(list(dumpsim.open(run.root))) == 2 * 19
    assert len(run.rows(1)) == 19
    assert ("asked 38, captured 38" in run.err) == (how != "kill")


MODES = """
    import sys
    import numpy as np
    import mindspore as ms
    from mindspore import Tensor, nn, ops
    from mindspore import dataset as ds
    from mindspore.train import Model

    rows = [(np.ones(4, np.float32) * i, np.int32(i % 2)) for i in range(4)]
    if sys.argv[1] == "sink":
        ms.set_context(mode=ms.GRAPH_MODE)
        net = nn.Dense(4, 2)
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        model = Model(net, loss, nn.Momentum(net.trainable_params(), 0.1, 0.9))
        model.train(1, ds.GeneratorDataset(rows, ["x", "y"]).batch(2), dataset_sink_mode=True)
    else:
        ms.set_context(mode=ms.PYNATIVE_MODE)
        x = Tensor(np.ones((2, 3), np.float32))

        @ms.jit
        def compiled(x):
            return ops.exp(x)

        print(ops.sin(compiled(ops.cos(x))).asnumpy().sum())
"""


def test_a_data_sink_is_followed_on_ascend_and_refused_on_a_gpu(tmp_path):
    run = dumprun.dump(tmp_path, MODES, arguments=["sink"], iteration="all")
    assert {name.rsplit("/", 1)[0] for name in run.names()} == {"Net/1/0", "Net/1/1"}  # 0 is the data set's
    refused = dumprun.dump(tmp_path, MODES, name="gpu", arguments=["sink"], options=("--device", "gpu"), code=1)
    assert "e2e_dump is not supported on GPU with dataset_sink_mode=True" in refused.err
    assert "nothing was dumped: no graph ran\n" in refused.err


def test_dynamic_graphs_dump_what_is_compiled(tmp_path):
    run = dumprun.dump(tmp_path, MODES, arguments=["jit"])
    assert run.types() == ["Exp"]


def test_set_dump_off_ascend_works_as_documented_and_not_in_releases(tmp_path):
    script = dumprun.NET.replace("net = Net()", "net = Net(); ms.set_dump(net.fc)")
    run = dumprun.dump(tmp_path, script, dump_mode=2, options=("--device", "gpu"), arguments=["1"])
    assert run.types() == ["BiasAdd", "MatMul", "Parameter"]
    assert all("constants" in name for name in run.names() if "/Parameter." in name)
    refused = dumprun.dump(
        tmp_path, script, name="release", dump_mode=2, options=("--device", "gpu", "--mindspore", "2.10"), code=1
    )
    assert "Set dump is only supported in Ascend async dump" in refused.err


LARGE = """
    import resource
    import sys
    import numpy as np
    import mindspore as ms
    from mindspore import Tensor, nn, ops

    ms.set_context(mode=ms.GRAPH_MODE)

    class Net(nn.Cell):
        def construct(self, x):
            return ops.relu(x) + 1

    net, x = Net(), Tensor(np.ones((1 << 20,), np.float32))
    for _ in range(int(sys.argv[1])):
        net(x)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def test_memory_does_not_grow_with_the_dump(tmp_path):
    large = 4 << 20
    peaks = []
    for name, steps in (("short", "2"), ("long", "12")):
        run = dumprun.dump(tmp_path, LARGE, name=name, arguments=[steps], saved_data="full", iteration="all")
        peaks.append(int(run.out))
    written = sum(path.stat().st_size for path in run.files())
    assert written > 40 * large
    plain = int(dumprun.cli(tmp_path, "run", "--device", "ascend", "script.py", "2").out)
    assert peaks[1] - peaks[0] < large
    assert peaks[1] - plain < 2 * large + (64 << 20)
    assert np.load(run.tensor("ReLU.Default_ReLU-op0.0.0.output.0.", 11)).sum() == 1 << 20


def test_a_config_that_no_graph_reads(tmp_path):
    script = """
        import numpy as np
        import mindspore as ms
        ms.set_context(mode=ms.PYNATIVE_MODE)
        ms.nn.Dense(3, 2)(ms.Tensor(np.ones((2, 3), np.float32)))
    """
    run = dumprun.dump(tmp_path, script)
    assert run.err == (
        "dumpsim: nothing was dumped: no graph was compiled (PYNATIVE dumps what jit compiles, and backward graphs)\n"
    )
    assert dumprun.dump(tmp_path, script, options=["--quiet"]).err == ""
