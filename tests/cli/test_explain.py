"""dumpsim explain on the command line."""

import json
import subprocess
import sys


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
