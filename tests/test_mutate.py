"""The script that draws mutations, on a small package of its own."""

import ast
import json

import mutate
import pytest

MODULE = '''"""Words: 1 + 2."""

__all__ = ["grow", "sign"]
LIMIT: int = 10


def grow(value: int, *, by: int = 3) -> int:
    """Return more."""
    if value > LIMIT and by:
        raise ValueError(f"{value} is more than {LIMIT + 0}")
    return value + by


def sign(value: int) -> int:
    return 1 if not value < 0 else -1
'''

TESTS = """
from dumpsim.core.number import grow

def test_grow():
    assert grow(4) == 7 and grow(9, by=1) == 10
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # its tests need none, and start sooner
    (tmp_path / "dumpsim" / "core").mkdir(parents=True)
    (tmp_path / "tests" / "core").mkdir(parents=True)
    for folder in ("dumpsim", "dumpsim/core"):
        (tmp_path / folder / "__init__.py").touch()
    (tmp_path / "dumpsim" / "core" / "number.py").write_text(MODULE)
    (tmp_path / "tests" / "core" / "test_number.py").write_text(TESTS)
    return tmp_path


def test_each_kind_of_place_is_found_once_and_words_are_left_alone():
    found = {(site.kind, site.new_line) for site in mutate.sites("dumpsim/core/number.py", MODULE)}
    assert found == {
        ("constant", "LIMIT: int = 11"),
        ("constant", "def grow(value: int, *, by: int = 4) -> int:"),
        ("comparison", "if value >= LIMIT and by:"),
        ("condition", "if value > LIMIT or by:"),
        ("return", "return None"),
        ("arithmetic", "return value - by"),
        ("constant", "return 2 if not value < 0 else -1"),
        ("condition", "return 1 if value < 0 else -1"),
        ("comparison", "return 1 if not value <= 0 else -1"),
        ("constant", "return 1 if not value < 1 else -1"),
        ("arithmetic", "return 1 if not value < 0 else 1"),
        ("constant", "return 1 if not value < 0 else -2"),
    }


def test_every_mutation_of_the_package_is_python():
    for name in ("dump/summary.py", "ops/pool.py", "codecs/npy.py", "graph/mindspore/cut.py", "tensor/metrics.py"):
        text = (mutate.ROOT / "dumpsim" / name).read_text("utf-8")
        found = mutate.sites(f"dumpsim/{name}", text)
        assert len(found) > 40
        lines = text.splitlines(keepends=True)
        for node in ast.parse(text).body:  # each with the mutations inside of it: a module is long to compile
            start = sum(map(len, lines[: node.lineno - 1]))
            stop = start + sum(map(len, lines[node.lineno - 1 : node.end_lineno]))
            for site in found:
                if start <= site.start < stop:
                    compile(site.apply(text)[start : stop + len(site.new) - (site.stop - site.start)], name, "exec")


def test_a_sample_follows_from_its_seed(root):
    found = mutate.population(root)
    assert mutate.draw(found, 5, 1) == mutate.draw(found, 5, 1) != mutate.draw(found, 5, 2)
    assert len({site.start for site in mutate.draw(found, 99, 1)}) > 9
    assert mutate.population(root, ["ops"]) == {}


def test_mutations_are_killed_survive_or_are_known(root, capsys):
    (line,) = (n for n, text in enumerate(MODULE.splitlines(), 1) if text.startswith("LIMIT"))
    marked = {"path": "dumpsim/core/number.py", "old": "LIMIT: int = 10", "new": "LIMIT: int = 11", "reason": "a try"}
    (root / "tests" / "equivalent_mutants.json").write_text(json.dumps([marked]))
    (place,) = (n for n, text in enumerate(MODULE.splitlines(), 1) if "return value + by" in text)
    (other,) = (n for n, text in enumerate(MODULE.splitlines(), 1) if "value > LIMIT" in text)
    at = [f"--at=dumpsim/core/number.py:{number}" for number in (line, place, other)]
    assert mutate.main([f"--root={root}", *at]) == 1
    output = capsys.readouterr().out
    assert "killed 3 of 4 (75.0%); 1 equivalent, 0 unclear" in output
    assert "survived: dumpsim/core/number.py:9 comparison\n    - if value > LIMIT and by:\n" in output
    assert (root / "dumpsim" / "core" / "number.py").read_text() == MODULE
    assert mutate.main([f"--root={root}", f"--at=dumpsim/core/number.py:{other}", "--goal=0.5"]) == 0


def test_a_test_that_fails_anyway_kills_nothing(root, capsys):
    (root / "tests" / "core" / "test_number.py").write_text(TESTS + "\ndef test_red():\n    assert False\n")
    (place,) = (n for n, text in enumerate(MODULE.splitlines(), 1) if text.startswith("LIMIT"))
    assert mutate.main([f"--root={root}", f"--at=dumpsim/core/number.py:{place}"]) == 0
    assert "killed 0 of 0 (100.0%); 0 equivalent, 1 unclear" in capsys.readouterr().out
