"""The record of one tensor in a dump. Writers create records, readers return them."""

from dataclasses import dataclass

__all__ = ["Record"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One tensor of a dump.

    Attributes
    ----------
    rank, graph_id, iteration : int
        Where in the tree it belongs; None where a tree has no such level.
    op_type, op_name : str
        Operator type and full scope name (``Default/fc1-Dense/MatMul-op0``) or, read back from a tree without IR, the
        escaped name.
    task_id, stream_id, timestamp : int
        Ids as the vendor prints them; `timestamp` in microseconds since 1970.
    io : str
        ``input`` or ``output``.
    slot : int
        Operand or output index.
    dtype : str
        Original number type, lower case.
    stored_dtype : str
        Type of the bytes in the file (bfloat16 is stored as float32).
    shape : tuple of int
    format : str
        ``DefaultFormat`` or the device format.
    nbytes : int
        Bytes of the tensor as the statistics row counts them.

    Examples
    --------
    >>> record = Record(op_type="Add", op_name="Default/Add-op0", io="output", slot=0, dtype="bfloat16", shape=(2, 3),
    ...                 timestamp=1_700_000_000_000_001, stored_dtype="float32", nbytes=12)
    >>> record.op_name.rpartition("/")[2], record.nbytes, record.graph_id
    ('Add-op0', 12, None)
    """

    op_type: str
    op_name: str
    io: str
    slot: int
    dtype: str
    shape: tuple[int, ...]
    timestamp: int
    format: str = "DefaultFormat"
    stored_dtype: str = ""
    task_id: int = 0
    stream_id: int = 0
    rank: int = 0
    graph_id: int | None = None
    iteration: int | None = None
    nbytes: int = 0
