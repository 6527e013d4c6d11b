"""Which operators an overflow belongs to: by the ids of the unit, down to context and thread, or else of the file."""

import pytest

from dumpsim.analysis.overflow import overflows
from dumpsim.analysis.place import place_of
from dumpsim.codecs.opdebug import Block, NewOpDebug, OpDebug, decode, encode, to_json

STAMP = 1700000000000000
# names of operators that were dumped: task, stream, and of a sub-task context, thread and device
OPERATORS = {
    "A": "3.2.{}.4.0.1.0", "B": "3.2.{}.4.0.2.0", "C": "3.2.{}.4.7.2.0", "D": "3.5.{}", "E": "4.2.{}",
    "F": "3.2.{}.4.65535.8.0", "G": "9.8.{}", "H": "6.6.{}.4.1.1.0", "I": "6.6.{}",
}  # fmt: skip


def write(folder, facts, name="Opdebug.Node_OpDebug.9.8", stamp=STAMP + 1):
    (folder / f"{name}.{stamp}.output.0.json").write_text(to_json(decode(encode(facts)), "mindspore"))


@pytest.mark.parametrize(
    ("unit", "found"),
    [
        # task, stream, context, thread
        ((3, 2, 0, 1), "A"), ((3, 2, 0, 2), "B"), ((3, 2, 7, 2), "C"), ((3, 2, 65535, 2), "BC"),
        ((3, 2, 0, 65535), "ABF"), ((3, 2, 65535, 65535), "ABCF"), ((3, 2, 9, 8), "F"), ((3, 2, 65535, 8), "F"),
        ((3, 5, 0, 1), "D"), ((4, 2, 65535, 65535), "E"), ((6, 6, 1, 1), "HI"), ((6, 6, 1, 2), "I"),
        # no file has these ids: that of the file's own name
        ((3, 2, 7, 1), "G"), ((3, 3, 0, 1), "G"), ((5, 2, 0, 1), "G"), ((2, 3, 0, 1), "G"),
    ],
)  # fmt: skip
def test_an_overflow_is_of_the_operators_with_the_ids_of_the_unit(tmp_path, unit, found):
    for letter, ids in OPERATORS.items():
        (tmp_path / f"{letter}.{letter.lower()}.{ids.format(STAMP)}").touch()
    (tmp_path / f"G.g.9.8.{STAMP}.output.0.ND.npy").touch()  # another tensor of it
    (tmp_path / "odd.npy").touch()
    task, stream, context, thread = unit
    data = {"task_id": task, "stream_id": stream, "context_id": context, "thread_id": thread, "status": 0x20}
    write(tmp_path, NewOpDebug(acc_type="AIV", data=data))
    (one,) = overflows(place_of(tmp_path))
    assert sorted(one.operators) == [(letter, letter.lower()) for letter in found]


def test_the_first_unit_that_is_known_counts(tmp_path):
    for name in ("A.a.3.2", "B.b.4.2"):
        (tmp_path / f"{name}.{STAMP}").touch()
    place = place_of(tmp_path)
    for dha, l2, core, found in (
        (3, 4, 5, ["A"]), (5, 4, 3, ["B"]), (5, 6, 3, ["A"]), (5, 6, 7, []), (0, 4, 3, ["B"]), (0, 0, 3, ["A"]),
    ):  # fmt: skip
        blocks = [Block(task_id=task, stream_id=2, status=1 if task else 0) for task in (dha, l2, core)]
        write(tmp_path, OpDebug(dha=blocks[0], l2=blocks[1], ai_core=blocks[2]))
        (one,) = overflows(place)
        assert [op_type for op_type, _ in one.operators] == found
        rows = list(one.rows())
        assert [row["task_id"] for row in rows] == [task for task in (dha, l2, core) if task]
        assert [row["operators"] for row in rows] == [[f"{letter} {letter.lower()}" for letter in found]] * len(rows)


def test_overflows_come_by_time(tmp_path):
    for stamp, task in ((9, 3), (10, 2), (2, 1)):
        facts = OpDebug(ai_core=Block(task_id=task, status=1))
        write(tmp_path, facts, name=f"Opdebug.Node_OpDebug.{task}.8", stamp=stamp)
    assert [one.name.timestamp for one in overflows(place_of(tmp_path))] == [2, 9, 10]
    assert [one.facts["AI Core"]["task_id"] for one in overflows(place_of(tmp_path))] == [1, 3, 2]
