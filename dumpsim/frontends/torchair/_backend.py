"""The back end of ``torch.compile``: graphs of torch become graphs of GE, which run on the emulated device."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from torch import fx
from torch._dynamo.backends.common import aot_autograd

from dumpsim.frontends.torchair._compiled import Compiled
from dumpsim.frontends.torchair._convert import Converter
from dumpsim.frontends.torchair._dispatch import whole_operators
from dumpsim.frontends.torchair._fx import prepared
from dumpsim.frontends.torchair._state import state

__all__ = ["get_compiler", "get_npu_backend"]


def get_npu_backend(
    *,
    compiler_config: Any = None,
    custom_decompositions: dict[Any, Callable[..., Any]] | None = None,
) -> Callable[..., Any]:
    """The back end for ``torch.compile(model, backend=...)``.

    Parameters
    ----------
    compiler_config : CompilerConfig, optional
    custom_decompositions : dict, optional
        Decompositions that are applied while a graph is captured.
    """
    config = _config(compiler_config)
    return partial(_npu_backend, compiler_config=config, decompositions=custom_decompositions or {})


def _npu_backend(
    module: fx.GraphModule, inputs: Sequence[Any], *, compiler_config: Any, decompositions: Any, **ignored: Any
) -> Callable[..., Any]:
    """Compile a graph of Dynamo."""
    compiler = get_compiler(compiler_config)
    keep = bool(_option(compiler_config, "experimental_config", "keep_inference_input_mutations", True))
    made = aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        decompositions=decompositions,
        keep_inference_input_mutations=keep,
    )
    with whole_operators(state().choices.dispatch):
        compiled: Callable[..., Any] = made(module, inputs)
    return compiled


def get_compiler(compiler_config: Any = None) -> Callable[..., Any]:
    """What compiles one graph of ATen operators."""
    config = _config(compiler_config)
    return partial(_compile, config=config)


def _compile(module: fx.GraphModule, inputs: Sequence[Any], *, config: Any) -> Callable[..., Any]:
    """Compile a graph of ATen operators."""
    own = state()
    name = own.next_name()
    graph = prepared(module, noop=bool(_option(config, "experimental_config", "remove_noop_ops", True)))
    converter = Converter(
        name,
        view_optimize=bool(_option(config, "experimental_config", "enable_view_optimize", True)),
        strict=own.choices.strict,
        extended=own.extended,
    )
    converter.convert(graph, module)
    own.graphs.append(converter.graph)
    return Compiled(own, converter, converter.values, config)


def _config(given: Any) -> Any:
    if given is not None:
        return given
    configs = import_module("dumpsim.frontends.torchair.configs.compiler_config")
    return configs.CompilerConfig()


def _option(config: Any, group: str, name: str, default: Any) -> Any:
    """The value of an option, or its default where the configuration has none."""
    found = getattr(getattr(config, group, None), name, None)
    value = getattr(found, "value", found)
    if value in ("0", "1"):
        return value == "1"
    return default if value is None else value
