"""``profiling_options``, field by field."""

import json
import os

import pytest

from dumpsim.frontends.mindspore import context
from dumpsim.profiling.options import METRICS, parse_options

SWITCHES = ("training_trace", "task_trace", "aicpu_trace")


def options(tmp_path, **given):
    return json.dumps({"result_path": str(tmp_path), **given})


@pytest.mark.parametrize("key", SWITCHES)
def test_a_switch_is_on_or_off(tmp_path, key):
    assert getattr(parse_options(options(tmp_path, **{key: "on"})), key) is True
    assert getattr(parse_options(options(tmp_path, **{key: "off"})), key) is False
    assert getattr(parse_options(options(tmp_path)), key) is False
    for value in ("On", "true", "", "1"):
        with pytest.raises(ValueError, match=rf"profiling_options.{key}: '{value}' is not a switch; allowed: on, off"):
            parse_options(options(tmp_path, **{key: value}))


@pytest.mark.parametrize("metrics", METRICS)
def test_each_group_of_metrics_is_taken(tmp_path, metrics):
    found = parse_options(options(tmp_path, ai_core_metrics=metrics))
    assert (found.ai_core_metrics, found.operators) == (metrics, True)


def test_pipe_utilization_is_the_default(tmp_path):
    assert parse_options(options(tmp_path)).ai_core_metrics == "PipeUtilization"
    assert not parse_options(options(tmp_path)).operators


def test_a_relative_path_starts_at_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    assert parse_options('{"result_path": "out"}').result_path == str(tmp_path / "out")
    given = parse_options("training_trace")  # the value where a script gives none
    assert (given.result_path, given.training_trace, given.operators) == (str(tmp_path), True, False)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("not json", ValueError, "profiling_options: 'not json' is not JSON"),
        ("", ValueError, "is not JSON"),
        ("[" * 100_000, ValueError, "nested too deeply"),
        ("[1]", TypeError, "is not a JSON object"),
        ('{"result_path": 3}', TypeError, "profiling_options.result_path: 3 is int"),
        ('{"result_path": ".", "task_trace": true}', TypeError, "profiling_options.task_trace: True is bool"),
        ('{"result_path": ".", "tasktrace": "on"}', ValueError, r"unknown key 'tasktrace'.*did you mean 'task_trace'"),
        ('{"result_path": ".", "result_path": "."}', ValueError, "'result_path' occurs twice"),
        ('{"training_trace": "on"}', ValueError, "no directory is given"),
        ('{"result_path": "no/such"}', ValueError, "'no/such' is not a directory that exists"),
        ('{"result_path": "a\\u0000b"}', ValueError, "is not a directory that exists"),
        ('{"result_path": ".", "ai_core_metrics": "Memry"}', ValueError, r"'Memry'.*did you mean 'Memory'"),
        ('{"result_path": ".", "fp_point": "Default/Conv2D-op1"}', ValueError, "fp_point: has no effect"),
        ('{"result_path": ".", "bp_point": "a", "training_trace": "off"}', ValueError, "bp_point: has no effect"),
    ],
)
def test_what_cannot_be_met_is_refused(text, error, message):
    with pytest.raises(error, match=message):
        parse_options(text)


def test_the_result_path_must_be_writable(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(ValueError, match="cannot be read and written"):
        parse_options(options(tmp_path))


def test_set_context_refuses_and_stays_as_it_was():
    with pytest.raises(ValueError, match="is not JSON"):
        context.set_context(enable_profiling=True, profiling_options="not json")
    assert context.get_context("enable_profiling") is False
    assert context.get_context("profiling_options") == "training_trace"
    context.set_context(profiling_options="not json")  # read where profiling is on
    with pytest.raises(ValueError, match="is not JSON"):
        context.set_context(enable_profiling=True)
    assert context.get_context("enable_profiling") is False
