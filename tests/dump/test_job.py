"""The account of a job: what is told of equal ranks and of those that differ."""

import json
import os
from dataclasses import asdict, replace

import pytest

from dumpsim.core.errors import UnreadableError
from dumpsim.dump.announce import announce
from dumpsim.dump.job import Account, JobAccounts, rank_text, write_json
from dumpsim.dump.summary import Summary


def account(rank, **changes):
    counts = {"asked": 4, "captured": 4, "skipped": (), "tensors": 4, "rows": 0, "files": 6, "bytes": 500}
    return Account(rank=rank, path=f"/d/rank_{rank}", **{**counts, "following": "dumpsim ls /d --summary", **changes})


def accounts(*found):
    result = JobAccounts()
    for one in found:
        result.add(one)
    return result


def test_an_account_that_is_not_told_otherwise_is_of_a_good_dump():
    one = account(0)
    assert (one.failed, one.notes) == (False, ())
    assert Account(**{**asdict(one), "following": ""}) == replace(one, following="")


def test_accounts_of_up_to_16_mib_are_read(tmp_path):
    text = json.dumps(asdict(account(3))).ljust(16 << 20).encode()
    (tmp_path / "a.json").write_bytes(text)
    found = JobAccounts()
    found.read(str(tmp_path))
    assert found.document(4, {})["ranks"][3]["dumps"][0]["files"] == 6
    (tmp_path / "a.json").write_bytes(text + b" ")
    with pytest.raises(UnreadableError):
        found.read(str(tmp_path))


def test_ranks_that_differ_have_lines_of_their_own():
    lost = account(
        2, captured=1, skipped=(("disk full", 3),), tensors=1, failed=True, notes=("No space left",),
        following="dumpsim first /d",
    )  # fmt: skip
    found = accounts(lost, account(0, notes=("a",)), account(1, notes=("a",)))
    endings = {0: "exit code 0", 1: "exit code 0", 2: "exit code 1", 3: "killed by SIGKILL"}
    assert found.text(4, endings).splitlines() == [
        "dumpsim: /d",
        "  ranks 0-1: asked 4, captured 4, written 4 tensors; 6 files",
        "  rank 2: asked 4, captured 1, skipped 3 (3 disk full), written 1 tensors; 6 files",
        "  rank 3: no dump",
        "dumpsim: 4 ranks: asked 12, captured 9, skipped 3 (3 disk full), written 9 tensors; 18 files, 1.5 kB",
        "dumpsim: ranks 0-1: a",
        "dumpsim: rank 2: No space left",
        "dumpsim: next: dumpsim first /d",
        "dumpsim: ranks 0-1: exit code 0, rank 2: exit code 1, rank 3: killed by SIGKILL",
    ]


def test_a_rank_with_two_dumps_counts_both():
    found = accounts(account(0), account(0, asked=1, captured=1, tensors=1))
    assert found.text(1).splitlines()[1] == (
        "  rank 0: asked 4, captured 4, written 4 tensors; 6 files; "
        "then asked 1, captured 1, written 1 tensors; 6 files"
    )
    assert "dumpsim: 1 rank: asked 5" in found.text(1)


def test_accounts_of_processes_are_read_as_they_were_left(tmp_path):
    left = [account(0), account(0, rows=3), account(5, skipped=(("late", 1),), notes=("n",), failed=True)]
    for one in left:
        JobAccounts.leave(one, str(tmp_path))
    (tmp_path / "rank_9.json.part").write_text("{")
    read = JobAccounts()
    read.read(str(tmp_path))
    assert read.text(6) == accounts(*left).text(6)
    document = read.document(6, {0: "exit code 0"})
    assert json.loads(json.dumps(document)) == document
    assert [len(rank["dumps"]) for rank in document["ranks"]] == [2, 0, 0, 0, 0, 1]


def test_nothing_is_told_where_nobody_dumped():
    assert JobAccounts().text(3) == ""
    assert JobAccounts().text(3, {0: "a", 1: "b", 2: "a"}) == "dumpsim: ranks 0, 2: a, rank 1: b"
    assert rank_text([4, 2, 3, 9]) == "ranks 2-4, 9"
    assert [rank_text(ranks) for ranks in ([], [7], [1, 1, 2], [3, 1])] == [
        "ranks ",
        "rank 7",
        "ranks 1-2",
        "ranks 1, 3",
    ]


@pytest.mark.parametrize(
    ("commands", "first"),
    [
        (["dumpsim check a", "dumpsim ls /d --summary"], 1), (["dumpsim ls /d", "dumpsim stat /d"], 1),
        (["dumpsim stat /d", "dumpsim first /d"], 1), (["dumpsim check a", "dumpsim other"], 0),
        (["dumpsim other", "dumpsim check a"], 1), (["dumpsim ls /b", "dumpsim ls /a"], 0),
        (["", "dumpsim check a"], 1),
    ],
)  # fmt: skip
def test_a_command_about_a_finding_goes_first(commands, first):
    found = accounts(*(account(rank, following=command) for rank, command in enumerate(commands)))
    assert found.text(2).splitlines()[-1] == f"dumpsim: next: {commands[first]}"


def test_skipped_tensors_of_all_ranks_are_added_by_reason():
    found = accounts(account(0, skipped=(("a", 1), ("b", 2)), rows=3), account(1, skipped=(("a", 4),), rows=2, files=1))
    assert found.text(2).splitlines()[1:4] == [
        "  rank 0: asked 4, captured 4, skipped 3 (2 b; 1 a), written 4 tensors, 3 statistics rows; 6 files",
        "  rank 1: asked 4, captured 4, skipped 4 (4 a), written 4 tensors, 2 statistics rows; 1 file",
        "dumpsim: 2 ranks: asked 8, captured 8, skipped 7 (5 a; 2 b), written 8 tensors, 5 statistics rows; 7 files, "
        "1.0 kB",
    ]


def test_an_account_that_cannot_be_written_leaves_nothing(tmp_path):
    before = set(os.listdir("/proc/self/fd"))
    (tmp_path / "a.json").mkdir()
    with pytest.raises(IsADirectoryError):
        write_json(str(tmp_path / "a.json"), {"a": 1})
    assert os.listdir(tmp_path) == ["a.json"]
    write_json(str(tmp_path / "b.json"), {"\u00e9": [1]})
    assert (tmp_path / "b.json").read_text() == '{\n "\u00e9": [\n  1\n ]\n}'
    assert (tmp_path / "b.json").stat().st_mode & 0o777 == 0o644
    assert set(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("exists", [False, True])
def test_a_rank_leaves_its_account_where_the_launcher_looks(tmp_path, capsys, quiet, exists):
    """Without such a directory, the dump itself prints its report."""
    summary = Summary(path="/d/rank_0", rank=0, asked=3, captured=3, skipped=(), tensors=3, rows=0, files=4, bytes=1500,
                      iterations=(0,))  # fmt: skip
    announce(summary, quiet=quiet, job=str(tmp_path if exists else tmp_path / "missing"))
    assert len(list(tmp_path.iterdir())) == exists
    assert capsys.readouterr().err == ("" if exists or quiet else f"{summary}\n")
