"""Profiles of whole scripts, of one rank and of several."""

import json
import textwrap

from dumprun import cli
from profilerun import rows

SCRIPT = """
    import sys
    import numpy as np
    import mindspore as ms
    from mindspore import Tensor, nn, ops
    from mindspore.communication import init
    from dumpsim.world import launch

    class Net(nn.Cell):
        def construct(self, x):
            return ops.relu(x) * 2

    def main():
        ms.set_context(mode=ms.GRAPH_MODE, enable_profiling=True, profiling_options=sys.argv[2])
        init()
        net = Net()
        for _ in range(2):
            net(Tensor(np.ones((2, 3), np.float32)))

    launch(main, ranks=int(sys.argv[1]))
"""
SWITCHES = {"training_trace": "on", "task_trace": "on"}


def test_each_rank_writes_a_profile_of_its_own(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "net.py").write_text(textwrap.dedent(SCRIPT))
    run = cli(tmp_path, "run", "net.py", "2", json.dumps({"result_path": str(tmp_path / "out"), **SWITCHES}))
    assert run.err.count("dumpsim: profile: ") == 2
    found = sorted((tmp_path / "out").iterdir())
    assert [path.name[-8:] for path in found] == ["RANK0000", "RANK0001"]
    for path in found:
        assert len(rows(path, "step_trace")) == 2
        assert len(rows(path, "task_time")) == 4


def test_a_bad_option_ends_the_script_before_its_first_step(tmp_path):
    (tmp_path / "net.py").write_text(textwrap.dedent(SCRIPT))
    run = cli(tmp_path, "run", "net.py", "1", json.dumps({"result_path": "nowhere", **SWITCHES}), code=1)
    assert "ValueError: profiling_options.result_path: 'nowhere' is not a directory that exists" in run.err
