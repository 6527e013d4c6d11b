"""The tables are those of the real tool, byte for byte: recorded ones, and the stored pair of torch and MindSpore."""

import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dumpsim.analysis.apicompare import api_dump_compare, compare_api_dumps
from dumpsim.analysis.apicompare.options import Options

FIXTURES = Path(__file__).parents[3] / "fixtures" / "apidump"
REFERENCE = FIXTURES / "x01_torch_vs_ms"


def _cases():
    spec = importlib.util.spec_from_file_location("table_cases", FIXTURES / "tables" / "table_cases.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


cases = _cases()
RECORDED = json.loads((FIXTURES / "tables" / "tables.json").read_text())


def texts(directory):
    return {path.name: path.read_bytes().decode() for path in directory.glob("*")}


@pytest.mark.parametrize("name", list(RECORDED))
def test_recorded_tables(name, tmp_path, capsys):
    origin, target, arguments = cases.write_case(name, tmp_path)
    api_dump_compare(origin, target, tmp_path / "out", **arguments)
    assert texts(tmp_path / "out") == RECORDED[name]["files"]


@pytest.mark.parametrize("name", list(RECORDED))
def test_recorded_console(name, tmp_path):
    origin, target, arguments = cases.write_case(name, tmp_path)
    result, _ = compare_api_dumps(origin, target, Options(**arguments))
    colour = name != "dtypes_mindtorch"  # the real tool marks one of three differing infinities; ours marks them all
    tables = [table.console(colour=colour) for step in result.steps for _, table in step.tables()]
    recorded = RECORDED[name]["console"]
    if not colour:
        recorded = re.sub(r"\x1b\[[0-9;]*m", "", recorded)
    shown = [line for line in recorded.splitlines() if line.startswith(("|", "+"))]
    assert "\n".join(tables).splitlines() == shown


@pytest.mark.parametrize(
    ("expected", "origin", "target", "arguments"),
    [
        ("cmp_ms_pt", "ms", "pt", {}),
        ("cmp_pt_ms", "pt", "ms", {}),
        ("cmp_ms_ms", "ms", "ms", {}),
        ("cmp_ms_pt_ign", "ms", "pt", {"ignore_unmatched": True}),
        ("cmp_ms_pt_global", "ms", "pt", {"convinced_match_method": "global"}),
        ("cmp_ms_pt_simple", "ms", "pt", {"convinced_match_method": "simple"}),
        ("cmp_ms_pt", "ms", "pt", {"convinced_match_method": "recursion"}),
    ],
)
def test_stored_pair(expected, origin, target, arguments, tmp_path, capsys):
    result = api_dump_compare(REFERENCE / origin, REFERENCE / target, tmp_path, **arguments)
    assert texts(tmp_path) == texts(REFERENCE / expected)
    assert result.first is None
    assert result.passes


EXACT = """
import sys
from dumpsim.analysis.apicompare import compare_api_dumps
from dumpsim.analysis.apicompare.options import Options
compare_api_dumps(*sys.argv[1:3], Options(compat="1.0.17"))[0].to_csv(sys.argv[3])
"""


def test_stored_pair_by_the_recorders_kernel(tmp_path):
    """The exact numbers are those of numpy's BLAS: with the kernel of the recorder the stored ones, byte for byte."""
    blas = np.show_config("dicts")["Build Dependencies"]["blas"]
    if platform.machine() != "x86_64" or "DYNAMIC_ARCH" not in blas.get("openblas configuration", ""):
        pytest.skip("numpy's BLAS has no kernel to choose")
    command = [sys.executable, "-c", EXACT, REFERENCE / "ms", REFERENCE / "pt", tmp_path / "out"]
    subprocess.run(command, env={**os.environ, "OPENBLAS_CORETYPE": "Nehalem"}, check=True, cwd=FIXTURES.parents[1])
    assert texts(tmp_path / "out") == texts(REFERENCE / "cmp_ms_pt")
