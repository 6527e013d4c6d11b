"""What ``convert`` prints of what was converted and what was not."""

import json

import numpy as np
import pytest
from binfile import bin_bytes, item
from typer.testing import CliRunner

from dumpsim.analysis.convert import Converted, Failure, Job
from dumpsim.cli.app import app

NAME = "Add.Default_Add-op0.1.2.1700000000000000"
RESULT = f"{NAME}.output.0.ND.float32"
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command beside a dump of one file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / NAME).write_bytes(bin_bytes([], [item(X)]))

    def ran(*words):
        found = CliRunner().invoke(app, ["convert", *map(str, words)])
        return found.exit_code, found.stdout.splitlines(), found.stderr.splitlines()

    return ran


def test_results_are_counted_and_none_is_replaced_unasked(run, tmp_path):
    """A file of npy has a head of 128 bytes."""
    assert run("dump") == (0, ["1 files, 1 results, 152 B in converted"], [])
    np.testing.assert_array_equal(np.load(tmp_path / "converted" / f"{RESULT}.npy"), X)
    code, out, err = run("dump")
    assert (code, out, len(err)) == (1, ["1 files, 0 results, 0 B in converted; 1 failed"], 1)
    assert err[0].startswith(f"dump/{NAME}: output 0: ")
    assert run("dump", "--overwrite") == (0, ["1 files, 1 results, 152 B in converted"], [])
    code, (line,), err = run("dump", "--out", "new", "--json")
    assert (code, err) == (0, [])
    assert json.loads(line) == {"files": 1, "written": 1, "bytes": 152, "out": "new", "failed": []}


def test_kinds_and_layouts_of_results(run, tmp_path):
    assert run("dump", "--to", "bin", "-o", "raw") == (0, ["1 files, 1 results, 24 B in raw"], [])
    (path,) = (tmp_path / "raw").iterdir()
    assert path.read_bytes() == X.tobytes()
    for words in (["--format", "device"], ["-f", "NHWC"], ["--jobs", "1"], ["-j", "2"]):
        assert run("dump", *words, "-o", "-".join(words).strip("-"))[0] == 0
    for words in (["--to", "csv"], ["--format", "NXYZ"], ["--jobs", "0"]):
        assert run("dump", *words, "-o", "wrong")[0] != 0
    (tmp_path / "empty").mkdir()
    np.save(tmp_path / "empty" / f"{RESULT}.npy", X)
    assert run("empty") == (1, [], ["no binary dump file found; npy files need no conversion"])


@pytest.mark.parametrize("count", [1, 20, 21, 23])
def test_twenty_failures_are_listed(run, monkeypatch, count):
    failures = tuple(
        Failure(path=f"f{n}", tensor="input 0" if n % 2 else "", reason=f"reason {n}") for n in range(count)
    )
    jobs = [Job(path=f"f{n}", directory="d", name=f"f{n}") for n in range(count)]
    done = [Converted(path="f0", written=("a", "b"), nbytes=1000, failures=failures[:1]),
            Converted(path="f1", written=("c",), nbytes=560, failures=failures[1:])]  # fmt: skip
    asked = []
    monkeypatch.setattr("dumpsim.analysis.convert.find", lambda paths, out: jobs)
    monkeypatch.setattr("dumpsim.analysis.convert.convert_each",
                        lambda found, **options: asked.append(options) or iter(done))  # fmt: skip
    code, out, err = run("x")
    lines = [f"f{n}: input 0: reason {n}" if n % 2 else f"f{n}: reason {n}" for n in range(min(count, 20))]
    assert (code, out) == (1, [f"{count} files, 3 results, 1.5 KiB in converted; {count} failed"])
    assert err == [*lines, *([f"... and {count - 20} more; --json lists all"] if count > 20 else [])]
    code, (line,), err = run("x", "--json", "-j", "3", "--to", "pt", "-f", "device", "--overwrite")
    assert (code, err) == (1, [])
    assert json.loads(line) == {
        "files": count, "written": 3, "bytes": 1560, "out": "converted",
        "failed": [{"path": f"f{n}", "tensor": "input 0" if n % 2 else None, "reason": f"reason {n}"}
                   for n in range(count)],
    }  # fmt: skip
    assert asked == [{"to": "npy", "format": "host", "jobs": None, "overwrite": False},
                     {"to": "pt", "format": "device", "jobs": 3, "overwrite": True}]  # fmt: skip
