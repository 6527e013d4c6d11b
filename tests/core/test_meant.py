"""What people type in place of legal words."""

import subprocess
import sys
from dataclasses import fields

import pytest

from dumpsim.cli.app import COMMANDS as ENTRIES
from dumpsim.core.dtype import DTYPES
from dumpsim.core.errors import BadInputError, DumpConfigError, FaultPlanError, nearest
from dumpsim.core.format import FORMATS
from dumpsim.core.meant import MEANT
from dumpsim.core.settings import RunSettings
from dumpsim.core.statistic import CATEGORIES, NAMES
from dumpsim.device.chip import CHIPS, chip
from dumpsim.device.faults import fault_schema, make_plan
from dumpsim.modes.configfile import fields_of
from dumpsim.modes.glossary import _VARIABLES, explain

DEVICES = ("ascend", "gpu", "cpu")
RELEASES = ("seed", "2.7", "2.10")
FIELDS = (*fields_of("common_dump_settings"), *fields_of("e2e_dump_settings"))
COMMANDS = tuple(entry.name for entry in ENTRIES)


@pytest.mark.parametrize(
    ("typed", "allowed", "expected"),
    [
        *[(typed, DEVICES, "ascend") for typed in ("npu", "NPU", "npu:0", "davinci", "Ascend910B", "910B", "910c")],
        *[(typed, DEVICES, "gpu") for typed in ("cuda", "CUDA:1", "nvidia", "A100")],
        *[(typed, DEVICES, "cpu") for typed in ("x86", "x86_64", "host")],
        *[(typed, DEVICES, None) for typed in ("tpu", "mps")],
        *[(typed, CHIPS, "910_93") for typed in ("910C", "A3", "Atlas A3", "Ascend910C", "ascend910_9391", "910-93")],
        *[(typed, CHIPS, "910B") for typed in ("A2", "910B4", "Ascend910B2C", "ascend_910b1", "npu", "Atlas A2")],
        *[(typed, CHIPS, "910A") for typed in ("910", "Ascend910", "910ProB", "A1")],
        *[(typed, CHIPS, "310P") for typed in ("310", "310P3", "Ascend310P3")],
        *[(typed, CHIPS, "GPU") for typed in ("cuda", "H100")],
        *[(typed, RELEASES, "seed") for typed in ("2.4", "2.5.0", "mindspore==2.4.10")],
        *[(typed, RELEASES, "2.10") for typed in ("latest", "2.9", "2.10.0", "MindSpore 2.10.0")],
        ("2.7.1", RELEASES, "2.7"),
        ("stats", ("tensor", "statistic", "full"), "statistic"),
        ("both", ("tensor", "statistic", "full"), "full"),
        ("npy", ("tensor", "statistic", "full"), "tensor"),
        ("mean", NAMES, "avg"),
        ("norm", CATEGORIES, "l2norm"),
        ("nan", CATEGORIES, "nan count"),
        ("inf", CATEGORIES, "positive inf count"),
        ("fp32", ("float32", "float16", "bfloat16"), "float32"),
        ("bf16", ("float32", "float16", "bfloat16"), "bfloat16"),
        ("5HD", FORMATS, "NC1HWC0"),
        ("NZ", FORMATS, "FRACTAL_NZ"),
        ("step", FIELDS, "iteration"),
        ("operators", FIELDS, "kernels"),
        ("rank", FIELDS, "support_device"),
        ("output-dir", FIELDS, "path"),
        ("diff", COMMANDS, "compare"),
        ("list", COMMANDS, "ls"),
        ("validate", COMMANDS, "check"),
        ("bisect", COMMANDS, "first"),
        ("OOM", ("overflow", "out_of_memory"), "out_of_memory"),
        ("soc_version", ("device", "chip"), "chip"),
        ("ascned", DEVICES, "ascend"),
        ("something", DEVICES, None),
    ],
)
def test_a_word_is_what_people_mean_by_it(typed, allowed, expected):
    assert nearest(typed, allowed) == expected


def test_every_suggestion_is_a_legal_word_somewhere():
    schema = fault_schema()["$defs"].values()
    faults = {value for kind in schema for value in (kind["properties"]["kind"]["const"], *kind["properties"])}
    values = ("virtual", "wall", "null", "numpy", "O0", "O1", "O2", "tensor", "statistic", "full", "host", "npy", "bin")
    settings = {"environment", "config", *(field.name for field in fields(RunSettings))}
    legal = {*DEVICES, *CHIPS, *RELEASES, *values, "high", "low", *NAMES, *CATEGORIES, "md5", *FIELDS}
    legal |= {*DTYPES, *FORMATS, *faults, *settings, *COMMANDS, *_VARIABLES}
    assert {target for targets in MEANT.values() for target in targets} - legal == set()


def test_errors_everywhere_use_the_table():
    for failing, kind, text in (
        (lambda: RunSettings(device="npu"), BadInputError, "did you mean 'ascend'"),
        (lambda: chip("910C"), BadInputError, "did you mean '910_93'"),
        (lambda: make_plan([{"kind": "oom", "op": "Add"}]), FaultPlanError, "did you mean 'out_of_memory'"),
        (lambda: make_plan([{"kind": "overflow", "op": "Add", "count": 1}]), FaultPlanError, "did you mean 'nth'"),
        (lambda: explain("step"), BadInputError, "did you mean 'iteration'"),
    ):
        with pytest.raises(kind, match=text):
            failing()


def test_a_config_uses_the_table(tmp_path):
    from dumpsim.testing.dump_dir import DumpDir

    dump = DumpDir(tmp_path / "dump", lambda name, value: None)
    for given, text in (
        ({"steps": "0"}, "did you mean 'iteration'"),
        ({"saved_data": "stats"}, "did you mean 'statistic'"),
        ({"statistic_category": ["mean"], "saved_data": "statistic"}, "did you mean 'avg'"),
    ):
        with pytest.raises(DumpConfigError, match=text):
            dump.configure(**given)


@pytest.mark.parametrize("word", ["NaN", "nans", "loss is NaN"])
def test_nan_is_explained(word):
    (topic,) = explain(word)
    assert topic.name == "nan"
    assert ("find its origin", "dumpsim first DUMP") in topic.facts


@pytest.mark.parametrize("word", ["inf", "Infinity", "overflow"])
def test_overflow_is_explained(word):
    (topic,) = explain(word)
    assert topic.name == "overflow"
    assert any("--overflow" in fact for _, fact in topic.facts)


@pytest.mark.parametrize(("typed", "expected"), [("diff", "compare"), ("lss", "ls"), ("frobnicate", None)])
def test_an_unknown_command_names_the_one_that_is_meant(typed, expected):
    done = subprocess.run([sys.executable, "-m", "dumpsim", typed, "DUMP"], capture_output=True, text=True)
    assert done.returncode == 2
    assert f"dumpsim: No such command {typed!r}; allowed: run, msrun, check" in done.stderr
    assert ("did you mean" in done.stderr) == (expected is not None)
    assert expected is None or f"(did you mean {expected!r}?)" in done.stderr
