"""``mindspore.mint.nn``: cells with PyTorch's names, arguments and Parameters."""

from importlib import import_module
from typing import Any

from dumpsim.frontends.mindspore._standin import vendored

__all__: list[str] = []

# cells that only call a function of `functional` with their settings
_APPLIED = """
AdaptiveAvgPool2d(output_size): adaptive_avg_pool2d
AvgPool2d(kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None): \
avg_pool2d
BCELoss(weight=None, reduction='mean'): binary_cross_entropy
BCEWithLogitsLoss(weight=None, reduction='mean', pos_weight=None): binary_cross_entropy_with_logits
CrossEntropyLoss(weight=None, ignore_index=-100, reduction='mean', label_smoothing=0.0): cross_entropy
ELU(alpha=1.0, inplace=False): elu
GELU(approximate='none'): gelu
GLU(dim=-1): glu
Hardsigmoid(auto_prefix=True, flags=None): hardsigmoid
Hardswish(auto_prefix=True, flags=None): hardswish
KLDivLoss(reduction='mean', log_target=False): kl_div
L1Loss(reduction='mean'): l1_loss
LogSigmoid(auto_prefix=True, flags=None): logsigmoid
LogSoftmax(dim=None): log_softmax
MSELoss(reduction='mean'): mse_loss
MaxPool2d(kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False): max_pool2d
Mish(auto_prefix=True, flags=None): mish
NLLLoss(weight=None, ignore_index=-100, reduction='mean'): nll_loss
PixelShuffle(upscale_factor): pixel_shuffle
ReLU(): relu
ReLU6(inplace=False): relu6
SELU(auto_prefix=True, flags=None): selu
SiLU(inplace=False): silu
Sigmoid(auto_prefix=True, flags=None): sigmoid
SmoothL1Loss(reduction='mean', beta=1.0): smooth_l1_loss
Softmax(dim=None): softmax
Tanh(auto_prefix=True, flags=None): tanh
Upsample(size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None): interpolate
""".replace("\\\n", "")


def _own(name: str) -> Any:
    if name in ("functional", "layer"):
        return import_module(f"{__name__}.{name}")
    layer = import_module(f"{__name__}.layer")
    if name in vars(layer)["__all__"]:
        return getattr(layer, name)
    row = None if name.startswith("_") else next((r for r in _APPLIED.splitlines() if r.startswith(f"{name}(")), None)
    if row is None:
        raise AttributeError(name)
    return layer.applied(row)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.mint.nn", name, _own)
