"""dumpsim explain on the command line."""

import json
import subprocess
import sys

from dumpsim.cli.explain import explain
from dumpsim.modes.glossary import Topic


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "dumpsim", "explain", *words], capture_output=True, text=True)


def test_a_field_as_json_lines():
    done = run("op_debug_mode", "--json")
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["facts"][2] == ["allowed", "0, 3, 4"]


def test_an_unknown_word_is_a_usage_error():
    done = run("op_debug_mod")
    assert done.returncode == 2
    assert "op_debug_mode" in done.stderr


def test_each_meaning_is_a_paragraph(monkeypatch, capsys):
    """A name with a source and one without; the words of the command line are one message."""
    asked = []
    first = Topic(name="a", kind="config field", text="What it is.", facts=(("type", "int"), ("allowed", "0, 3")),
                  source="seed 001")  # fmt: skip
    second = Topic(name="b", kind="error code", text="Another one.", facts=(), source="")
    monkeypatch.setattr("dumpsim.modes.glossary.explain", lambda word: asked.append(word) or (first, second))
    explain(["a", "whole", "message"])
    assert capsys.readouterr() == (
        "a (config field)\n  What it is.\n  type: int\n  allowed: 0, 3\n  source: seed 001\n\n"
        "b (error code)\n  Another one.\n", "",
    )  # fmt: skip
    explain(["a"], as_json=True)
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"name": "a", "kind": "config field", "text": "What it is.", "facts": [["type", "int"], ["allowed", "0, 3"]],
         "source": "seed 001"},
        {"name": "b", "kind": "error code", "text": "Another one.", "facts": [], "source": ""},
    ]  # fmt: skip
    assert asked == ["a whole message", "a"]
