"""The back ends that torch_npu registers: ``torch.compile(model, backend="npu")`` and ``backend="npugraph_ex"``."""

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

__all__ = ["with_backends"]


def with_backends(compile_: Callable[..., Any]) -> Callable[..., Any]:
    """Let `torch.compile` accept the names of the NPU's back ends.

    Torch's own registry is not used, because it would have to be imported before the first compilation.
    """

    @functools.wraps(compile_)
    def compiled(*arguments: Any, **keywords: Any) -> Any:
        make = _MAKERS.get(keywords.get("backend", ""))
        if make is not None:
            keywords["backend"] = make(keywords.pop("options", None) or {})
        return compile_(*arguments, **keywords)

    return compiled


def _npu(options: Mapping[str, Any]) -> Callable[..., Any]:
    """Make TorchAir's back end with the default configuration."""
    from dumpsim.core.errors import ScriptValueError
    from dumpsim.frontends.torchair._backend import get_npu_backend

    if options:
        raise ScriptValueError(
            "the back end npu takes no options", where="torch.compile(options=...)", allowed=["CompilerConfig"]
        )
    return get_npu_backend()


def _npugraph_ex(options: Mapping[str, Any]) -> Callable[..., Any]:
    """Make TorchAir's back end for ACL graphs, configured by options."""
    from dumpsim.frontends.torchair._backend import get_npu_backend
    from dumpsim.frontends.torchair.configs.npugraph_ex import configured

    return get_npu_backend(compiler_config=configured(options))


_MAKERS = MappingProxyType({"npu": _npu, "npugraph_ex": _npugraph_ex})
