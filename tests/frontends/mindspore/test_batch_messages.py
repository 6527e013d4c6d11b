"""Batches of messages: errors of the primitive before anything is sent."""

import pytest

from dumpsim.core.errors import ScriptValueError
from dumpsim.frontends.mindspore import dtype as mstype
from dumpsim.frontends.mindspore.ops.operations.comm_ops import BatchISendIRecv


def batch(op_types=("isend", "irecv"), ranks=(0, 0), shapes=((2, 3),), kinds=(mstype.float32,)):
    return BatchISendIRecv(op_types, list(ranks), list(shapes), list(kinds))


def test_valid_messages_are_accepted():
    batch()
    batch(("isend",), (0,), (), ())
    batch(("irecv", "irecv"), (0, 0), ((2,), (3,)), (mstype.float32, mstype.int32))


@pytest.mark.parametrize(("changes", "words"), [
    ({"op_types": ("isend", "recv")}, "unknown op_types"), ({"ranks": (0,)}, "op_types and remote_ranks"),
    ({"shapes": ((2,), (3,))}, "receive_shapes"), ({"shapes": (), "kinds": ()}, "0 receive_shapes for 1 irecv"),
    ({"op_types": ("isend", "isend")}, "1 receive_shapes for 0 irecv"),
])  # fmt: skip
def test_invalid_messages_are_refused(changes, words):
    with pytest.raises(ScriptValueError, match=words):
        batch(**changes)
