"""What the emulation has in place of something that it does not have: nearest by meaning, before spelling."""

from types import MappingProxyType

__all__ = ["kindred"]

# not emulated -> what comes nearest to it
_KINDRED = MappingProxyType(
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


def kindred(module: str, name: str) -> str | None:
    """Return what a user may take instead, None where nothing comes near.

    Examples
    --------
    >>> kindred("mindspore.nn", "InstanceNorm2d")
    'nn.GroupNorm'
    """
    return _KINDRED.get(name) if module.count(".") < 3 else None
