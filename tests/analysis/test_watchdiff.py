"""What happened to watched memory, of files that are made here with google.protobuf."""

import json

import numpy as np
import pytest
from binfile import bin_bytes, item
from typer.testing import CliRunner

from dumpsim.analysis.watchdiff import Change, watchdiff
from dumpsim.cli.app import app
from dumpsim.core.errors import MissingFileError, UnreadableError

START = 1_700_000_000_000_000


@pytest.fixture
def tree(tmp_path):
    """Write reads of outputs of bytes, one file each: (operator name, stamp, outputs, attributes)."""
    place = tmp_path / "0" / "net"
    place.mkdir(parents=True)

    def wrote(*reads, mapped=(), address=0x100):
        lines = []
        for name, stamp, outputs, attrs in reads:
            made = [item(np.frombuffer(raw, np.uint8), address=address) for raw in outputs]
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


@pytest.mark.parametrize(("address", "found"), [(0, 0), (1, 3), (0x100, 0x102)])
def test_the_address_of_a_change_is_that_of_its_first_byte_if_that_of_the_tensor_is_known(tree, address, found):
    root = tree(("C", 10, [b"abcd"], {}), ("A_To_C", 11, [b"abXX"], {}), address=address)
    assert [one.address for one in watchdiff(root).changes] == [found]


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


def command(root, *words):
    found = CliRunner().invoke(app, ["watchdiff", str(root), *words])
    return found.exit_code, found.stdout.splitlines(), found.stderr.splitlines()


SAID = {
    "trampled": "TRAMPLED: the output was still needed",
    "written in place": "written in place: the operator is meant to write there",
    "reused": "legal reuse: nobody needed the output any longer",
    "unknown": "the dump does not say whether the output was still needed",
}


@pytest.mark.parametrize(
    ("attrs", "verdict", "code", "owners"),
    [
        ({"dumpsim.alive": "1", "dumpsim.owners": "p,q"}, "trampled", 1, "; the memory held p, q"),
        ({"dumpsim.alive": "0", "dumpsim.owners": "p"}, "reused", 0, "; the memory held p"),
        ({"dumpsim.written": "1"}, "written in place", 0, ""), ({}, "unknown", 1, ""),
    ],
)  # fmt: skip
def test_the_command_shows_each_change(tree, attrs, verdict, code, owners):
    root = tree(("C", 10, [b"abcdef"], {}), ("A_To_C", 11, [b"abcdef"], {}), ("B_To_C", 12, [b"aXcdYf"], attrs))
    assert command(root) == (code, [
        "0/net: C output 0: changed after B (unchanged after A)",
        "  bytes 1 to 4 of 6 at 0x101, 2 of them differ",
        f"  {SAID[verdict]}{owners}",
        f"{root}: 1 watched outputs, read 2 times: 1 {verdict}",
    ], [])  # fmt: skip
    exit_code, (line,), err = command(root, "--json")
    assert (exit_code, err) == (code, [])
    alive = {"0": False, "1": True}.get(attrs.get("dumpsim.alive"))
    assert json.loads(line) == {
        "directory": "0/net", "node": "C", "slot": 0, "after": "B", "before": "A", "first": 1, "last": 4, "changed": 2,
        "nbytes": 6, "address": 0x101, "alive": alive, "owners": attrs.get("dumpsim.owners", "").split(",")
        if owners else [], "verdict": verdict,
    }  # fmt: skip


def test_the_command_says_where_nothing_changed_and_what_is_missing(tree):
    root = tree(("C", 10, [b"ab", b"c"], {}), ("A_To_C", 11, [b"ab", b"c"], {}))
    assert command(root) == (0, [f"{root}: 2 watched outputs, read 1 times: no change"], [])
    assert command(root, "--json") == (0, [], [])


def test_the_command_fails_where_an_own_file_is_missing(tree):
    root = tree(("A_To_C", 11, [b"ac"], {}))
    said = ["dumpsim: 0/net: C: the operator's own file is missing, so its outputs cannot be compared"]
    assert command(root) == (1, [f"{root}: 0 watched outputs, read 1 times: no change"], said)
    assert command(root, "--json") == (1, [], said)


def test_changes_are_counted_by_their_kind(tree):
    attrs = {"dumpsim.alive": "1,0,0"}
    root = tree(("C", 10, [b"a", b"b", b"c"], {}), ("A_To_C", 11, [b"x", b"x", b"x"], attrs))
    code, out, _ = command(root)
    assert (code, out[-1]) == (1, f"{root}: 3 watched outputs, read 1 times: 1 trampled, 2 reused")


def test_directories_come_by_name_and_files_may_be_longer_than_their_tensors(tmp_path):
    for name in ("d", "b", "e", "a", "c"):
        place = tmp_path / name / "net"
        place.mkdir(parents=True)
        for node, stamp, raw in (("C", 10, b"ab"), ("A_To_C", 11, b"ac")):
            data = bin_bytes(outputs=[item(np.frombuffer(raw, np.uint8))], op_name=node, time=START + stamp)
            (place / f"Add.{node}.1.2.{START + stamp}").write_bytes(data + b"more")
    found = watchdiff(tmp_path)
    assert [one.directory for one in found.changes] == [f"{name}/net" for name in "abcde"]
    assert (found.watched, found.reads) == (5, 5)
