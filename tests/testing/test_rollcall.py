"""Who is there, as the processes of one pytest run see it."""

import fcntl
import os

from dumpsim.testing.rollcall import RollCall


def test_two_ranks_see_at_once_that_a_third_has_ended(tmp_path):
    (tmp_path / "rank_1.lock").write_text("77")  # nobody holds it
    ready, done = os.pipe(), os.pipe()
    child = os.fork()
    if not child:  # a rank that is just looking
        descriptor = os.open(tmp_path / "rank_1.lock", os.O_RDWR)
        fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        os.write(ready[1], b".")
        os.read(done[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    roll = RollCall(tmp_path, rank=0, size=2)
    try:
        assert roll.lost() == {1: "worker gw1, process 77"}
    finally:
        os.write(done[1], b".")
        os.waitpid(child, 0)
        roll.close()
        for descriptor in (*ready, *done):
            os.close(descriptor)
