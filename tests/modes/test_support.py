"""The table of the documents, typed here from the documents, and the finer one."""

from dumpsim.modes.profile import names
from dumpsim.modes.support import COLUMNS, NOTES, markdown, profile_markdown, profile_matrix, support_matrix

# [seed 001]: the table at the top of the page, cell by cell
SEED = """
Full Dump | Full network data dump | Supported | Supported | Supported
Partial Data Dump | Statistics Dump | Supports both host and device modes1 | Supports only host mode | \
Not Supported On CPU, GPU Supports only host mode
Partial Data Dump | Data Sampling Dump | Supported | Not Supported | Not Supported
Overflow Dump | Dump overflow operators | Supported | Supported | Not Supported
Conditional Dump | Specify Operator Name | Supported | Supported | Supported
Conditional Dump | Specify Iteration | Supported | Supported | Supported
Conditional Dump | Specify Device | Supported | Supported | Supported
Conditional Dump | Specify File Format | Not Applicable | Supported | Not Applicable
Conditional Dump | set_dump | Supported | Supported | Supported
Auxiliary Information Dump | Graph IR Dump | Supported | Not Supported | Supported
Auxiliary Information Dump | Execution Sequence Dump | Supported | Not Supported | Supported
"""


def test_the_table_of_the_documents():
    assert [title for title, _ in COLUMNS] == ["Ascend O0/Ascend O1", "Ascend O2", "CPU/GPU"]
    expected = [line.split(" | ") for line in SEED.strip().splitlines()]
    assert [[row.group, row.feature, *row.cells] for row in support_matrix()] == expected


def test_as_markdown():
    lines = markdown().splitlines()
    assert len({line.count("|") for line in lines[:13]}) == 1
    assert sum("<sup>1</sup>" in line for line in lines) == 2  # the cell and its note
    rows, before = [line.split(" | ") for line in SEED.strip().splitlines()], ""
    for row in rows:  # a group is named once
        row[0], before = ("" if row[0] == before else row[0]), row[0]
    assert lines == [
        "| Feature | | Ascend O0/Ascend O1 | Ascend O2 | CPU/GPU |", "|---|---|---|---|---|",
        *("| " + " | ".join(row).replace("modes1", "modes<sup>1</sup>") + " |" for row in rows),
        "", f"<sup>1</sup> {NOTES[0]}",
    ]  # fmt: skip


def test_a_release_without_whole_graphs_supports_none_of_it():
    by_feature = {row.feature: row.cells for row in support_matrix("2.10")}
    assert {cells[1] for cells in by_feature.values()} == {"Not Supported"}
    assert by_feature["set_dump"] == ("Supported", "Not Supported", "Not Supported")


def test_the_finer_table_covers_every_profile():
    rows = profile_matrix()
    assert {key for key in rows[0] if key != "feature"} == set(names())
    lines = profile_markdown().splitlines()
    assert len(lines) == len(rows) + 2
    assert len({line.count("|") for line in lines}) == 1


# [decisions], [spec mindspore 1-4], [seed 001]
FINER = """
Statistics | host and device | host | error
Sampling | yes | no | no
Overflow operators (op_debug_mode 3) | not finite | flags | no
Failed operator (op_debug_mode 4) | inputs | no | no
Iterations | with blanks | with blanks | yes
Devices | yes | yes | no
Binary files | no | yes | no
Data sink | yes | size 1 | yes
set_dump (dump_mode 2) | yes | yes | no
trans_flag | yes | no | no
save_kernel_args | yes | no | no
Graph IR and execution order | yes | no | yes
Execution history | no | no | yes
.dump_metadata | yes | no | yes
Parameter files | no | no | graph inputs
Constants | no | no | no
Number type in names | float32 | Float32 | Float32
bfloat16 is stored as | float32 | float32 | raw
Complex numbers | npy | npy | error
Iteration numbers | one count | one count | a count per graph
Inputs are read | before the kernel | before the kernel | after the kernel
"""


def test_the_finer_table_of_three_profiles():
    chosen = ("seed/ascend_o0", "seed/ascend_ge", "2.10/cpu")
    rows = [line.split(" | ") for line in FINER.strip().splitlines()]
    assert profile_matrix(chosen) == [dict(zip(("feature", *chosen), row, strict=True)) for row in rows]
    assert profile_markdown(chosen).splitlines() == [
        "| | seed/ascend_o0 | seed/ascend_ge | 2.10/cpu |", "|---|---|---|---|",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]  # fmt: skip
