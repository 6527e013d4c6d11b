"""Ranks that a script launches as processes: one summary of their dumps, as for ranks of one process."""

import json
import re

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.errors import BadInputError
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import nn, ops
from dumpsim.frontends.mindspore.communication import get_rank, init
from dumpsim.world import launch
from dumpsim.world.reports import JobReports


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.sum = ops.AllReduce()

    def construct(self, x):
        return self.sum(ops.exp(x)) / 0.0


def train():
    ms.set_context(mode=ms.GRAPH_MODE)
    init()
    return Net()(ms.Tensor(np.ones(4, np.float32))).shape


def fail():
    train()
    if get_rank() == 1:
        raise ValueError("no more data")


def summary(main, transport, root, capfd, *, devices=(0, 1, 2), quiet=False):
    """What a launch of three ranks prints of their dumps on stderr, without the names of directories of the run."""
    root.mkdir()
    common = {"dump_mode": 0, "path": str(root / "dump"), "net_name": "Net", "iteration": "all", "input_output": 0}
    common |= {"kernels": [], "support_device": list(devices)}
    (root / "dump.json").write_text(json.dumps({"common_dump_settings": common, "e2e_dump_settings": {"enable": True}}))
    environment = {"MINDSPORE_DUMP_CONFIG": str(root / "dump.json")}
    error = ""
    try:
        launch(main, 3, transport=transport, settings=RunSettings(quiet=quiet, manifest=None), environment=environment)
    except ValueError as raised:
        error = str(raised)
    lines = capfd.readouterr().err.replace(str(root), "ROOT").splitlines()
    return [re.sub(r"\d+\.\d kB", "SIZE", line) for line in lines if "dumpsim" in line or line.startswith("  ")], error


@pytest.mark.parametrize("devices", [(0, 1, 2), (1,)])
def test_one_summary_with_the_text_of_local_ranks(devices, tmp_path, capfd):
    local, process = (summary(train, way, tmp_path / way, capfd, devices=devices)[0] for way in ("local", "process"))
    assert process == local
    count = 7 * len(devices)  # 3 kernels: 4 inputs, 3 outputs
    assert process[0] == "dumpsim: ROOT/dump"
    total = f"dumpsim: 3 ranks: asked {count}, captured {count}, written {count} tensors; "
    assert sum(line.startswith(total) for line in process) == 1
    assert process[-1] == "dumpsim: next: dumpsim first ROOT/dump"


def test_a_job_that_fails_has_one_summary_too(tmp_path, capfd):
    lines, error = summary(fail, "process", tmp_path / "job", capfd)
    assert error == "no more data"
    assert sum(line.startswith("dumpsim: 3 ranks: asked ") for line in lines) == 1
    assert sum(": asked " in line for line in lines if line.startswith("  rank")) >= 1


@pytest.mark.parametrize("transport", ["local", "process"])
def test_a_quiet_job_says_nothing(transport, tmp_path, capfd):
    assert summary(train, transport, tmp_path / "job", capfd, quiet=True) == ([], "")


def test_a_report_names_what_renders_it():
    mine = JobReports(renderer="os:system", own=[{}]).document()
    with pytest.raises(BadInputError, match=r"invalid renderer 'os:system'"):
        JobReports.text([None, mine], 2)
