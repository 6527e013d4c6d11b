"""The account of a job: what is told of equal ranks and of those that differ."""

import json

from dumpsim.dump.job import Account, JobAccounts, rank_text


def account(rank, **changes):
    counts = {"asked": 4, "captured": 4, "skipped": (), "tensors": 4, "rows": 0, "files": 6, "bytes": 500}
    return Account(rank=rank, path=f"/d/rank_{rank}", **{**counts, "following": "dumpsim ls /d --summary", **changes})


def accounts(*found):
    result = JobAccounts()
    for one in found:
        result.add(one)
    return result


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
