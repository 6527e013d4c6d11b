"""``mindspore.nn.layer.embedding``."""

from typing import Any

from dumpsim.core.dtype import DType
from dumpsim.core.errors import ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.initializer import initializer
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.nn import _check
from dumpsim.frontends.mindspore.nn.cell import Cell

__all__ = ["Embedding", "EmbeddingLookup"]


class Embedding(Cell):
    """Rows of a table.

    Parameters
    ----------
    vocab_size, embedding_size : int
    use_one_hot : bool
        Look rows up by a product with one-hot vectors instead of Gather.
    embedding_table : Tensor, str, Initializer or number
    dtype : number type
    padding_idx : int, optional
        Row initialized with zeros.

    Examples
    --------
    >>> Embedding(10, 4).embedding_table.shape
    (10, 4)
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        use_one_hot: bool = False,
        embedding_table: Any = "normal",
        dtype: DType = mstype.float32,
        padding_idx: int | None = None,
    ) -> None:
        super().__init__()
        self.vocab_size = _check.typed(vocab_size, "vocab_size", [int], self.cls_name)
        self.embedding_size = _check.typed(embedding_size, "embedding_size", [int], self.cls_name)
        self.use_one_hot = _check.typed(use_one_hot, "use_one_hot", [bool], self.cls_name)
        self.dtype = dtype
        table = initializer(embedding_table, [vocab_size, embedding_size])
        self.padding_idx = padding_idx
        if padding_idx is not None:
            if not 0 <= padding_idx < vocab_size:
                raise ScriptValueError(
                    f"For '{self.cls_name}', the 'padding_idx' must be in range of [0, {vocab_size}), "
                    f"but got {padding_idx} with type 'int'."
                )
            array = (table.init_data() if table.has_init else table).asnumpy().copy()
            array[padding_idx] = 0
            table = Tensor(array)
        self.embedding_table = Parameter(table, name="embedding_table")
        self.reshape_flat = ops.Reshape()
        self.shp_flat = (-1,)
        self.gather = ops.Gather()
        self.one_hot = ops.OneHot()
        self.on_value = Tensor(1.0, self.dtype)
        self.off_value = Tensor(0.0, self.dtype)
        self.array_mul = ops.MatMul()
        self.reshape = ops.Reshape()
        self.get_shp = ops.Shape()

    def construct(self, ids: Any) -> Any:
        out_shape = (*self.get_shp(ids), self.embedding_size)
        flat_ids = self.reshape_flat(ids, self.shp_flat)
        if self.use_one_hot:
            one_hot_ids = self.one_hot(flat_ids, self.vocab_size, self.on_value, self.off_value)
            output_for_reshape = self.array_mul(one_hot_ids, self.embedding_table)
        else:
            output_for_reshape = self.gather(self.embedding_table, flat_ids, 0)
        output = self.reshape(output_for_reshape, out_shape)
        return output  # noqa: RET504 - the IR shows the name

    def extend_repr(self) -> str:
        return (
            f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}, use_one_hot={self.use_one_hot}, "
            f"embedding_table={self.embedding_table}, dtype={self.dtype}, padding_idx={self.padding_idx}"
        )


class EmbeddingLookup(Cell):
    """Rows of a table, looked up on the host or on the device.

    Parameters
    ----------
    vocab_size, embedding_size : int
    param_init : Tensor, str, Initializer or number
    target : str
        ``CPU``: the operator EmbeddingLookup on the host, which returns zeros for missing rows; ``DEVICE``: a gather.
    slice_mode : str
        No effect outside parallel modes.
    max_norm : float, optional
        Not supported.
    sparse : bool
        With ``DEVICE``: use SparseGatherV2, which is missing on the CPU, instead of Gather.
    dtype : number type

    Examples
    --------
    >>> EmbeddingLookup(10, 4).embedding_table.shape
    (10, 4)
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        param_init: Any = "normal",
        target: str = "CPU",
        slice_mode: str = "batch_slice",
        manual_shapes: Any = None,
        max_norm: float | None = None,
        sparse: bool = True,
        dtype: DType = mstype.float32,
    ) -> None:
        super().__init__()
        self.sparse = _check.typed(sparse, "sparse", [bool], self.cls_name)
        self.vocab_size = _check.positive_int(vocab_size, "vocab_size", self.cls_name)
        self.target = _check.choice(target, ["CPU", "DEVICE"], "target", self.cls_name)
        if target == "CPU" and not sparse:
            raise ScriptValueError(
                f"For '{self.cls_name}', 'sparse' must be True when 'target' is \"CPU\", but got 'sparse': {sparse} "
                f"and 'target': {target}"
            )
        for name, value in (("manual_shapes", manual_shapes), ("max_norm", max_norm)):
            if value is not None:
                raise UnsupportedError(
                    f"{name}={value!r} is not emulated", where=f"nn.EmbeddingLookup({name})", allowed=("None",)
                )
        self.slice_mode = slice_mode
        self.embedding_size = _check.positive_int(embedding_size, "embedding_size", self.cls_name)
        self.gatherv2 = ops.SparseGatherV2() if sparse else ops.Gather()
        self.embeddinglookup = ops.EmbeddingLookup().set_device("CPU")
        table = initializer(param_init, [vocab_size, embedding_size], dtype)
        self.embedding_table = Parameter(table, name="embedding_table")

    def construct(self, indices: Any) -> Any:
        if self.target == "CPU":
            return self.embeddinglookup(self.embedding_table, indices, 0)
        return self.gatherv2(self.embedding_table, indices, 0)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.layer.embedding", name)
