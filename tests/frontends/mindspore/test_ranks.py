"""Ranks and device numbers: from the environment, by the script, in dumps and names."""

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.frontends.mindspore import communication as comm
from dumpsim.frontends.mindspore import nn, ops
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.runtime.session import Session
from dumpsim.world.context import RankContext, World, use
from tests.inprocess import dump

X = np.ones((2, 3), np.float32)


class Net(nn.Cell):
    def construct(self, x):
        return ops.exp(x) + 1


def by_script():
    ms.set_context(device_id=6)


def by_set_device():
    ms.set_device("Ascend", 6)


CHOICES = [by_script, by_set_device]


@pytest.fixture
def launched(monkeypatch):
    """Set the environment that a launcher sets for the process of a rank."""

    def given(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, str(value))
        return RankContext.from_environment()

    return given


def run(folder, monkeypatch, mode, choose=lambda: None, **changes):
    folder.mkdir(exist_ok=True)

    def steps():
        choose()
        return Net()(Tensor(X)).asnumpy()

    left = dump(folder, monkeypatch, mode, steps, iteration="all", **changes)
    assert left.error is None
    return left


@pytest.mark.parametrize("choose", CHOICES)
def test_o0_dumps_on_the_device_that_the_script_chose(tmp_path, monkeypatch, capsys, choose):
    left = run(tmp_path, monkeypatch, "O0", choose, support_device=[6])
    assert left.types() == {"Exp", "Add"}
    assert "support_device" not in capsys.readouterr().err


def test_o0_dumps_nothing_on_another_device(tmp_path, monkeypatch):
    assert run(tmp_path, monkeypatch, "O0", by_script, support_device=[0]).tensors() == []


@pytest.mark.parametrize("choose", CHOICES)
def test_o2_names_the_device_that_the_script_chose(tmp_path, monkeypatch, choose):
    left = run(tmp_path, monkeypatch, "O2", choose, support_device=[6])
    assert [path.name for path in left.files("acl_dump_*.json")] == ["acl_dump_6.json"]
    step = left.root / "0"
    (time,) = [path for path in step.iterdir() if path.is_dir()]
    assert [path.name for path in time.iterdir()] == ["6"]


def test_the_environment_gives_the_device(tmp_path, monkeypatch, launched):
    with use(launched(DEVICE_ID=6)):
        assert ms.get_context("device_id") == 6
        assert Session.current().device.device_id == 6
    assert run(tmp_path / "o0", monkeypatch, "O0", support_device=[6]).types() == {"Exp", "Add"}
    left = run(tmp_path / "o2", monkeypatch, "O2", support_device=[6])
    assert [path.name for path in left.files("acl_dump_*.json")] == ["acl_dump_6.json"]


@pytest.mark.parametrize(("entered", "rank"), [(True, "rank_3"), (False, "rank_0")])
def test_the_environment_gives_the_rank_after_init(tmp_path, monkeypatch, launched, entered, rank):
    launched(RANK_ID=3, RANK_SIZE=4)
    left = run(tmp_path, monkeypatch, "CPU", comm.init if entered else lambda: None)
    assert [path.name for path in left.root.iterdir()] == [rank]


def test_an_open_device_cannot_be_changed():
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="Ascend")
    ops.exp(Tensor(X))
    with pytest.raises(TypeError, match=r"device_id can not be set repeatedly, origin value \[0\] has been in effect"):
        ms.set_context(device_id=6)
    assert Session.current().device_id == 0


@pytest.mark.parametrize("target", ["CPU", "GPU"])
def test_off_ascend_a_device_id_has_no_effect(target):
    ms.set_context(device_target=target)
    for number in (6, 5):
        ms.set_context(device_id=number)
    assert ms.get_context("device_id") == 5
    assert Session.current().device_id == 0
    ms.set_context(device_target="Ascend")
    assert Session.current().device_id == 5


def test_a_gpu_dump_takes_no_device_from_the_script(tmp_path, monkeypatch):
    assert run(tmp_path, monkeypatch, "GPU", by_script, support_device=[0]).types() > {"Exp", "Add"}


def test_init_fixes_the_device():
    comm.init()
    with pytest.raises(TypeError, match=r"Maybe 'mindspore.communication.init\(\)' has been called"):
        ms.set_context(device_id=6)


def test_what_scripts_set_of_global_comm_is_of_the_rank():
    with use(RankContext()):
        comm.GlobalComm.CHECK_ENVS = False
        assert comm.GlobalComm.CHECK_ENVS is False
    assert comm.GlobalComm.CHECK_ENVS is True
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        comm.GlobalComm.nothing  # noqa: B018
    with pytest.raises(AttributeError, match="GlobalComm"):
        comm.GlobalComm.OTHER = 1


def test_ranks_of_one_process_know_their_number_from_the_start():
    with use(RankContext(rank=3, size=4, world=World(ranks=4))):
        assert comm.management.output_rank() == 3
