"""What happened to watched memory, of files that are made here with google.protobuf."""

import numpy as np
import pytest
from binfile import bin_bytes, item

from dumpsim.analysis.watchdiff import Change, watchdiff
from dumpsim.core.errors import MissingFileError, UnreadableError

START = 1_700_000_000_000_000


@pytest.fixture
def tree(tmp_path):
    """Write reads of outputs of bytes, one file each: (operator name, stamp, outputs, attributes)."""
    place = tmp_path / "0" / "net"
    place.mkdir(parents=True)

    def wrote(*reads, mapped=()):
        lines = []
        for name, stamp, outputs, attrs in reads:
            made = [item(np.frombuffer(raw, np.uint8), address=0x100) for raw in outputs]
            data = bin_bytes(outputs=made, op_name=name, attrs=attrs, time=START + stamp)
            file = f"Add.{name}.1.2.{START + stamp}"
            if name in mapped:
                lines.append(f"{len(lines) + 5},{file}\n")
                file = str(len(lines) + 4)
            (place / file).write_bytes(data)
        if lines:
            (place / "mapping.csv").write_text("".join(lines))
        return tmp_path

    return wrote


def changes(root):
    return [(one.node, one.slot, one.after, one.before, one.verdict) for one in watchdiff(root).changes]


def test_the_first_change_is_told_with_its_bytes(tree):
    root = tree(
        ("C", 10, [b"abcdef", b"xy"], {}),
        ("A_To_C", 11, [b"abcdef", b"xy"], {}),
        ("B_To_C", 12, [b"aXcdYf", b"xy"], {"dumpsim.alive": "1,0", "dumpsim.owners": "p,q;r"}),
        ("D_To_C", 13, [b"??????", b"zy"], {"dumpsim.alive": "1,0", "dumpsim.owners": "p,q;r"}),
    )
    found = watchdiff(root)
    assert (found.watched, found.reads, found.missing, found.trampled) == (2, 3, (), True)
    assert found.changes == (
        Change(directory="0/net", node="C", slot=0, after="B", before="A", first=1, last=4, changed=2, nbytes=6,
               address=0x101, alive=True, owners=("p", "q"), verdict="trampled"),
        Change(directory="0/net", node="C", slot=1, after="D", before="B", first=0, last=0, changed=1, nbytes=2,
               address=0x100, alive=False, owners=("r",), verdict="reused"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("attrs", "verdict", "bad"),
    [
        ({}, "unknown", True), ({"dumpsim.alive": "1"}, "trampled", True), ({"dumpsim.alive": "0"}, "reused", False),
        ({"dumpsim.alive": "1", "dumpsim.written": "1"}, "written in place", False),
        ({"dumpsim.written": "0"}, "unknown", True), ({"dumpsim.written": "1"}, "written in place", False),
    ],
)  # fmt: skip
def test_whether_a_change_was_legal(tree, attrs, verdict, bad):
    root = tree(("C", 10, [b"ab"], {}), ("A_To_C", 11, [b"ac"], attrs))
    assert changes(root) == [("C", 0, "A", "C", verdict)]
    assert watchdiff(root).trampled is bad


def test_what_was_read_before_the_operator_ran_is_no_change(tree):
    root = tree(
        ("C", 10, [b"ab"], {}), ("A_To_C", 9, [b"??"], {}), ("B_To_C", 11, [b"??"], {"dumpsim.ran": "0"}),
        ("D_To_C", 10, [b"ab"], {"dumpsim.ran": "1"}), ("E_To_C", 14, [], {}), ("F_To_C", 15, [b"aX"], {}),
    )  # fmt: skip
    assert changes(root) == [("C", 0, "F", "D", "unknown")]


def test_an_operator_without_its_own_file_cannot_be_judged(tree):
    found = watchdiff(tree(("A_To_C", 11, [b"ac"], {}), ("D", 3, [b"x"], {}), ("A_To_D", 12, [b"x"], {})))
    assert (found.missing, found.changes, found.watched, found.reads) == (("0/net: C",), (), 1, 2)
    assert not found.trampled


def test_names_with_arrows_belong_to_the_operator_that_has_a_file(tree):
    root = tree(
        ("B_To_C", 10, [b"ab"], {}), ("A_To_B_To_C", 11, [b"ac"], {}), ("_To_X", 5, [b"1"], {}),
        ("Y_To_Z_To_W", 12, [b"1"], {}),
    )  # fmt: skip
    found = watchdiff(root)
    assert changes(root) == [("B_To_C", 0, "A", "B_To_C", "unknown")]
    assert (found.missing, found.reads) == (("0/net: Z_To_W",), 2)


def test_over_long_names_are_read_from_the_mapping(tree):
    root = tree(("C", 10, [b"ab"], {}), ("A_To_C", 11, [b"ac"], {}), mapped=("A_To_C",))
    (root / "0" / "net" / "readme.txt").write_text("no dump")
    assert changes(root) == [("C", 0, "A", "C", "unknown")]


def test_what_is_no_watch_is_refused(tmp_path, tree):
    with pytest.raises(MissingFileError, match="does not exist"):
        watchdiff(tmp_path / "none")
    with pytest.raises(UnreadableError, match=r"no file of watch mode \(A_To_B\)"):
        watchdiff(tree(("C", 10, [b"ab"], {})))
