"""The front end's side: when the dump starts, and how it ends."""

import json
from pathlib import Path

import pytest

import dumpsim
from dumpsim.core.errors import DumpConfigError
from dumpsim.core.events import RunEvent
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import _dumping
from dumpsim.runtime.session import Session
from tests.dump.machine import config


@pytest.fixture
def session(tmp_path):
    settings = RunSettings(manifest=str(tmp_path / "manifest.json"))
    return Session(settings, environment={})


def environment(tmp_path, **changes):
    file = tmp_path / "dump.json"
    file.write_text(json.dumps(config(tmp_path / "out", **changes)))
    return {"MINDSPORE_DUMP_CONFIG": str(file)}


def test_without_a_config_nothing_happens_and_it_stays_so(session, tmp_path):
    assert _dumping.ensure_dump(session, {}) is None
    assert _dumping.ensure_dump(session, environment(tmp_path)) is None
    assert session.observers.taps == []
    assert session.memory_reuse


def test_a_dump_listens_from_the_first_compile_on_and_tells_at_the_end(session, tmp_path, capsys):
    service = _dumping.ensure_dump(session, environment(tmp_path))
    assert _dumping.ensure_dump(session, {}) is service is _dumping.dump_of(session)
    assert session.observers.taps == [service]
    assert not session.memory_reuse
    assert not session.options().memory_reuse
    _dumping.finish_dump(session)
    assert session.observers.taps == []
    assert "dumpsim: asked 0, captured 0" in capsys.readouterr().err
    assert json.loads((tmp_path / "manifest.json").read_text())["asked"] == 0
    assert _dumping.dump_of(session) is None


def test_a_bad_config_is_refused_at_every_compile_until_it_is_mended(session, tmp_path, capsys):
    bad = environment(tmp_path, input_output=7)
    for _ in range(2):
        with pytest.raises(DumpConfigError, match="input_output should be 0, 1, 2"):
            _dumping.ensure_dump(session, bad)
    assert _dumping.ensure_dump(session, environment(tmp_path)) is not None
    _dumping.finish_dump(session)


def test_warnings_look_like_the_vendors(session, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("GLOG_v", raising=False)
    _dumping.ensure_dump(session, environment(tmp_path, kernels=["add", "add"], dump_mode=1))
    _dumping.finish_dump(session)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("[WARNING] ME(")
    assert lines[0].endswith("ParseKernels] Duplicate dump kernel name:add")
    assert "PrintUnusedKernel] [DataDump] Unused Kernel in json: add" in lines[1]


def test_the_private_calls_of_scripts(session, tmp_path, capsys, monkeypatch):
    from dumpsim.frontends.mindspore import _c_expression

    control = _dumping._dumps().control
    _c_expression._dump_step()
    assert "call _set_init_iter first" in capsys.readouterr().err
    _c_expression._set_init_iter(5)
    _c_expression._dump_step(2)
    _c_expression._dump_set_dynamic()
    _c_expression._dump_start()
    assert (control.user_step, control.dynamic, control.running) == (7, True, True)
    service = _dumping.ensure_dump(session, environment(tmp_path))
    assert service.info.control is control
    _c_expression._dump_stop()
    assert not control.running
    _dumping.finish_dump(session)


@pytest.mark.parametrize("release", ["seed", "2.10"])
def test_a_script_that_changes_the_variable_later_is_told(tmp_path, monkeypatch, capsys, release):
    monkeypatch.delenv("GLOG_v", raising=False)
    session = Session(RunSettings(manifest=None, mindspore=release), environment={})
    service = _dumping.ensure_dump(session, environment(tmp_path))
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", "/elsewhere.json")
    for run in range(2):
        service.run_begin(RunEvent(root_graph_id=0, graph_id=0, run_count=run))
    _dumping.finish_dump(session)
    text = "MINDSPORE_DUMP_CONFIG was read before the first graph was compiled; changing it now has no effect"
    assert capsys.readouterr().err.count(text) == (release == "seed")


def test_the_dump_knows_no_environment_and_no_number_of_a_mode():
    package = Path(dumpsim.__file__).parent
    for path in (package / "dump").glob("*.py"):
        text = path.read_text()
        assert "os.environ" not in text, path
        assert "op_debug_mode" not in text, path
        assert "common_dump_settings" not in text, path
