"""How composite operators are captured: those that an NPU has kernels for stay whole. [spec aten 9.1, 9.6]"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

__all__ = ["attention_of", "whole_operators"]

_WHOLE = (("matmul", "default"),)


@contextmanager
def whole_operators(dispatch: str) -> Iterator[None]:
    """Keep composite operators whole where the device has a kernel for them.

    Parameters
    ----------
    dispatch : str
        ``npu``, or ``cpu``: nothing is kept.
    """
    if dispatch != "npu" or torch.is_grad_enabled():  # such a kernel has no gradient
        yield
        return
    library = torch.library.Library("aten", "IMPL")
    operators = [getattr(getattr(torch.ops.aten, name), overload) for name, overload in _WHOLE]
    try:
        for operator in operators:
            library.impl(operator.name().partition("::")[2], _kernel(operator), "CPU")
            operator._dispatch_cache.clear()  # torch has looked the kernel up before
        yield
    finally:
        library._destroy()
        for operator in operators:
            operator._dispatch_cache.clear()


@contextmanager
def attention_of(form: str) -> Iterator[None]:
    """Choose how attention is captured.

    Parameters
    ----------
    form : str
        ``math``, or ``fused``: as the kernel that torch would choose.
    """
    if form != "math":
        yield
        return
    with sdpa_kernel(SDPBackend.MATH):
        yield


def _kernel(operator: Any) -> Any:
    key = torch._C.DispatchKey.CompositeImplicitAutograd

    def kernel(*arguments: Any, **keywords: Any) -> Any:
        return operator._op_dk(key, *arguments, **keywords)

    return kernel
