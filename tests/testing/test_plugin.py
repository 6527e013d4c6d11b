"""The pytest plugin, run in pytest sessions of its own."""

import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = any(point.value == "dumpsim.testing.plugin" for point in entry_points(group="pytest11"))


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run pytest on one test file; returns its output."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run_file(text, *options):
        path = tmp_path / "test_inner.py"
        path.write_text(text)
        load = [] if INSTALLED else ["-p", "dumpsim.testing.plugin"]
        command = [sys.executable, "-m", "pytest", *load, "-q", "-p", "no:cacheprovider", "--strict-markers", str(path)]
        done = subprocess.run([*command, *options], capture_output=True, text=True, cwd=tmp_path, check=False)
        return done.stdout + done.stderr

    return run_file


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

@pytest.mark.npu(chip="910C")
def test_chip(npu):
    npu.device
"""
    )
    assert "the marker npu takes keywords only" in output
    assert "unknown chip '910C'" in output


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
