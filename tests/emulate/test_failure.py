"""How a process of `dumpsim run` shows an error that nobody catches."""

import json
import sys

import dumprun
import pytest

from dumpsim.core.errors import BadInputError, ScriptTypeError, ScriptValueError
from dumpsim.device.chip import chip
from dumpsim.emulate import failure
from dumpsim.emulate.failure import text_of

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


def caught(action):
    try:
        action()
    except Exception as error:
        return error


def frames(text):
    return [line.rpartition(" in ")[2] for line in text.splitlines() if line.startswith("  File ")]


def test_frames_below_the_last_one_of_the_script_are_left_out():
    def inner():
        chip("nothing")

    error = caught(inner)
    text = text_of(error)
    assert frames(text) == ["caught", "inner"]  # not that of `chip`
    assert text.endswith(f"\ndumpsim.core.errors.BadInputError: {error}\n")
    assert text.startswith("Traceback (most recent call last):\n")

    def outer():  # by way of the emulation back to the script, and down again
        sorted([1], key=lambda _: inner())

    assert frames(text_of(caught(outer))) == ["caught", "outer", "<lambda>", "inner"]


def test_an_error_of_mindspore_has_the_name_of_pythons_own():
    for error, name in ((ScriptValueError("bad"), "ValueError"), (ScriptTypeError("bad"), "TypeError")):
        assert text_of(error) == f"{name}: bad\n"
    assert text_of(BadInputError("bad")) == "dumpsim.core.errors.BadInputError: bad\n"
    error = BadInputError("bad")
    error.add_note("a note")
    assert text_of(error) == "dumpsim.core.errors.BadInputError: bad\na note\n"


def test_an_error_of_the_emulation_itself_keeps_all_frames(monkeypatch):
    def broken(*_):
        raise KeyError("mine")

    monkeypatch.setattr("dumpsim.device.chip.nearest", broken)
    assert frames(text_of(caught(lambda: chip("nothing")))) == ["caught", "<lambda>", "chip", "broken"]


@pytest.mark.parametrize(("variable", "hooked"), [(None, True), ("", True), ("short", True), ("full", False)])
def test_uncaught_errors_are_shown_so_unless_all_frames_are_asked_for(monkeypatch, capsys, variable, hooked):
    if variable is None:
        monkeypatch.delenv("DUMPSIM_TRACEBACK", raising=False)
    else:
        monkeypatch.setenv("DUMPSIM_TRACEBACK", variable)
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    failure.install()
    assert (sys.excepthook is not sys.__excepthook__) is hooked
    monkeypatch.setattr(sys, "excepthook", print)  # of the script
    failure.install()
    assert sys.excepthook is print


def test_the_hook_writes_to_stderr(capsys):
    error = caught(lambda: chip("nothing"))
    failure._hook(type(error), error, error.__traceback__)
    assert capsys.readouterr() == ("", text_of(error))
    error = caught(lambda: {}["key"])
    failure._hook(type(error), error, error.__traceback__)
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[-1]) == ("", "KeyError: 'key'")
