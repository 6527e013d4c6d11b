"""The script that draws mutations, on a small package of its own."""

import ast
import contextlib
import json
import re
import shutil
import sqlite3
import sys

import forkrun
import linemap
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


def test_any_negative_number_is_the_rest_of_a_shape():
    """numpy takes -2 for -1, so that only the sign changes something."""
    found = [site.new_line for site in mutate.sites("x.py", "y = x.reshape(-1, 3)\nz = x.sum(-1)")]
    assert found == ["y = x.reshape(1, 3)", "y = x.reshape(-1, 4)", "z = x.sum(1)", "z = x.sum(-2)"]


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


def test_equivalent_mutations_are_listed_with_lines_that_exist():
    root = mutate.EQUIVALENT.parents[1]
    for entry in json.loads(mutate.EQUIVALENT.read_text()):
        lines = [line.strip() for line in (root / entry["path"]).read_text().split("\n")]
        assert entry["old"] in lines, entry  # the reason holds wherever the line stands
        assert entry["new"] != entry["old"]


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


# -- recordings --------------------------------------------------------------------------------------------------------

LINES = """
import functools

LIMIT = 3


def near(value):
    if (value <
            LIMIT):
        return [one
                for one in range(value)]
    raise ValueError(value)
    return 0


def far():
    def inner():
        return 7
    return inner
"""

LINE_TESTS = """
import os
import subprocess
import sys

import pytest
from dumpsim.core.lines import far, near
from dumpsim.core.table import ROWS


@pytest.fixture(scope="module")
def made():
    return far()


def test_near():
    assert near(2)


@pytest.mark.parametrize("number", [0, 1])
def test_shared(made, number):
    assert made() == 7


def test_program():
    code = "from dumpsim.core.lines import near; near(9)"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": os.getcwd()}).returncode
"""


@pytest.mark.dev
def test_a_recording_says_which_tests_execute_a_line(root, tmp_path, capsys):
    (root / "dumpsim" / "core" / "lines.py").write_text(LINES)
    (root / "dumpsim" / "core" / "table.py").write_text("ROWS = 3\n")
    (root / "tests" / "core" / "test_number.py").write_text(LINE_TESTS)
    (root / "tests" / "core" / "test_other.py").write_text("def test_other():\n    pass\n")
    for plugin in (forkrun, linemap):
        shutil.copy(plugin.__file__, root / "tests")
    file = tmp_path / "lines.db"
    assert mutate.main([f"--root={root}", f"--record={file}", "tests"]) == 0
    head = "tests/core/test_number.py::"
    every = {head + name for name in ("test_near", "test_program", "test_shared[0]", "test_shared[1]")}
    path = "dumpsim/core/lines.py"
    number = {text.strip(): at for at, text in enumerate(LINES.splitlines(), 1)}

    def tests(line):
        return tuple(set(names) for names in linemap.LineMap(file, root).tests(path, number[line]))

    near, shared = every - {head + f"test_shared[{n}]" for n in (0, 1)}, {head + f"test_shared[{n}]" for n in (0, 1)}
    assert tests("LIMIT):") == (near, shared)  # the program that the test starts is recorded too
    assert tests("for one in range(value)]")[0] == {head + "test_near"}
    assert tests("raise ValueError(value)")[0] == {head + "test_program"}
    assert tests("return 0")[0] == set()
    assert tests("return 0")[1] == every  # a program that was killed could have executed it
    assert tests("return inner")[0] == shared  # what a shared fixture executes, of all tests that use it
    assert tests("LIMIT = 3") == (near, shared)  # at import: the functions that use the name, then all
    table = linemap.LineMap(file, root).tests("dumpsim/core/table.py", 1)
    assert tuple(map(set, table)) == (set(), every)  # without functions: those of files that import it
    (root / path).write_text("# one line more\n" + LINES)
    assert set(linemap.LineMap(file, root).tests(path, number["return inner"] + 1)[0]) == shared

    (place,) = (at for at, text in enumerate(LINES.splitlines(), 2) if "return 7" in text)
    (root / path).write_text("# one line more\n" + LINES + "\n\ndef idle():\n    return 1\n")
    idle = (root / path).read_text().count("\n")
    options = [f"--covered={file}", f"--at={path}:{place}", f"--at={path}:{idle}", "--jobs=2"]
    assert mutate.main([f"--root={root}", *options]) == 1
    output = capsys.readouterr().out
    assert len(re.findall("killed .*return 8\n    tests/core/test_number.py::test_shared", output, re.DOTALL)) == 1
    assert output.count("no test executes this line; 4 of 4 beside it") == 2
    assert "killed 2 of 4 (50.0%)" in output


ENTRIES = """
FIRST = 7


def one():
    return 1


def two():
    return 2


def entry(function):
    return {"size": 3, "call": function}


TABLE = {
    "one": (1, one),
    "two": (2, two),
    "three": (3, lambda: 3),
    "four": entry(one),
}
ROW = dict(
    name="five",
    size=5,
)
"""
ENTRY_TESTS = """
import pytest
from dumpsim.core.entries import ROW, TABLE
from dumpsim.core.user import first


@pytest.mark.parametrize("name", ["one", "two"])
def test_entry(name):
    assert TABLE[name][1]() == TABLE[name][0]


def test_first():
    assert first() == 7


@pytest.mark.parametrize("name", ["five", "six", "three"])
def test_row(name):
    assert (name == ROW["name"]) == (ROW["size"] == len(name) + 1)
"""


def test_a_recording_needs_coverage(root, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "coverage", None)
    assert mutate.main([f"--root={root}", f"--record={tmp_path / 'lines.db'}", "tests"]) == 2
    assert "needs the package coverage" in capsys.readouterr().err


@pytest.mark.dev
def test_what_runs_at_import_belongs_to_the_tests_that_use_it(root, tmp_path):
    (root / "dumpsim" / "core" / "entries.py").write_text(ENTRIES)
    (root / "dumpsim" / "core" / "user.py").write_text(
        "from dumpsim.core.entries import FIRST\n\n\ndef first():\n    return FIRST\n"
    )
    (root / "tests" / "core" / "test_entries.py").write_text(ENTRY_TESTS)
    shutil.copy(linemap.__file__, root / "tests")
    file = tmp_path / "lines.db"
    assert mutate.main([f"--root={root}", f"--record={file}", "tests/core/test_entries.py"]) == 0
    lines = linemap.LineMap(file, root)
    number = {text.strip(): at for at, text in enumerate(ENTRIES.splitlines(), 1)}
    head = "tests/core/test_entries.py::test_"
    near = {text: set(lines.tests("dumpsim/core/entries.py", at)[0]) for text, at in number.items() if text}
    assert near['"one": (1, one),'] == {head + "entry[one]"}  # what stands in the entry
    assert near['"two": (2, two),'] == {head + "entry[two]"}
    # none calls it: all of the table, and the one with its key
    assert near['"three": (3, lambda: 3),'] == {head + "entry[one]", head + "entry[two]", head + "row[three]"}
    assert near['return {"size": 3, "call": function}'] == {head + "entry[one]"}  # the entry that calls it
    assert near["size=5,"] == {head + "row[five]"}  # a test that only reads it has its name
    assert near["FIRST = 7"] == {head + "first"}  # a function of another module that uses it


def test_lines_of_earlier_runs_move_with_a_module_that_changes_between_runs(tmp_path):
    old = "A = 1\n\ndef f():\n    return A\n\ndef g():\n    return 2\n"
    new = "A = 1\nB = 2\n\ndef f():\n    return A\n\ndef h():\n    return B\n\ndef g():\n    return 2\n"
    (tmp_path / "m.py").write_text(new)
    bits = {"test_f": [4], "test_g": [7], "test_all": [1, 4, 7]}
    with contextlib.closing(sqlite3.connect(tmp_path / "lines.db")) as data, data:
        data.execute("create table test (name text primary key, seconds real, fixtures text)")
        data.execute("create table source (path text primary key, text text)")
        data.execute("create table line (path text, test text, bits blob, primary key (path, test))")
        data.execute("insert into source values ('m.py', ?)", (old,))
        for name, lines in bits.items():
            data.execute("insert into test values (?, 0.1, '[]')", (name,))
            number = sum(1 << line for line in lines)
            data.execute("insert into line values ('m.py', ?, ?)", (name, number.to_bytes(2, "little")))
        for _ in range(2):
            linemap._carry(data, "m.py", new)
            data.execute("insert or replace into source values ('m.py', ?)", (new,))
    lines = linemap.LineMap(tmp_path / "lines.db", tmp_path)
    assert [set(lines.tests("m.py", line)[0]) for line in (5, 8, 11)] == [
        {"test_f", "test_all"}, set(), {"test_g", "test_all"},
    ]  # fmt: skip


def test_a_recording_must_exist(root, capsys):
    with pytest.raises(SystemExit):
        mutate.main([f"--root={root}", f"--covered={root / 'lines.db'}"])
    assert re.search(r"no such file: .*lines.db \(--record writes it\)", capsys.readouterr().err)


# -- forks of a warm process -------------------------------------------------------------------------------------------

FORKED = """
LIMIT = 3

def double(value):
    return value * 2

def outer():
    return [one + 1 for one in range(2)]

class Box:
    def __init__(self, value):
        self.value = value

    @property
    def half(self):
        return self.value / 2

def make():
    return 5 + 1

MADE = make()
OLD, NEW = (lambda: 1), (lambda: 2)
"""

FORKED_TESTS = """
import collections
import os
import subprocess
import sys
import time
import weakref
from pathlib import Path

import pytest
from dumpsim.core import forked

LEFT = []
GONE = weakref.proxy(collections.UserList())  # whoever asks for its class gets an error

@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    LEFT.append(tmp_path_factory.mktemp("shared"))
    return forked.outer()

def test_double():
    assert forked.double(3) == 6

def test_shared(shared, tmp_path):
    assert shared == [1, 2]
    assert len(LEFT) == 1 and not list(LEFT[0].iterdir())
    (LEFT[0] / "file").touch()

def test_half():
    assert forked.Box(4).half == 2

def test_program():
    code = "from dumpsim.core import forked; raise SystemExit(forked.double(3) != 6)"
    assert subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.getcwd()}).returncode == 0

def test_red():
    assert forked.double(3) == 7

def test_slow():
    time.sleep(forked.double(0))

def test_death():
    if forked.double(1) != 2:
        os._exit(3)
"""


@pytest.fixture
def copy(root, tmp_path_factory):
    """A copy of a checkout with the module above and its tests."""
    (root / "dumpsim" / "core" / "forked.py").write_text(FORKED)
    (root / "tests" / "core" / "test_forked.py").write_text(FORKED_TESTS)
    shutil.copy(forkrun.__file__, root / "tests")
    return mutate.Copy(root, tmp_path_factory.mktemp("copy"))


def forked_sites(*texts):
    """The mutations whose lines are as given."""
    found = {site.new_line: site for site in mutate.sites("dumpsim/core/forked.py", FORKED)}
    return [found[text] for text in texts]


def test_a_warm_process_runs_mutations_in_forks(copy):
    head = "tests/core/test_forked.py::test_"
    seconds = {head + name: 0.0 for name in ("double", "shared", "half", "program", "red", "slow", "death")}

    def tried(text, *names):
        (site,) = forked_sites(text)
        covered = mutate.Covered([head + name for name in names], len(names), 0)
        verdict = mutate.try_warm(copy, warm, site, covered, seconds)
        return verdict and (verdict.result, verdict.test.removeprefix(head))

    with contextlib.closing(copy.warm(["tests/core/test_forked.py"])) as warm:
        assert warm.tests == set(seconds)
        assert tried("return value + 2", "half", "double") == ("killed", "double")
        assert tried("return value + 2", "program") == ("killed", "program")  # its child reads the mutated file
        assert tried("return [one + 2 for one in range(2)]", "shared") == ("killed", "shared")
        assert tried("return [one + 2 for one in range(2)]", "half") == (
            "survived",
            "1 tests of 1 that execute the line and 0 beside them",
        )
        assert tried("return self.value * 2", "double", "half") == ("killed", "half")
        assert tried("return value * 3", "red", "double") == ("killed", "double")  # the first one fails anyway
        assert tried("return value + 2", "death") == ("killed", "death")
        for cold in ("LIMIT = 4", "return 6 + 1", "OLD, NEW = (lambda: 2), (lambda: 2)"):
            assert tried(cold, "double") is None
        limit = [(head + "shared", 30.0), (head + "double", 30.0)]
        assert warm.run(limit) == ("passed", "")  # nothing is left of what the forks did
        slow = FORKED.replace("return value * 2", "return 60")
        answer = warm.run([(head + "slow", 0.3)], path="dumpsim/core/forked.py", old=FORKED, new=slow)
        assert answer == ("timeout", head + "slow")
    assert (copy.path / "dumpsim" / "core" / "forked.py").read_text() == FORKED


def test_code_that_no_function_holds_takes_a_fresh_interpreter(tmp_path):
    def changed(old, new):
        pairs = forkrun.differences(*(compile(text, "x.py", "exec") for text in (old, new)))
        return pairs and [one.co_qualname for one, _ in pairs]

    nested = "class A:\n def f(self):\n  def g():\n   return 1\n  return g\n"
    assert changed(nested, nested.replace("return 1", "return 2")) == ["A.f", "A.f.<locals>.g"]
    assert changed(nested, nested) == []
    assert changed("class A:\n B = 1", "class A:\n B = 2") is None  # runs at import
    assert changed("def f(a=1): pass", "def f(a=2): pass") is None
    assert changed("def f():\n class A:\n  B = 1", "def f():\n class A:\n  B = 2") == ["f"]
    assert changed("A = 1", "A = True") is None


def test_a_warm_process_that_cannot_start_says_why(copy):
    (copy.path / "tests" / "forkrun.py").write_text("raise OSError('no fork here')")
    with pytest.raises(RuntimeError, match="no fork here"):
        copy.warm(["tests/core/test_forked.py"])


def test_a_function_of_a_table_is_tried_with_the_tests_of_its_entries():
    text = """def f(a, b=3):
    return a
def made(name):
    return Entry(name=name, kernel=f)
def other(name):
    return Entry(name=name)
TABLE = {one.name: one for one in (made("First"), made("Second"), other("Third"), Entry("Fourth", kernel=f))}
"""
    module = linemap._Module(text, text, {})
    assert module.words(1) == {"First", "Second", "Fourth"}


def test_a_default_is_tried_with_the_tests_of_its_package():
    module = linemap._Module("def f(a, b=3,\n      *, c=4):\n    return a + 5\n\nd = 6\n", "", {})
    assert [line for line in range(1, 6) if module.is_default(line)] == [1, 2]
    assert linemap._packages("dumpsim/room/a/b/c.py") == {"a", "a.b", "a.b.c"}
