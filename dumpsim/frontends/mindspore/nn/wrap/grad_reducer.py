"""``mindspore.nn.wrap.grad_reducer``: gradients reduced over all ranks. [spec parallel 2.7]"""

from collections.abc import Sequence
from typing import Any

from dumpsim.core.errors import ScriptValueError
from dumpsim.frontends.mindspore import log as logger
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.api import jit
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.communication.management import HCCL_WORLD_COMM_GROUP, get_group_size
from dumpsim.frontends.mindspore.context import get_auto_parallel_context
from dumpsim.frontends.mindspore.nn.cell import Cell
from dumpsim.frontends.mindspore.ops.composite.hyper_map import MultitypeFuncGraph
from dumpsim.frontends.mindspore.ops.operations.comm_ops import AllReduce
from dumpsim.frontends.mindspore.parallel._utils import _get_gradients_mean

__all__ = ["DistributedGradReducer"]

_reduce = MultitypeFuncGraph("reduce_opt")


@_reduce.register("Tensor", "Bool", "Function", "Bool", "Tensor")
def _reduced(degree: Any, mean: bool, allreduce: Any, wanted: bool, grad: Any) -> Any:
    """Sum a gradient over the ranks, and divide it by their number for the mean."""
    if not wanted:
        return grad
    new_grad = allreduce(grad)
    if mean:
        new_grad = ops.mul(new_grad, ops.cast(degree, new_grad.dtype))
    return new_grad


class DistributedGradReducer(Cell):
    """Sum or average gradients over the ranks of a group, in float32.

    Parameters
    ----------
    parameters : list of Parameter
        The parameters of the gradients; layer-wise parallel ones keep their own gradients.
    mean : bool, optional
        Divide by `degree`; if None, the parallel context's ``gradients_mean``.
    degree : int, optional
        The number of ranks if None.
    fusion_type : int
        Attribute ``fusion`` of the AllReduce operators.
    group : str

    Raises
    ------
    ValueError
        For a `degree` that is not a positive int.

    Examples
    --------
    >>> DistributedGradReducer([], degree=0)
    Traceback (most recent call last):
        ...
    dumpsim.core.errors.ScriptValueError: For 'DistributedGradReducer', parameter 'degree' in DistributedGradReducer \
should large than 0 and be int, degree: 0.
    """

    def __init__(
        self,
        parameters: Sequence[Any],
        mean: bool | None = None,
        degree: int | None = None,
        fusion_type: int = 1,
        group: str = HCCL_WORLD_COMM_GROUP,
    ) -> None:
        super().__init__(auto_prefix=False)
        self.map_ = ops.Map()
        self.mean = _get_gradients_mean() if mean is None else mean
        if degree is None:
            degree = get_group_size()
        elif not isinstance(degree, int) or degree <= 0:
            raise ScriptValueError(
                "For 'DistributedGradReducer', parameter 'degree' in DistributedGradReducer should large than 0 and be "
                f"int, degree: {degree}."
            )
        self.degree = Tensor(1.0 / degree, mstype.float32)
        self.allreduce_filter = tuple(not parameter.layerwise_parallel for parameter in parameters)
        fusions = _fusions(parameters, fusion_type)
        self.split_fusion = bool(fusions)
        if fusions:
            self.op_list = tuple(_all_reduce(group, fusion, index) for index, fusion in enumerate(fusions, 1))
        else:
            self.allreduce = _all_reduce(group, fusion_type)

    @jit
    def construct(self, grads: Any) -> Any:
        datatypes = tuple(grad.dtype for grad in grads)
        grads = tuple(ops.cast(grad, mstype.float32) for grad in grads)
        if self.split_fusion:
            partial = ops.partial(_reduce, self.degree, self.mean)
            new_grad = self.map_(partial, self.op_list, self.allreduce_filter, grads)
        else:
            partial = ops.partial(_reduce, self.degree, self.mean, self.allreduce)
            new_grad = self.map_(partial, self.allreduce_filter, grads)
        return tuple(ops.cast(grad, datatype) for grad, datatype in zip(new_grad, datatypes, strict=True))


def _all_reduce(group: str, fusion: int, index: int | None = None) -> AllReduce:
    allreduce = AllReduce("sum", group)
    allreduce.add_prim_attr("fusion", fusion)
    if index is not None:
        allreduce.add_prim_attr("index", index)
    return allreduce


def _fusions(parameters: Sequence[Any], fusion_type: int) -> list[int]:
    """Return the fusion number of each gradient's AllReduce; empty where all share one operator. [observed 2.10]

    Gradients are fused by the `comm_fusion` of their parameters where these differ, else in segments that end at the
    indices of ``all_reduce_fusion_config``.
    """
    own = [parameter.comm_fusion for parameter in parameters]
    ends: list[int] = get_auto_parallel_context("all_reduce_fusion_config")
    segmented = bool(ends) and (fusion_type == 1 or get_auto_parallel_context("enable_parallel_optimizer"))
    if len(set(own)) > 1 and not (segmented and get_auto_parallel_context("enable_parallel_optimizer")):
        return own
    if not segmented:
        return []
    for end in ends:
        if end >= len(own):
            logger.warning(
                f"AllReduce's split index {end} is greater than or equal tothe total gradient's number of {len(own)}"
            )
    first = 2**10
    return [first + sum(end < index for end in ends) for index in range(len(own))]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.wrap.grad_reducer", name)
