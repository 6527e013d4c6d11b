"""The table of statistics against every list of statistics that there is."""

import json
import math
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from dumpsim.analysis import apitree
from dumpsim.codecs import opcsv, statcsv
from dumpsim.core.record import Record
from dumpsim.core.statistic import (
    CATEGORIES,
    DIGESTS,
    MEASURED,
    NAMES,
    NOT_FINITE,
    REAL,
    STATISTICS,
    TITLES,
    printed,
)
from dumpsim.modes.profile import find, names
from dumpsim.tensor.device_stats import DeviceStatistics, device_statistics
from dumpsim.tensor.stats import Statistics, statistics

ROOT = Path(__file__).parents[2]
WITH_DIGESTS = (*STATISTICS, *DIGESTS)


def test_every_row_is_measured():
    found = statistics(np.array([1.5, -2.0, 0.0, np.inf]))
    for row in STATISTICS:
        assert isinstance(getattr(found, row.name), int if row.count else float), row.name
    kept = {field.name for field in fields(Statistics)}
    assert kept == {"sum", "sumsq"} | {row.name for row in STATISTICS if row.merge is not None}


@pytest.mark.parametrize("row", [row for row in STATISTICS if row.merge is not None], ids=lambda row: row.name)
def test_merge_rules_are_those_of_the_whole(row):
    values = np.array([3.0, -1.0, 0.0, np.inf, 2.0, np.nan, -np.inf, 7.0])
    for cut in range(values.size + 1):
        parts = [getattr(statistics(part), row.name) for part in (values[:cut], values[cut:])]
        whole = getattr(statistics(values), row.name)
        assert row.merge.combine(*parts) == whole or whole != whole
        assert row.merge.combine(row.merge.start, parts[1]) == parts[1] or parts[1] != parts[1]
    assert getattr(statistics([]), row.name) == row.merge.start


NAN = math.nan
NUMBERS = {"bfloat16", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"}
HALVES = {"bfloat16", "float16", "float32"}
# title, category, place in the list of categories, GE's title, types of the device's kernel [spec mindspore 4.1, 4.4]
# [spec ge 3.7]
ROWS = {
    "max": ("Max Value", "max", 0, "Max Value", NUMBERS),
    "min": ("Min Value", "min", 1, "Min Value", NUMBERS),
    "avg": ("Avg Value", "avg", 2, "Avg Value", NUMBERS),
    "l2norm": ("L2Norm Value", "l2norm", 11, "l2norm", HALVES),
    "count": ("Count", "count", 3, "Count", None),
    "negative": ("Negative Zero Count", "negative zero count", 4, None, None),
    "positive": ("Positive Zero Count", "positive zero count", 5, None, None),
    "zero": ("Zero Count", "zero count", 9, None, None),
    "nan": ("NaN Count", "nan count", 6, "Nan Count", None),
    "positive_inf": ("Positive Inf Count", "positive inf count", 8, "Positive Inf Count", None),
    "negative_inf": ("Negative Inf Count", "negative inf count", 7, "Negative Inf Count", None),
}


def test_rows_are_those_of_the_documents():
    assert [printed(1.5)] == ["1.5"]
    assert list(ROWS) == list(NAMES)
    for row in STATISTICS:
        title, category, listed, ge, kinds = ROWS[row.name]
        assert (row.title, row.category, row.listed) == (title, category, listed)
        assert (row.ge and row.ge.title) == ge
        assert row.count == (row.name not in ("max", "min", "avg", "l2norm"))
        assert row.not_finite == (row.name in ("nan", "positive_inf", "negative_inf"))
        extremum = row.name in ("max", "min")
        assert row.device == (
            {} if kinds is None else {"high": kinds | ({"bool"} if extremum else set()), "low": kinds}
        )
        if row.ge is not None:
            assert (row.ge.processor, row.ge.optional) == (row.name != "l2norm", row.name != "count")
    assert [(row.name, row.category, row.title, row.listed) for row in DIGESTS] == [
        ("md5", "md5", "MD5", 10), ("sha1", "hash", "SHA1", 12), ("sha1", "hash:sha1", "SHA1", 13),
        ("md5", "hash:md5", "MD5", 14),
    ]  # fmt: skip
    assert REAL == ("max", "min", "avg", "l2norm")
    assert NOT_FINITE == ("nan", "positive_inf", "negative_inf")
    assert MEASURED == REAL + NOT_FINITE


@pytest.mark.parametrize(
    ("one", "other", "larger", "smaller"),
    [
        (1.0, 2.0, 2.0, 1.0), (2.0, 1.0, 2.0, 1.0), (0.0, -0.0, 0.0, 0.0), (-0.0, 0.0, -0.0, -0.0),
        (NAN, 1.0, NAN, NAN), (1.0, NAN, NAN, NAN), (NAN, NAN, NAN, NAN), (-math.inf, math.inf, math.inf, -math.inf),
        (math.inf, NAN, NAN, NAN),
    ],
)  # fmt: skip
def test_extrema_of_two_parts(one, other, larger, smaller):
    """Of equal ones the first counts, with its sign; one NaN is enough."""
    rules = {row.name: row.merge for row in STATISTICS}
    assert repr(rules["max"].combine(one, other)) == repr(larger)
    assert repr(rules["min"].combine(one, other)) == repr(smaller)


def test_names_titles_and_categories_are_unique():
    for column in (NAMES, [row.title for row in STATISTICS], CATEGORIES, [row.listed for row in WITH_DIGESTS]):
        assert len(set(column)) == len(column)
    assert set(REAL) | {row.name for row in STATISTICS if row.count} == set(NAMES)
    assert set(NOT_FINITE) < set(NAMES)
    assert len(set(MEASURED)) == len(MEASURED)
    assert set(TITLES) == set(NAMES) | {"md5", "sha1"}


@pytest.mark.parametrize("profile", names())
def test_every_profile_takes_every_category(profile):
    categories = find(*profile.split("/")).categories
    new = {row.category for row in DIGESTS[1:]}
    assert set(categories) == set(CATEGORIES) - (set() if profile.startswith("2.10") else new)


@pytest.mark.parametrize("precision", ["high", "low"])
def test_the_device_computes_what_the_table_says(precision):
    assert [field.name for field in fields(DeviceStatistics)] == [row.name for row in STATISTICS if row.device]
    for row in STATISTICS:
        assert not row.device or set(row.device) == {"high", "low"}
        for kind in row.device.get(precision, ()):
            dtype = ml_dtypes.bfloat16 if kind == "bfloat16" else kind
            assert getattr(device_statistics(np.ones(2, dtype), precision), row.name) is not None


@pytest.mark.parametrize("row", STATISTICS, ids=lambda row: row.name)
def test_codecs_write_and_read_every_row(row):
    value = 3 if row.count else 1.5
    record = Record(op_type="Add", op_name="Add", io="output", slot=0, dtype="float32", shape=(2,), timestamp=1)
    text = statcsv.header([row.name]) + statcsv.row(record, "Add", [statcsv.number(value)], statcsv.Dialect())
    assert text.splitlines()[0].rpartition(",")[2] == row.title
    ((_, read),) = statcsv.parse(text)
    assert read == {row.name: value}
    assert type(read[row.name]) is type(value)
    if row.ge is not None:
        line = opcsv.Row(io="output", slot=0, nbytes=8, dtype="float32", format="ND", shape=(2,),
                         values=((row.name, value),))  # fmt: skip
        chosen = [row.name] if row.ge.optional else []
        text = opcsv.header(chosen) + opcsv.line(line, dtype=1, format=2, chosen=chosen)
        (found,) = opcsv.parse(text)
        assert dict(found.values)[row.name] == value
        assert row.ge.processor == (row.name in opcsv.ALL)


def test_statistics_of_api_dumps_are_known():
    assert set(apitree._STATISTICS.values()) <= set(NAMES)


INJECT = """
import ast, sys, types
from pathlib import Path
import dumpsim.core

# the table with one row more, before anybody reads it
path = Path(dumpsim.core.__file__).with_name("statistic.py")
tree = ast.parse(path.read_text())
(table,) = (node for node in tree.body if isinstance(node, ast.AnnAssign) and node.target.id == "STATISTICS")
row = 'Statistic(name="spread", category="spread", title="Spread Value", listed=50, ge=GeColumn("Spread"))'
table.value.elts.append(ast.parse(row, mode="eval").body)
module = types.ModuleType("dumpsim.core.statistic")
sys.modules[module.__name__] = dumpsim.core.statistic = module
exec(compile(ast.fix_missing_locations(tree), str(path), "exec"), module.__dict__)

from dumpsim.tensor.stats import Statistics

Statistics.spread = property(lambda found: found.max - found.min)
"""
READ = """
import json
from dumpsim.analysis.dumpset import open as open_dump
from dumpsim.codecs import opcsv
from dumpsim.tensor.stats import statistics

assert "spread=5.0" in repr(statistics([1.0, 6.0]))
assert statistics([1.0]).merge(statistics([6.0])).spread == 5.0
assert opcsv.header(["spread"]).endswith(",Count,Spread\\n")
entries = list(open_dump(root))
dumped = {entry.name.op_name: entry.row.get("spread") for entry in entries}
given = {entry.name.op_name: entry.statistic("spread") for entry in entries}
rows = [row["spread"] for row in open_dump(root).rows(["spread"])]
json.dump({"dumped": dumped, "given": given, "rows": rows}, sys.stdout)
"""
FRAME = """
from dumpsim.analysis.dumpset import open as open_dump

for frame in (open_dump(root).to_pandas(), open_dump(root).to_polars()):
    print(str(frame["spread"].dtype).lower(), list(frame["spread"])[0])
"""
WRITE = """
import numpy as np
from tests.dump.machine import Machine, ref, task

machine = Machine(Path(root), "seed/gpu", saved_data="full", statistic_category=["max", "spread"], input_output=2)
machine.run(task(outputs=[ref(np.array([1.0, 6.0], np.float32))]))
machine.service.finish()
print(machine.find("statistic.csv").read_text(), end="")
"""


def with_another_statistic(root, code):
    """The output of a process in whose table there is one more row, `spread`."""
    ran = subprocess.run(
        [sys.executable, "-c", f"{INJECT}\nroot = {str(root)!r}\n{code}"],
        capture_output=True, text=True, timeout=60, check=False, cwd=ROOT,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def command(root, *arguments):
    line = ["dumpsim", *arguments]
    return with_another_statistic(root, f"from dumpsim.cli import main\nsys.argv = {line!r}\nmain()")


@pytest.fixture
def dump(tmp_path):
    """A tensor whose row has the new statistic, and one without a row."""
    root = tmp_path / "dump"
    text = with_another_statistic(root, WRITE)
    assert text.splitlines()[0].endswith("Shape,Max Value,Spread Value")
    assert text.splitlines()[1].endswith(',"(2)",6,5')
    place = next(root.rglob("statistic.csv")).parent
    np.save(place / "Sub.Default_Sub-op1.0.0.1800000000000000.output.0.DefaultFormat.npy", np.array([2.0, 4.0]))
    return root


def test_a_new_row_reaches_every_reader(dump):
    found = json.loads(with_another_statistic(dump, READ))
    assert found == {
        "dumped": {"Default_Add-op0": 5.0, "Default_Sub-op1": None},
        "given": {"Default_Add-op0": 5.0, "Default_Sub-op1": 2.0},
        "rows": [5.0, 2.0],
    }


def test_a_new_row_reaches_every_command(dump):
    for options in ([], ["--columns", "max,spread"], ["--columns", "all"]):
        head, first, second = (
            line.split("\t") for line in command(dump, "stat", str(dump), *options).splitlines()
        )  # fmt: skip
        assert [first[head.index("spread")], second[head.index("spread")]] == ["5", "2"]
    shown = [json.loads(line)["spread"] for line in command(dump, "show", str(dump), "--json").splitlines()]
    assert shown == [5.0, 2.0]
    assert "spread 5" in command(dump, "show", str(dump))
    head, first, _ = (line.split("\t") for line in command(dump, "ls", str(dump)).splitlines())
    assert first[head.index("spread")] == "5"


@pytest.mark.report
def test_a_new_row_is_a_column_of_tables(dump):
    assert with_another_statistic(dump, FRAME) == "float64 5.0\nfloat64 5.0\n"
