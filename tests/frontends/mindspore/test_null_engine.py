"""Networks on the null engine, from the script to the clock."""

import json
import textwrap

import dumprun
import pytest

SCRIPT = """
    import json, sys
    import numpy as np
    import mindspore as ms
    from mindspore import Tensor, context, nn
    from dumpsim.examples.alexnet import AlexNet
    from dumpsim.runtime.session import Session

    level, narrow, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    context.set_context(mode=context.GRAPH_MODE, jit_level=level)
    ms.set_seed(1)
    net = AlexNet(narrow=narrow)
    images = Tensor(np.zeros((batch, 3, 227, 227), np.float32))
    labels = Tensor(np.zeros(batch, np.int32))
    logits = net(images)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.01, momentum=0.9)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer).set_train()
    out = [step(images, labels) for _ in range(2)][-1]
    session = Session.current()
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    print(json.dumps({
        "shapes": [logits.shape, out.shape],
        "clock": session.clock.now_ns,
        "memory": [session.device.memory.used, session.device.memory.peak],
        "lifetimes": [[l.owner, l.address, l.nbytes, l.born, l.dead] for l in session.lifetimes()],
        "resident_mb": int(status["VmHWM"].split()[0]) >> 10,  # ru_maxrss would begin with that of the parent
    }))
    if "read" in sys.argv:
        print(out)
"""


def measured(folder, engine, level, narrow, batch, *more, code=0):
    """What the script prints when it runs on an engine."""
    script = folder / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    options = ("--engine", engine, "--manifest", "none", "--quiet")
    run = dumprun.cli(folder, "run", *options, str(script), level, str(narrow), str(batch), *more, code=code)
    return json.loads(run.out.splitlines()[0]), run


def test_alexnet_is_planned_and_timed_without_values(tmp_path):
    found, run = measured(tmp_path, "null", "O0", 1, 32, "read", code=1)
    assert found["shapes"] == [[32, 10], []]
    assert found["memory"][1] > 800e6  # bytes that the device would hold
    assert found["resident_mb"] < 160  # what the interpreter, numpy and the plan take
    assert "SparseSoftmaxCrossEntropyWithLogits-op0: the values of a tensor of shape () (float32) are not" in run.err


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_a_narrow_alexnet_has_the_clock_and_the_addresses_of_the_numpy_engine(tmp_path, level):
    null, _ = measured(tmp_path, "null", level, 16, 2)
    real, _ = measured(tmp_path, "numpy", level, 16, 2)
    assert len(null["lifetimes"]) > 40
    for measure in ("clock", "memory", "lifetimes", "shapes"):
        assert null[measure] == real[measure]


def test_a_dump_of_unknown_values_says_so(tmp_path):
    run = dumprun.dump(tmp_path, options=("--engine", "null"), code=1)
    assert "are not known" in run.err
