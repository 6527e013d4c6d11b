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


# whether a profile does something, for ascend_o0, ascend_o2, ascend_ge, gpu and cpu: in the seed, in 2.7, in 2.10
SWITCHES = """
iteration_blanks        +++++ ----- -----  decisions
device_filter           ++++- ++++- ++++-  spec mindspore 1.2: a CPU never filters
debug_mode_needs_e2e    ----- +++-- +++--  decisions
statistics_in_overflow  ----- +++++ +++++  decisions
set_dump                +++++ +++-- +++--  decisions
sampling                +---- +---- +----  seed 001: the table of features
trans_flag              +---- +---- +----  spec mindspore 3.4: the others have no private layouts, or convert always
kernel_arguments        +--+- +--+- +--+-  spec mindspore 3.11
overflow_number_error   ----- +++++ +++++  spec mindspore 1.2
step_level              -+--- -+--- -+---  spec mindspore 3.1
acl_json                -+--- -+--- -+---  spec mindspore 3.1
graph_files             +--++ +--++ +--++  seed 001: the table of features
constants               ---++ ---+- ---+-  decisions
metadata                +--++ ---++ ---++  spec mindspore 3.1; the documents' tree of O0 has it
global_order            ---++ ---++ ---++  spec mindspore 3.1
csv_trailing            ----- +++++ +++++  decisions
csv_unique              ----- ----- +++++  spec mindspore 4.1
empty_rows              ---+- ---+- ---+-  spec mindspore 4.1
host_operands           +--++ +--++ +--++  spec mindspore 2.4, spec ge 2.6
segment_inputs          ++++- ++++- ++++-  spec mindspore 2.4
memory_reuse            -++-- -++-- -++--  spec mindspore 12.1
bug_compat              ----- ----- -----  decisions
"""


@pytest.mark.parametrize("row", SWITCHES.strip().splitlines(), ids=lambda row: row.split()[0])
def test_what_each_profile_does(row):
    field, *columns = row.split()[:4]
    for release, column in zip(("seed", "2.7", "2.10"), columns, strict=True):
        devices = ("ascend_o0", "ascend_o2", "ascend_ge", "gpu", "cpu")
        found = [getattr(find(release, device, {"o2": "present"}), field) for device in devices]
        assert found == [mark == "+" for mark in column]


def test_every_switch_is_in_the_table():
    named = {row.split()[0] for row in SWITCHES.strip().splitlines()}
    assert {one.name for one in fields(Profile) if one.type in (bool, "bool")} == named


def test_permissions_are_those_of_the_vendor():
    for name in names():  # [spec mindspore 3.1, 3.6]
        profile = find(*name.split("/"))
        assert (profile.file_mode, profile.binary_mode, profile.directory_mode) == (0o400, 0o600, 0o700)


def test_a_profile_needs_only_its_identity():
    """What is not said is as on Ascend O0 in the releases that were observed."""
    bare = Profile(release="2.7", device="ascend_o0", target="Ascend", ms_version="2.7.0")
    found = find("2.7", "ascend_o0")
    differing = {f.name for f in fields(Profile) if getattr(bare, f.name) != getattr(found, f.name)}
    assert differing == {
        "overflow_scan", "tensordump", "complex_numbers", "async_conversion", "debug_mode_needs_e2e",
    }  # fmt: skip


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
    assert find("seed", "cpu", {"ms_version": "2.4.1"}).ms_version == "2.4.1"
    assert find("seed", "cpu", {"graph_files": "FALSE", "directory_mode": "755"}).directory_mode == 0o755
    assert find("seed", "cpu", {"graph_files": "FALSE"}).graph_files is False


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        (
            "bug_compat", "yes",
            "--set bug_compat: 'yes' is not a value of bug_compat; allowed: true, false [DS-PRO-002]",
        ),
        (
            "file_mode", "0o8",
            "--set file_mode: '0o8' is not a value of file_mode; allowed: an octal number such as 0o400 [DS-PRO-002]",
        ),
        (
            "tree", "modl",
            "--set tree: 'modl' is not a value of tree; allowed: rank, model (did you mean 'model'?) [DS-PRO-002]",
        ),
    ],
)  # fmt: skip
def test_the_whole_message_of_a_wrong_override(field, text, message):
    with pytest.raises(BadInputError) as caught:
        find("seed", "cpu", {field: text})
    assert str(caught.value) == message


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


@pytest.mark.parametrize(("brackets", "trailing"), [("()", True), ("()", False), ("[]", True)])
def test_the_form_of_rows_is_that_of_the_profiles_fields(brackets, trailing):
    found = find("seed", "gpu", {"csv_brackets": brackets, "csv_trailing": str(trailing)}).csv
    assert (found.brackets, found.trailing_field) == (brackets, trailing)
