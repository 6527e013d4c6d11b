"""Profiles: what decisions say of them, and overrides of single fields."""

from dataclasses import fields

import pytest

from dumpsim.core.errors import BadInputError, UnsupportedError
from dumpsim.modes.profile import CHOICES, Profile, find, names


def test_every_profile_has_legal_words():
    assert len(names()) == 11
    for name in names():
        profile = find(*name.split("/"))
        assert profile.name == name
        for field, allowed in CHOICES.items():
            assert getattr(profile, field) in allowed


# rows of the table of decisions: field, values of (ascend, gpu, cpu) in the seed, then in 2.10
TABLE = [
    ("dtype_in_name", ("lower", "none", "none"), ("lower", "lower", "title")),
    ("bfloat16", ("float32",) * 3, ("float32", "float32", "raw")),
    ("complex_numbers", ("save",) * 3, ("skip64", "skip64", "error")),
    ("constants", (False, True, True), (False, True, False)),
    ("set_dump", (True,) * 3, (True, False, False)),
    ("iteration_blanks", (True,) * 3, (False,) * 3),
    ("enable", ("any", "true", "true"), ("any",) * 3),
    ("debug_modes", ("all", "zero", "zero"), ("folded",) * 3),
    ("support_device", ("optional", "optional", "required"), ("required",) * 3),
    ("statistics_in_overflow", (False,) * 3, (True,) * 3),
    ("iteration_rule", ("process",) * 3, ("graph",) * 3),
    ("over_long", ("hash",) * 3, ("random",) * 3),
    ("inplace", ("before",) * 3, ("before", "before", "after")),
    ("csv_trailing", (False,) * 3, (True,) * 3),
    ("csv_op_name", ("escaped",) * 3, ("raw",) * 3),
    ("csv_brackets", ("()",) * 3, ("[]",) * 3),
    ("unwritable", ("error",) * 3, ("log",) * 3),
    ("async_conversion", ("sync",) * 3, ("raw", "sync", "sync")),
]


@pytest.mark.parametrize(("field", "seed", "observed"), TABLE, ids=[row[0] for row in TABLE])
def test_decisions(field, seed, observed):
    for release, expected in (("seed", seed), ("2.10", observed)):
        found = tuple(getattr(find(release, device), field) for device in ("ascend_o0", "gpu", "cpu"))
        assert found == expected


def test_2_7_differs_from_2_10_in_its_statistics_and_a_defect_of_tensordump():
    for device in ("ascend_o0", "gpu", "cpu"):
        old, new = find("2.7", device), find("2.10", device)
        differing = {f.name for f in fields(Profile) if getattr(old, f.name) != getattr(new, f.name)}
        assert differing == {
            "release", "ms_version", "csv_op_name", "csv_brackets", "csv_unique", "categories", "tensordump_step",
        }  # fmt: skip


def test_any_field_can_be_set():
    found = find(
        "seed", "Ascend", {"op_name": "short", "bug_compat": "true", "file_mode": "0o644", "categories": "max, avg"}
    )
    assert (found.op_name, found.bug_compat, found.file_mode) == ("short", True, 0o644)
    assert found.categories == ("max", "avg")
    assert found.names.op_name == "short"


@pytest.mark.parametrize(
    ("field", "text", "expected"),
    [
        ("opname", "short", "op_name"),
        ("op_name", "shrot", "short"),
        ("bug_compat", "yes", "true, false"),
        ("file_mode", "rw", "octal"),
        ("release", "2.7", "--set"),
    ],
)
def test_wrong_overrides_name_the_nearest(field, text, expected):
    with pytest.raises(BadInputError, match=expected):
        find("seed", "cpu", {field: text})


def test_unknown_profiles():
    with pytest.raises(BadInputError, match=r"2\.10"):
        find("2.1", "cpu")
    with pytest.raises(BadInputError, match="ascend_o2"):
        find("seed", "ascend_o3")


def test_dumps_of_whole_graphs_are_gone_since_2_6():
    for release in ("2.7", "2.10"):
        for device in ("ascend_o2", "ascend_ge"):
            with pytest.raises(UnsupportedError, match=r"gone since MindSpore 2\.6"):
                find(release, device)
            assert find(release, device, {"o2": "present"}).tree == "model"
    assert find("seed", "ascend_o2").step_level
    assert not find("seed", "ascend_ge").step_level
