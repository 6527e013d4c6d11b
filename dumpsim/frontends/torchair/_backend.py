"""The back end of ``torch.compile``: converts graphs of torch to graphs of GE, which run on the emulated device."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from torch import fx
from torch._dynamo.backends.common import aot_autograd

from dumpsim.frontends.torchair._compiled import Compiled
from dumpsim.frontends.torchair._convert import Converter
from dumpsim.frontends.torchair._dispatch import attention_of, vendor_shapes, whole_operators
from dumpsim.frontends.torchair._dumping import initialise, load
from dumpsim.frontends.torchair._fold import folds
from dumpsim.frontends.torchair._fx import prepared
from dumpsim.frontends.torchair._limits import fuses
from dumpsim.frontends.torchair._state import state
from dumpsim.frontends.torchair._table import plain_type, rule
from dumpsim.frontends.torchair.configs.compiler_config import CompilerConfig
from dumpsim.frontends.torchair.fx_dumper import NpuFxDumper, save_nodes
from dumpsim.frontends.torchair.graph_dumper import dump_graph, dump_summary
from dumpsim.frontends.torchair.scope import attributes_of

__all__ = ["get_compiler", "get_npu_backend"]


def get_npu_backend(
    *,
    compiler_config: CompilerConfig | None = None,
    custom_decompositions: dict[Any, Callable[..., Any]] | None = None,
) -> Callable[..., Any]:
    """Return the back end for ``torch.compile(model, backend=...)``.

    Parameters
    ----------
    compiler_config : CompilerConfig, optional
    custom_decompositions : dict, optional
        Decompositions that are applied while a graph is captured.
    """
    config = CompilerConfig() if compiler_config is None else compiler_config
    if config.dump_config.enable_dump:
        state().expect_graphs()
    return partial(_npu_backend, compiler_config=config, decompositions=custom_decompositions or {})


def _npu_backend(
    module: fx.GraphModule, inputs: Sequence[Any], *, compiler_config: Any, decompositions: Any, **ignored: Any
) -> Callable[..., Any]:
    """Compile a graph that Dynamo has captured."""
    forward, backward = (_boxed(partial(_compile, config=compiler_config, gradient=one)) for one in (False, True))
    keep = bool(_option(compiler_config, "experimental_config", "keep_inference_input_mutations", True))
    made = aot_autograd(
        fw_compiler=forward,
        bw_compiler=backward,
        decompositions=decompositions,
        keep_inference_input_mutations=keep,
    )
    choices = state().choices
    with whole_operators(choices.dispatch), attention_of(choices.attention), vendor_shapes():
        compiled: Callable[..., Any] = made(module, inputs)
    return compiled


def _boxed(compiler: Callable[..., Any]) -> Callable[..., Any]:
    """Let the functions of a compiler take their arguments in one list, as AOTAutograd requires."""

    def compiled(module: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        function = compiler(module, inputs)

        def boxed(arguments: list[Any]) -> Any:
            return function(*arguments)

        boxed._boxed_call = True  # type: ignore[attr-defined]
        return boxed

    return compiled


def get_compiler(compiler_config: CompilerConfig | None = None) -> Callable[..., Any]:
    """Return the compiler of one graph of ATen operators."""
    config = CompilerConfig() if compiler_config is None else compiler_config
    return partial(_compile, config=config)


def _compile(
    module: fx.GraphModule, inputs: Sequence[Any], *, config: Any, gradient: bool = False
) -> Callable[..., Any]:
    """Compile a graph of ATen operators."""
    own = state()
    name = own.next_name()
    saved = _saved(config, module, name)
    if saved is not None:
        return saved
    graph = prepared(module, noop=bool(_option(config, "experimental_config", "remove_noop_ops", True)))
    marks = attributes_of(graph)
    joined = fuses(config)
    initialise(config)
    converter = Converter(
        name,
        view_optimize=bool(_option(config, "experimental_config", "enable_view_optimize", True)),
        strict=own.choices.strict,
        extended=own.extended,
        marks=marks,
    )
    converter.convert(graph, module)
    own.graphs.append(converter.graph)
    dump_graph(config, "optimized", name, converter.graph.nodes)
    found = folds(converter.graph)
    load(config, name, [(node.type, node.attrs) for node in converter.graph.nodes], keeps=bool(found))
    folded = {} if config.dump_config.quant_dumpable.value == "1" else found
    return Compiled(own, converter, converter.values, folded, fuses=joined, gradient=gradient)


def _saved(config: Any, module: fx.GraphModule, name: str) -> Callable[..., Any] | None:
    """Return the function that runs a graph and saves its tensors as torch or numpy files; None for a graph of GE."""
    if _option(config, "debug", "data_dump", None) is not None and config.debug.data_dump.type.value:
        runner: Callable[..., Any] = NpuFxDumper(module, config.debug.data_dump, name).run
        return runner
    if dump_summary(config, module, _is_supported) and config.debug.fx_summary.skip_compile:
        return module
    if config.mode.value == "max-autotune":
        return None
    if not config.dump_config.enable_dump:
        return module
    if config.dump_config.data_dump_stage.value == "optimized":
        prepared(module, noop=bool(_option(config, "experimental_config", "remove_noop_ops", True)))
    return save_nodes(module, config.dump_config)


def _is_supported(target: Any) -> bool:
    """Return whether the real converter converts an overload."""
    return rule(str(target)) is not None or plain_type(str(target)) is not None


def _option(config: Any, group: str, name: str, default: Any) -> Any:
    """Return the value of an option; the default if the configuration does not have the option."""
    found = getattr(getattr(config, group, None), name, None)
    value = getattr(found, "value", found)
    if value in ("0", "1"):
        return value == "1"
    return default if value is None else value
