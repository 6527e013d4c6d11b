"""The context, compared with recorded results of MindSpore 2.10, and related modules."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.errors import UnsupportedError
from dumpsim.core.settings import VARIABLE, RunSettings
from dumpsim.frontends.mindspore import Tensor, nn, ops
from dumpsim.frontends.mindspore.communication import GlobalComm, get_group_size, get_rank, init
from dumpsim.frontends.mindspore.parallel.auto_parallel import AutoParallel

FACTS = json.loads((Path(__file__).parents[3] / "fixtures" / "frontends" / "mindspore" / "api_facts.json").read_text())


@pytest.mark.parametrize(("settings", "expected"), FACTS["set_context"], ids=lambda value: str(value)[:40])
def test_set_context_errors_as_recorded(settings, expected, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    name, text = expected
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the record says which
        ms.set_context(**settings)
    assert any(base.__name__ == name for base in type(caught.value).__mro__)
    assert str(caught.value).split("; allowed")[0] == text


@pytest.mark.parametrize(
    ("settings", "expected"), FACTS["set_auto_parallel_context"], ids=lambda value: str(value)[:40]
)
def test_set_auto_parallel_context_errors_as_recorded(settings, expected):
    name, text = expected
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the record says which
        ms.set_auto_parallel_context(**settings)
    assert any(base.__name__ == name for base in type(caught.value).__mro__)
    assert str(caught.value).strip("'") == text.strip("'")


@pytest.mark.parametrize("key", sorted(FACTS["context_defaults"]))
def test_defaults_as_recorded(key):
    assert ms.get_context(key) == FACTS["context_defaults"][key]


def test_values_are_stored_as_in_mindspore(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    ms.set_context(mode=True, save_graphs=True, save_graphs_path="ir", jit_config={"jit_level": "O1"})
    assert ms.get_context("mode") == 1
    assert ms.get_context("save_graphs") == 2
    assert ms.get_context("save_graphs_path") == str(tmp_path / "ir")
    assert (tmp_path / "ir").stat().st_mode & 0o777 == 0o700
    assert ms.get_context("jit_level") == "O1"


def test_settings_before_the_first_bad_one_stay():
    with pytest.raises(ValueError, match="foo"):
        ms.set_context(mode=0, foo=2, max_call_depth=5)
    assert ms.get_context("mode") == 0
    assert ms.get_context("max_call_depth") == 1000


def test_keys_and_arguments():
    with pytest.raises(ValueError, match="the argument nope is not recognized"):
        ms.get_context("nope")
    with pytest.raises(TypeError, match="attribute name must be string, not 'int'"):
        ms.get_context(1)
    with pytest.raises(TypeError, match="too many positional arguments"):
        ms.set_context(0)


def test_the_device_is_of_the_run_then_of_the_script_then_ascend(monkeypatch, capsys):
    assert ms.get_context("device_target") == "Ascend"
    ms.set_context(device_target="CPU")
    assert "mindspore.set_device()" in capsys.readouterr().err
    assert ms.get_context("device_target") == "CPU"
    monkeypatch.setenv(VARIABLE, RunSettings(device="gpu").to_text())
    assert ms.get_context("device_target") == "GPU"


@pytest.mark.parametrize("target", ["CPU", "GPU"])
@pytest.mark.parametrize(("uses", "free"), [("set", True), ("operator", True), ("read", False), ("graph", False)])
def test_device_id_off_ascend_may_change_until_it_is_used(target, uses, free):
    """Recorded from series of calls of 2.10 on the CPU."""
    ms.set_context(device_target=target, device_id=1)
    ms.set_context(device_id=2)
    if uses == "read":
        ms.get_context("device_id")
    elif uses == "operator":
        ms.set_context(mode=ms.PYNATIVE_MODE)
        ms.ops.exp(ms.Tensor([1.0]))
    elif uses == "graph":
        ms.set_context(mode=ms.GRAPH_MODE)
        ms.nn.ReLU()(ms.Tensor([1.0]))
    ms.set_context(device_id=2)
    if free:
        ms.set_context(device_id=3)
        assert ms.get_context("device_id") == 3
    else:
        with pytest.raises(TypeError, match=r"can not be set repeatedly, origin value \[2\] has been in effect"):
            ms.set_context(device_id=3)


def test_device_id_once():
    ms.set_context(device_id=5)
    with pytest.raises(TypeError, match=r"origin value \[5\]"):
        ms.set_context(device_id=6)
    ms.set_context(device_id=5)


def test_set_device():
    with pytest.raises(ValueError, match="must be one of \\['CPU', 'GPU', 'Ascend'\\], but got cpu"):
        ms.set_device("cpu")
    ms.set_device("Ascend", 1)
    with pytest.raises(RuntimeError, match="can not be modified"):
        ms.set_device("CPU")


def test_ascend_config_off_ascend_is_ignored_with_a_warning(capsys):
    ms.set_context(device_target="CPU")
    ms.set_context(ascend_config={"foo": 1})
    assert "only supports devices in '['Ascend']', but got 'CPU', ignore it." in capsys.readouterr().err
    assert ms.get_context("ascend_config") == {}


def test_ascend_config_on_ascend():
    ms.set_context(ascend_config={"exception_dump": "1"})
    with pytest.raises(ValueError, match="precision_mode must be one of"):
        ms.set_context(ascend_config={"precision_mode": "foo"})
    with pytest.raises(TypeError, match="ge_options"):
        ms.set_context(ascend_config={"ge_options": 1})


def test_auto_parallel_defaults_and_reset():
    assert ms.get_auto_parallel_context("device_num") == 1
    ms.set_auto_parallel_context(device_num=8, parallel_mode="data_parallel")
    assert ms.get_auto_parallel_context("parallel_mode") == ms.ParallelMode.DATA_PARALLEL
    ms.reset_auto_parallel_context()
    assert ms.get_auto_parallel_context("device_num") == 1
    with pytest.raises(ValueError, match="Get context keyword nope"):
        ms.get_auto_parallel_context("nope")


@pytest.mark.parametrize(("profile", "version"), [("seed", "2.5.0"), ("2.7", "2.7.0"), ("2.10", "2.10.0")])
def test_version_follows_the_profile(profile, version, monkeypatch):
    monkeypatch.setenv(VARIABLE, RunSettings(mindspore=profile).to_text())
    assert ms.__version__ == version


def test_a_world_of_one():
    assert get_rank() == 0
    ms.set_context(device_target="CPU")
    init()
    assert (get_rank(), get_group_size(), GlobalComm.BACKEND) == (0, 1, "mccl")
    with pytest.raises(RuntimeError, match="backend_name"):
        init("gloo")


def test_set_dump_marks_cells_and_primitives():
    net = nn.SequentialCell(nn.Dense(1, 1), nn.ReLU())
    ms.set_dump(net)
    assert all(cell.get_flags() == {"dump": True} for _, cell in net.cells_and_names())
    primitive = ops.ReLU()
    ms.set_dump(primitive, False)
    assert primitive.attrs == {"dump": "false"}
    own, other = nn.Cell(), nn.Cell()  # a cell's mark replaces those of its primitives, and sets no others
    own.relu, other.relu = primitive, ops.ReLU()
    for cell in (own, other):
        ms.set_dump(cell)
    assert (own.relu.attrs, other.relu.attrs) == ({"dump": "true"}, {})
    with pytest.raises(ValueError, match="instance of Cell or Primitive, but got an instance of <class 'str'>"):
        ms.set_dump("x")
    with pytest.raises(ValueError, match='"enabled" parameter must be bool'):
        ms.set_dump(net, 1)


def test_set_dump_warns_off_ascend_in_the_observed_releases(monkeypatch):
    ms.set_context(device_target="CPU")
    ms.tools.set_dump(nn.ReLU())
    monkeypatch.setenv(VARIABLE, RunSettings(mindspore="2.10").to_text())
    with pytest.warns(UserWarning, match="Current device_target is CPU"):
        ms.tools.set_dump(nn.ReLU())


def test_log_lines_have_the_vendors_form(capsys, monkeypatch):
    ms.log.warning("a %s", "b")
    line = capsys.readouterr().err
    assert line.startswith("[WARNING] ME(")
    assert line.endswith("] a b\n")
    monkeypatch.setenv("GLOG_v", "3")
    ms.log.warning("c")
    assert capsys.readouterr().err == ""


def test_missing_names():
    with pytest.raises(UnsupportedError, match=r"mindspore: CSRTensor"):
        ms.CSRTensor()
    with pytest.raises(AttributeError, match=r"no attribute 'Tensr' .did you mean 'Tensor'"):
        _ = ms.Tensr
    with pytest.raises(UnsupportedError, match="CTCLoss"):
        ops.CTCLoss()


def test_an_import_loads_only_the_modules_it_needs():
    script = (
        "import sys, dumpsim.frontends.mindspore as ms; "
        "assert 'numpy' not in sys.modules; ms.Tensor; assert 'dumpsim.frontends.mindspore.nn' not in sys.modules; "
        "ms.nn.Dense; print('dumpsim.frontends.mindspore.nn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "True\n"


def test_jit_config_and_jit_check_their_values():
    assert ms.JitConfig("O1").jit_config_dict["jit_level"] == "O1"
    with pytest.raises(ValueError, match="jit_level"):
        ms.JitConfig("O9")
    with pytest.raises(ValueError, match="capture_mode"):
        ms.jit(lambda x: x, capture_mode="magic")
    with pytest.raises(TypeError, match="callable"):
        ms.jit(3)


def test_mutable():
    assert isinstance(ms.mutable((1, 2))[0], Tensor)
    with pytest.raises(TypeError, match="mutable"):
        ms.mutable(object())


def test_settings_of_a_network_hold_while_it_is_called():
    seen = {}

    class Net(nn.Cell):
        def construct(self, x):
            seen.update({name: ms.get_auto_parallel_context(name) for name in before})
            return x

    names = ("parallel_mode", "gradients_mean", "loss_repeated_mean", "pipeline_stages", "enable_parallel_optimizer")
    before = {name: ms.get_auto_parallel_context(name) for name in names}
    ms.set_context(mode=ms.PYNATIVE_MODE)
    net = AutoParallel(Net())
    net.enable_gradients_mean()
    net.disable_loss_repeated_mean()
    net.hsdp()
    net.pipeline(1)
    net(ms.Tensor([1.0]))
    assert seen == {
        "parallel_mode": "semi_auto_parallel", "gradients_mean": True, "loss_repeated_mean": False,
        "pipeline_stages": 1, "enable_parallel_optimizer": True,
    }  # fmt: skip
    assert {name: ms.get_auto_parallel_context(name) for name in names} == before
