"""The step of TensorDump: counted for graphs and for the host apart, chosen by set_steps."""

import numpy as np
import pytest

from dumpsim.core.errors import UnsupportedError
from dumpsim.device.queue import Message
from dumpsim.dump.tensordump import UPDATE_STEP, TensorDumpWriter
from dumpsim.modes.profile import find


def writer(**overrides):
    return TensorDumpWriter(find("seed", "Ascend", {"tensordump": "B", **overrides}), rank=3)


def message(file, source="graph"):
    return Message(items=(file, np.float32([1])), source=source, attrs={})


@pytest.mark.parametrize("source", ["graph", "host"])
def test_the_first_step_is_0_and_each_source_counts_its_own(tmp_path, monkeypatch, source):
    monkeypatch.chdir(tmp_path)
    own = writer()
    other = {"graph": "host", "host": "graph"}[source]
    own(message("x_{step}_{rank}", source))
    own(message(UPDATE_STEP, source))
    own(message("x_{step}", source))
    own(message("x_{step}", other))
    names = [path.rpartition("/")[2] for path in own.written]
    assert names == ["x_step0_rank3_float32_0.npy", "x_step1_float32_1.npy", "x_step0_float32_2.npy"]


def test_only_wanted_steps_are_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = writer()
    own.set_steps([0, 2])
    for _ in range(4):
        own(message("x_{step}"))
        own(message(UPDATE_STEP))
    assert [path.rpartition("/")[2] for path in own.written] == ["x_step0_float32_0.npy", "x_step2_float32_1.npy"]
    with pytest.raises(UnsupportedError, match="steps of TensorDump"):
        writer(tensordump="A").set_steps([1])
