"""The pytest plugin, run in pytest sessions of its own."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from dumpsim.testing import plugin

ROOT = Path(__file__).resolve().parents[2]


def test_each_test_has_a_device_of_its_own(run):
    output = run(
        """
import numpy as np, pytest
from dumpsim.ops.table import find
from dumpsim.runtime.session import Session

X = np.array([300], np.float16)

@pytest.mark.npu(chip="910A", seed=4)
def test_saturation(npu):
    assert Session.current() is npu
    assert npu.run_op(find("Mul"), [X, X])[0].tolist() == [65504.0]
    assert npu.device.status.raised and npu.seed == 4 and npu.settings.manifest is None

@pytest.mark.parametrize("at", range(2))
def test_infnan(npu, at):
    assert npu.ids.graph() == 0 and npu.chip.name == "910B"
    assert npu.run_op(find("Mul"), [X, X])[0].tolist() == [np.inf]

@pytest.mark.npu(device="cpu")
class TestNested:
    def test_outer(self, npu):
        assert npu.target == "CPU"

    @pytest.mark.npu(device="ascend", environment={"MS_ASCEND_CHECK_OVERFLOW_MODE": "SATURATION_MODE"})
    def test_inner(self, npu):
        assert npu.device.overflow == "saturation"

def test_closed(npu):
    npu.at_close(lambda: print("closed first"))
    npu.at_close(lambda: print("closed last"))
    print("body")
""",
        "-s",
    )
    assert "6 passed" in output
    assert output.index("body") < output.index("closed last") < output.index("closed first")


def test_faults(run):
    output = run(
        """
import numpy as np, pytest
from dumpsim.core.errors import FaultPlanError
from dumpsim.ops.table import find

ONE = np.ones(1, np.float32)

def test_from_the_fixture(npu, faults):
    faults({"kind": "overflow", "op": "Add", "value": 7})
    assert npu.run_op(find("Add"), [ONE, ONE])[0].tolist() == [7]

@pytest.mark.faults({"kind": "overflow", "op": "Add", "value": 8})
def test_from_the_marker(npu):
    assert npu.run_op(find("Add"), [ONE, ONE])[0].tolist() == [8]

def test_none_by_default(npu):
    assert npu.run_op(find("Add"), [ONE, ONE])[0].tolist() == [2]

def test_wrong(faults):
    with pytest.raises(FaultPlanError, match="did you mean 'overflow'"):
        faults({"kind": "overflows", "op": "Add"})

def test_unused_is_allowed(faults):
    faults({"kind": "overflow", "op": "Sub"}, strict=False)

def test_disk(npu, faults):
    faults({"kind": "disk_full", "after_bytes": 1})
    with pytest.raises(OSError, match="No space left"):
        npu.disk.charge(2)
"""
    )
    assert "6 passed" in output


def test_a_fault_that_never_strikes_fails_its_test(run):
    output = run(
        """
import pytest

def test_fixture(faults):
    faults({"kind": "overflow", "op": "Sub", "nth": 2})

@pytest.mark.faults({"kind": "aicore_error", "op": "Sub"})
def test_marker(npu):
    pass
"""
    )
    assert "2 passed, 2 errors" in output
    assert output.count("faults that never struck") >= 2


def test_the_dump_directory(run):
    output = run(
        """
import json, os

def test_dump(npu, dump_dir, tmp_path):
    config = dump_dir.configure(iteration="0|2", saved_data="full")
    assert os.environ["MINDSPORE_DUMP_CONFIG"] == npu.environment["MINDSPORE_DUMP_CONFIG"] == str(config)
    common = json.loads(config.read_text())["common_dump_settings"]
    assert common["path"] == os.fspath(dump_dir) == str(tmp_path / "dump")
    assert (common["iteration"], common["saved_data"]) == ("0|2", "full")
    (dump_dir / "rank_0").mkdir(parents=True)
    (dump_dir / "rank_0" / "a.npy").touch()
    (dump_dir / "b.csv").touch()
    assert dump_dir.files() == ["b.csv", "rank_0/a.npy"]
    assert dump_dir.files("*.npy") == ["rank_0/a.npy"]

def test_afterwards(npu):
    assert "MINDSPORE_DUMP_CONFIG" not in os.environ
"""
    )
    assert "2 passed" in output


def test_markers_are_in_the_list(run):
    output = run("", "--markers")
    assert "@pytest.mark.npu(device=None" in output
    assert "@pytest.mark.faults(*faults" in output


def test_wrong_markers_are_errors(run):
    output = run(
        """
import pytest

@pytest.mark.npu("910A")
def test_position(npu): ...

@pytest.mark.npu(chip="910Z")
def test_chip(npu): ...

@pytest.mark.npu(chp="910A")
def test_name(npu): ...

@pytest.mark.npu(device="npux")
def test_device(npu): ...

@pytest.mark.npu(device="cpu", chip="910A")
def test_both(npu): ...

@pytest.mark.npu(overrides={"bfloat": "raw"})
def test_profile(npu): ...

@pytest.mark.faults({"kind": "disk_full", "after_bytes": 1}, strickt=False)
def test_faults(npu): ...
"""
    )
    assert "7 errors" in output
    assert "@pytest.mark.npu takes keyword arguments only" in output
    assert "@pytest.mark.npu(chip=...): unknown chip '910Z'; allowed: 910A, 910B" in output
    assert "@pytest.mark.npu: unknown setting 'chp'; allowed: device, chip" in output
    assert "(did you mean 'chip'?) [DS-TST-001]" in output
    assert "@pytest.mark.npu(device=...): 'npux' is not a value of device; allowed: ascend, gpu, cpu" in output
    assert "@pytest.mark.npu(chip=...): chip 910A is not a chip of CPU" in output
    assert "@pytest.mark.npu(overrides=...): 'bfloat' is not a field of a profile" in output
    assert "the marker faults takes fault objects and strict=, got 'strickt'" in output


def test_wrong_fields_of_a_config_are_errors(run):
    output = run(
        """
import pytest
from dumpsim.core.errors import DumpConfigError

@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"saved_dat": "full"}, r"configure\\(saved_dat=...\\): unknown field .*did you mean 'saved_data'"),
        ({"e2e": {"sample_nmu": 1}}, r"configure\\(e2e: sample_nmu=...\\): .*did you mean 'sample_num'"),
        ({"saved_data": "tensors"}, r"configure\\(saved_data=...\\): .tensors. is not .*did you mean 'tensor'"),
        ({"iteration": 3}, r"configure\\(iteration=...\\): 3 is not of type string"),
        ({"net_name": {1}}, "not JSON"),
    ],
)
def test_wrong(dump_dir, fields, text):
    with pytest.raises(DumpConfigError, match=text):
        dump_dir.configure(**fields)

def test_only_what_no_device_accepts_is_refused(dump_dir):
    dump_dir.configure(op_debug_mode=3, file_format="npy", statistic_category=["max"], e2e={"stat_calc_mode": "device"})
    dump_dir.configure(saved_dat="tensors", check=False)

@pytest.mark.npu(mindspore="2.10")
def test_the_release_decides(dump_dir):
    dump_dir.configure(statistic_category=["max", "hash"], saved_data="statistic")
"""
    )
    assert "7 passed" in output


def test_the_fixtures_describe_themselves(run):
    output = run(
        """
def test_repr(npu, dump_dir, faults):
    assert repr(npu) == (
        "<Session on Ascend 910B, device 0, rank 0 (not used yet): MindSpore seed, O0, virtual clock, seed 0>"
    )
    faults({"kind": "overflow", "op": "Add"}, strict=False)
    assert "1 faults, 1 not struck yet" in repr(npu)
    assert repr(faults) == "Faults(overflow of 'Add' never struck: 0 launches matched, it waits for launch 1)"
    shown = f"<DumpDir {dump_dir.path}: 0 files, no config; nothing was dumped: the test did not call "
    assert repr(dump_dir) == shown + "dump_dir.configure()>"
    dump_dir.configure()
    dump_dir.path.mkdir()
    (dump_dir / "a").touch()
    assert repr(dump_dir).startswith(f"<DumpDir {dump_dir.path}: 1 files, config data_dump.json; nothing was dumped: ")
"""
    )
    assert "1 passed" in output


IMPORTS = """
import sys
import pytest

def test_without(request):
    with pytest.raises(ModuleNotFoundError):
        import mindspore
    assert not any(name.startswith("mindspore") for name in sys.modules)

def test_inside(npu):
    import mindspore
    from mindspore import nn
    import mindspore.common.dtype
    assert mindspore.__name__ == "dumpsim.frontends.mindspore"
    assert mindspore.nn is nn

def test_troubleshooter(npu):
    import troubleshooter
    assert troubleshooter.__name__ == "dumpsim.emulate.troubleshooter"

def test_again(npu):
    from mindspore import Tensor
    assert Tensor([1, 2]).sum() == 3

def test_afterwards():
    test_without(None)
"""


def test_mindspore_is_importable_in_tests_that_use_the_fixtures(run):
    for options in ((), ("-n", "2")):
        output = run(IMPORTS, "-W", "error", *options)
        assert "5 passed" in output, output
        assert "warning" not in output


def test_an_installed_mindspore_is_put_back(run, tmp_path):
    (tmp_path / "mindspore").mkdir()
    (tmp_path / "mindspore" / "__init__.py").write_text("REAL = True")
    (tmp_path / "mindspore" / "nn.py").write_text("LOADED = []")
    output = run(
        """
import sys
sys.path.insert(0, __file__.rpartition("/")[0])
import mindspore, mindspore.nn

def test_inside(npu):
    assert mindspore.REAL  # bound before
    import mindspore.nn as nn
    assert nn.__name__ == "dumpsim.frontends.mindspore.nn"

def test_afterwards():
    import mindspore.nn as nn
    assert nn is mindspore.nn is sys.modules["mindspore.nn"] and nn.LOADED == []
    assert sys.modules["mindspore"] is mindspore and mindspore.REAL

def test_a_failure_puts_it_back_too(npu):
    import mindspore
    assert not hasattr(mindspore, "REAL")
    npu.at_close(lambda: 1 / 0)

def test_at_the_end():
    test_afterwards()
"""
    )
    assert "4 passed, 1 error" in output, output


def test_an_import_at_the_top_needs_the_ini_option(run, tmp_path):
    text = """
from mindspore import Tensor

def test_tensor():
    assert Tensor([1, 2]).sum() == 3
"""
    output = run(text)
    assert "No module named 'mindspore'" in output
    assert "dumpsim_imports = session" in output
    (tmp_path / "pytest.ini").write_text("[pytest]\ndumpsim_imports = session\n")
    assert "1 passed" in run(text)
    assert "1 passed" in run(text, "-n", "1")
    (tmp_path / "pytest.ini").write_text("[pytest]\ndumpsim_imports = always\n")
    assert "dumpsim_imports: 'always' is not one of fixtures, session" in run(text)


def test_global_generators_start_from_the_seed_and_go_on_afterwards(run):
    output = run(
        """
import random
import numpy as np
import pytest

SEEN = []

@pytest.fixture(scope="module", autouse=True)
def expected():
    random.seed(5), np.random.seed(5)
    after = [random.random(), np.random.rand()]
    random.seed(5), np.random.seed(5)
    return after

@pytest.mark.parametrize("at", range(2))
@pytest.mark.npu(seed=3)
def test_seeded(npu, at):
    SEEN.append((random.random(), np.random.rand()))
    assert SEEN[0] == SEEN[-1] == (random.Random(3).random(), np.random.RandomState(3).rand())

def test_afterwards(expected):
    assert [random.random(), np.random.rand()] == expected
"""
    )
    assert "3 passed" in output, output


GOLDEN = """
import numpy as np
import pytest

@pytest.mark.parametrize("name", ["a", "b"])
def test_net(npu, dump_dir, golden, name):
    from mindspore import Tensor, context, nn
    context.set_context(mode=context.GRAPH_MODE)
    dump_dir.configure(saved_data="full")
    class Net(nn.Cell):
        def construct(self, x):
            return x.exp()
    Net()(Tensor(np.array([VALUE, 1], np.float32)))
    golden(dump_dir)
"""


def test_golden_trees_are_written_and_compared(run, tmp_path):
    output = run(GOLDEN.replace("VALUE", "0"))
    assert "2 failed" in output
    assert "no golden tree yet: " in output
    assert output.count("to make this dump the golden tree: pytest --update-golden") == 2
    assert "difference" not in output
    assert "2 passed" in run(GOLDEN.replace("VALUE", "0"), "--update-golden", "-n", "2")
    trees = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("golden/*/*"))
    assert trees == ["golden/test_inner/test_net[a]", "golden/test_inner/test_net[b]"]
    tree = tmp_path / "golden" / "test_inner" / "test_net[a]" / "dump"
    files = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    assert len(files) == 8  # .dump_metadata among them
    assert not any(str(tmp_path).encode() in data or str(ROOT).encode() in data for data in files.values())
    assert "2 passed" in run(GOLDEN.replace("VALUE", "0"), "-n", "2")
    output = run(GOLDEN.replace("VALUE", "2"))
    assert "2 failed" in output
    assert (
        "output.0.DefaultFormat.float32.npy: float32[2]: 1 of 2 elements differ, most at [0]: 1.0 -> 7.38905" in output
    )
    assert "row Exp Default_Exp-op0 output.0: Max Value 2.71828 -> 7.38906; Min Value 1 -> 2.71828" in output
    assert "pytest --update-golden 'test_inner.py::test_net[a]'" in output
    assert files == {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}


def test_the_directory_of_golden_trees_is_an_option(run, tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\ndumpsim_golden = data/right\n")
    assert "2 passed" in run(GOLDEN.replace("VALUE", "0"), "--update-golden")
    assert (tmp_path / "data" / "right" / "test_inner" / "test_net[b]" / "dump" / "rank_0").is_dir()


def test_loading_the_plugin_loads_no_third_party_package_but_pytest():
    code = """
import json, sys, pytest
before = set(sys.modules)
import dumpsim.testing.plugin
print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    loaded = set(json.loads(done.stdout))
    assert loaded - set(sys.stdlib_module_names) == {"dumpsim"}


def test_plugins_around_a_test_get_its_result():
    """What is returned by the hook that has called the test function."""
    hook = plugin.pytest_pyfunc_call(SimpleNamespace(stash=pytest.Stash()))
    next(hook)
    with pytest.raises(StopIteration) as stopped:
        hook.send(True)
    assert stopped.value.value is True
