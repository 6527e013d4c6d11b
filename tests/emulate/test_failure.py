"""How a process of `dumpsim run` shows an error that nobody catches."""

import json

import dumprun
import pytest

SCRIPT = """
    from mindspore import Tensor, ops


    def wrong():
        ops.Reshape()(Tensor([1.0, 2.0]), (3,))


    wrong()
"""


@pytest.mark.parametrize("ranks", [(), ("--ranks", "2")])
def test_an_error_has_the_frames_of_the_script_and_the_name_that_mindspore_gives_it(tmp_path, ranks):
    (tmp_path / "script.py").write_text(dumprun.textwrap.dedent(SCRIPT))
    found = dumprun.cli(tmp_path, "run", *ranks, "script.py", code=1)
    lines = found.err.splitlines()
    assert sum(line.startswith("  File ") for line in lines) == 2
    assert any(line.startswith("ValueError: For primitive[Reshape]") for line in lines)
    assert "ScriptValueError" not in found.err
    if ranks:
        assert "dumpsim: rank 0: ValueError, exit code 1" in found.err


def test_all_frames_are_shown_on_demand(tmp_path):
    (tmp_path / "script.py").write_text(dumprun.textwrap.dedent(SCRIPT))
    command = [dumprun.sys.executable, "-m", "dumpsim", "run", "script.py"]
    found = dumprun.finish(command, tmp_path, tmp_path, {"DUMPSIM_TRACEBACK": "full"}, 1)
    assert found.err.count("  File ") > 3


def test_a_refused_path_is_said_without_frames_of_the_emulation(tmp_path):
    run = dumprun.dump(
        tmp_path, document=json.dumps(dumprun.config("")), env={"MS_DIAGNOSTIC_DATA_PATH": "here"}, code=1
    )
    assert run.err.count("  File ") == 1
    assert "'here/debug_dump' is not absolute" in run.err


def test_other_errors_are_shown_as_python_does(tmp_path):
    (tmp_path / "script.py").write_text("import mindspore\nraise KeyError('mine')")
    assert dumprun.cli(tmp_path, "run", "script.py", code=1).err.endswith("KeyError: 'mine'\n")


def test_a_fault_that_never_strikes_is_reported(tmp_path):
    found = dumprun.dump(tmp_path, "import mindspore; mindspore.ops.exp(mindspore.Tensor([1.0]))",
                         faults=[{"kind": "overflow", "op": "NoSuch*"}])  # fmt: skip
    assert "overflow of 'NoSuch*' never struck" in found.err
