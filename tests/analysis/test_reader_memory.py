"""Large tables: rows beyond those in memory are the same as those in it, and readers stay within twice the file."""

import json
import subprocess
import sys

import numpy as np
import pytest

import dumpsim
from dumpsim.analysis import statisticrows
from dumpsim.codecs import statcsv
from dumpsim.codecs.stackfile import StackFile
from dumpsim.core.errors import UnreadableError

HEAD = statcsv.header(["max"])


def rows_of(stamps, name='"a, ""{n}""\n"'):
    return "".join(
        f'Add,{name.format(n=n)},0,0,{stamp},output,0,8,float32,"(2,)",{n}\n' for n, stamp in enumerate(stamps)
    )


@pytest.mark.parametrize("block", [1, 200, 1 << 20])
@pytest.mark.parametrize("kept", [0, 3, 100])
@pytest.mark.parametrize("order", ["file", "shuffled", "one stamp"])
def test_rows_that_are_read_again_are_the_same(tmp_path, monkeypatch, block, kept, order):
    monkeypatch.setattr(statisticrows, "_CACHED", kept)
    monkeypatch.setattr(statisticrows, "_BLOCK", block)
    stamps = list(range(100, 120))
    if order == "shuffled":
        stamps = stamps[7:] + stamps[:7]
    elif order == "one stamp":
        stamps = [100] * 20
    (tmp_path / "statistic.csv").write_text(HEAD + rows_of(stamps))
    np.save(tmp_path / "Add.a___5____.0.0.112.output.0.DefaultFormat.float32.npy", np.float32([1, 2]))
    found = [(entry.timestamp, entry.op_name, entry.row.get("max"), entry.path is not None) for entry in
             dumpsim.open(tmp_path)]  # fmt: skip
    values = sorted((stamp, f'a, "{n}"\n', float(n)) for n, stamp in enumerate(stamps))
    joined = [row for row in found if row[3]]
    assert len(joined) == 1
    rest = [row[:3] for row in found if not row[3]]
    assert rest == [value for value in values if order == "one stamp" or value[0] != 112]
    assert joined[0][2] == (None if order == "one stamp" else float(stamps.index(112)))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6, 7])
def test_rows_of_one_time_stamp_are_sorted_by_name_a_part_at_a_time(tmp_path, monkeypatch, count):
    monkeypatch.setattr(statisticrows, "_SORTED", 3)
    names = ["g", "f", "e", "b", "d", "c", "a"][:count]
    rows = "".join(rows_of([stamp], name) for stamp in (7, 5) for name in names)
    (tmp_path / "statistic.csv").write_text(HEAD + rows)
    wanted = [*sorted(names[:3]), *sorted(names[3:6]), *names[6:]]
    found = [(entry.timestamp, entry.op_name) for entry in dumpsim.open(tmp_path)]
    assert found == [(stamp, name) for stamp in (5, 7) for name in wanted]


def test_what_follows_a_damaged_row_is_not_guessed(tmp_path, monkeypatch):
    monkeypatch.setattr(statisticrows, "_CACHED", 2)
    (tmp_path / "statistic.csv").write_text(HEAD + rows_of(range(5)) + "Add,x\n" + rows_of(range(5, 9)))
    told = []
    assert [entry.timestamp for entry in dumpsim.open(tmp_path).lenient(told.append)] == [0, 1, 2, 3, 4]
    assert "2 fields for 11 columns" in str(told[0])
    with pytest.raises(UnreadableError):
        list(dumpsim.open(tmp_path))


@pytest.mark.parametrize("kept", [0, 2, 100])
def test_values_are_read_once(tmp_path, monkeypatch, kept):
    parsed = []
    record = statcsv._record
    monkeypatch.setattr(statisticrows, "_CACHED", kept)
    monkeypatch.setattr(statcsv, "_record", lambda fields: parsed.append(fields[1]) or record(fields))
    (tmp_path / "statistic.csv").write_text(HEAD + rows_of(range(100, 120), "a{n}"))
    np.save(tmp_path / "Add.a5.0.0.105.output.0.DefaultFormat.float32.npy", np.float32([1, 2]))
    assert sum(1 for _ in dumpsim.open(tmp_path)) == 20  # list() would ask for the length first, which reads all
    assert sorted(parsed) == sorted(f"a{n}" for n in range(20))


@pytest.mark.parametrize("order", ["file", "shuffled"])
@pytest.mark.parametrize("kept", [0, 3, 100])
def test_a_damaged_value_ends_the_rows_and_is_reported_with_its_line(tmp_path, monkeypatch, kept, order):
    monkeypatch.setattr(statisticrows, "_CACHED", kept)
    monkeypatch.setattr(statisticrows, "_BLOCK", 150)
    stamps = [*range(104, 110), *range(100, 104)] if order == "shuffled" else list(range(100, 110))
    rows = rows_of(stamps).split("Add,")[1:]
    bad = stamps.index(107)
    rows[bad] = rows[bad].replace('"(2,)"', '"(2,x)"')
    (tmp_path / "statistic.csv").write_text(HEAD + "".join(f"Add,{row}" for row in rows))
    reported = []
    found = [entry.timestamp for entry in dumpsim.open(tmp_path).lenient(reported.append)]
    whole = range(104, 107) if order == "shuffled" and kept > bad else range(100, 107)  # of the file, or in time
    assert found == list(whole)
    (error,) = reported
    assert f"statistic.csv:{2 * bad + 3}:" in str(error)  # each row is two lines, its name has one end
    with pytest.raises(UnreadableError, match=r"statistic\.csv"):
        list(dumpsim.open(tmp_path))


def test_stacks_of_a_file(tmp_path):
    path = tmp_path / "stack.json"
    stacks = {f'k{n} é"\\': [f"File é {n}\n", "x"] * (n % 3) for n in range(300)}
    for indent in (None, 4):
        for ascii_only in (True, False):
            path.write_text(json.dumps(stacks, indent=indent, ensure_ascii=ascii_only), encoding="utf-8")
            found = StackFile(path)
            assert dict(found) == {key: tuple(frames) for key, frames in stacks.items()}
            assert len(found) == 300
            assert "k300" not in found
    path.write_text('{"a": ["1"], "b": [], "a": ["2"]}')
    assert dict(StackFile(path)) == {"a": ("2",), "b": ()}
    path.write_text(" \n")
    assert dict(StackFile(path)) == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "stack.json:1: is not a JSON object"),
        ('{"a": ["1"],\n"b": [2]}', "stack.json:1: the frames of 'b' are not a list of strings"),
        ('{"a": ["1"]} x', "other text follows the last entry"),
        ('{"a": ["\\q"]}', "is not JSON: Invalid"),
        ('{"a" ["1"]}', "expected an entry"),
        ('{"a": ["' + "x" * (1 << 20) + '"]}', "more than 1048576 bytes"),
    ],
)
def test_what_is_no_stack_file(tmp_path, text, why):
    (tmp_path / "stack.json").write_text(text)
    with pytest.raises(UnreadableError) as caught:
        StackFile(tmp_path / "stack.json")
    assert why in str(caught.value)


PEAK = """
import sys
import numpy, dumpsim, dumpsim.cli.app, dumpsim.analysis.dumpset, dumpsim.analysis.histogram, dumpsim.tensor.cast
from dumpsim.codecs import npy
from dumpsim.codecs.apidump import read_stack
def highest():  # ru_maxrss would begin with that of the parent
    return int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])
base = highest()
try:
    {what}
except SystemExit as ended:
    assert not ended.code, ended.code
print((highest() - base) / 1024, file=sys.stderr)
"""


def peak(what):
    """MiB that some code needs beyond what is imported."""
    done = subprocess.run([sys.executable, "-c", PEAK.format(what=what)], capture_output=True, text=True, check=True)
    return float(done.stderr.split()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("command", ["ls", "show"])
@pytest.mark.parametrize("row", ["real", "short"])
def test_statistics_of_many_mib(tmp_path, command, row):
    text = rows_of(range(1000), "Default/network-TrainOneStepCell/backbone-Net/layer{n}-Dense/MatMul-op{n}")
    text = text if row == "real" else ',,0,0,0,,0,0,,"()",\n' * 5000
    mib = 4 if row == "real" else 1
    count = (mib << 20) // len(text)
    (tmp_path / "statistic.csv").write_text(HEAD + text * count)
    assert peak(f"sys.argv = ['dumpsim', {command!r}, {str(tmp_path)!r}]; dumpsim.cli.main()") < 2 * mib + 64


@pytest.mark.slow
@pytest.mark.parametrize(
    ("frames", "mib"), [(["File net.py, line {n}, in construct, \n x = self.fc(x)" * 3] * 4, 28), (["ab"], 4), ([], 4)]
)
def test_a_stack_file_of_many_mib(tmp_path, frames, mib):
    entry = json.dumps({f"k{n}": [frame.format(n=n) for frame in frames] for n in range(1000)})[1:-1]
    path = tmp_path / "stack.json"
    path.write_text("{" + ", ".join([entry] * ((mib << 20) // len(entry))) + "}")
    assert peak(f"read_stack({str(path)!r})['k5']") < 2 * mib + 64


@pytest.mark.slow
def test_a_long_npy_header(tmp_path):
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1," * 450_000 + "), }"
    path = tmp_path / "x.npy"
    path.write_bytes(b"\x93NUMPY\x02\x00" + len(text).to_bytes(4, "little") + text.encode() + bytes(4))
    what = f"\n    try: npy.read({str(path)!r})\n    except ValueError as error: assert 'numpy' in str(error)"
    assert peak(what) < 2 + 64
