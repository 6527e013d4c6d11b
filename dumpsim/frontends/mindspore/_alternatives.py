"""Alternatives to names that are not emulated, by meaning instead of by spelling."""

from types import MappingProxyType

__all__ = ["alternative"]

# name that is not emulated -> emulated name
_ALTERNATIVES = MappingProxyType(
    {
        line.split(": ")[0]: line.split(": ")[1]
        for line in """
AdaFactor: nn.Adam
AdamOffload: nn.Adam
ASGD: nn.SGD
AdaptiveAvgPool3d: nn.AdaptiveAvgPool2d
AvgPool3d: nn.AvgPool2d
AdaptiveMaxPool2d: nn.MaxPool2d
AdaptiveMaxPool3d: nn.MaxPool2d
BiDense: nn.Dense
COOTensor: Tensor
CSRTensor: Tensor
CTCLoss: nn.CrossEntropyLoss
Conv1dTranspose: nn.Conv2dTranspose
Conv3d: nn.Conv2d
Conv3dTranspose: nn.Conv2dTranspose
MultiFieldEmbeddingLookup: nn.Embedding
Generator: set_seed
GraphKernel: nn.Cell
HookBackward: nn.Cell.register_backward_hook
InsertGradientOf: nn.Cell.register_backward_hook
InstanceNorm1d: nn.GroupNorm
InstanceNorm2d: nn.GroupNorm
InstanceNorm3d: nn.GroupNorm
LARS: nn.Momentum
Lamb: nn.AdamWeightDecay
LazyAdam: nn.Adam
MaxPool3d: nn.MaxPool2d
MultiMarginLoss: nn.CrossEntropyLoss
Profiler: hal.synchronize
RowTensor: Tensor
Rprop: nn.SGD
SoftMarginLoss: nn.BCEWithLogitsLoss
SparseTensor: Tensor
Stream: hal.synchronize
Event: hal.synchronize
Tensor.register_hook: nn.Cell.register_backward_hook
Tensor.backward: grad
Tensor.grad: value_and_grad
Tensor.detach: ops.stop_gradient
Tensor.numpy: Tensor.asnumpy
Transformer: nn.TransformerEncoder
TripletMarginLoss: nn.MarginRankingLoss
export: save_checkpoint
hessian: grad
jacfwd: grad
jacrev: grad
jet: grad
jvp: ops.vjp
lazy_inline: jit
linearize: ops.vjp
load: load_checkpoint
Jvp: ops.vjp
Vjp: ops.vjp
pmap: ops.stack
recompute: nn.Cell
""".strip().splitlines()
    }
)


def alternative(module: str, name: str) -> str | None:
    """Return the emulated name that a user may use instead, or None.

    Examples
    --------
    >>> alternative("mindspore.nn", "InstanceNorm2d")
    'nn.GroupNorm'
    """
    return _ALTERNATIVES.get(name) if module.count(".") < 3 else None
