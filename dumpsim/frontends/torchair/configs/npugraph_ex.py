"""Options of ``torch.compile(model, backend="npugraph_ex", options={...})``. [spec ge 1.8]"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from dumpsim.core.errors import ScriptValueError, nearest
from dumpsim.frontends.torchair.configs.compiler_config import CompilerConfig

__all__ = ["configured"]

# option -> option of CompilerConfig; a leading "not " negates the value
_PATHS = MappingProxyType(
    {
        "static_kernel_compile": "experimental_config.aclgraph._aclnn_static_shape_kernel",
        "inplace_pass": "not debug.aclgraph.disable_reinplace_inplaceable_ops_pass",
        "input_inplace_pass": "not debug.aclgraph.disable_reinplace_input_mutated_ops_pass",
        "remove_noop_ops": "experimental_config.remove_noop_ops",
        "graph_dump_type": "debug.graph_dump.type",
        "graph_dump_path": "debug.graph_dump.path",
        "force_eager": "debug.run_eagerly",
        "pattern_fusion_pass": "experimental_config.pattern_fusion_pass",
        "clone_input": "debug.aclgraph.clone_input",
        "frozen_parameter": "experimental_config.frozen_parameter",
        "use_graph_pool": "aclgraph_config.use_custom_pool",
        "reuse_graph_pool_in_same_fx": "not debug.aclgraph.disable_mempool_reuse_in_same_fx",
        "capture_limit": "debug.aclgraph.static_capture_size_limit",
        "clone_output": "debug.aclgraph.enable_output_clone",
        "dump_tensor_data": "dump_config.enable_dump",
        "data_dump_stage": "dump_config.data_dump_stage",
        "data_dump_dir": "dump_config.dump_path",
    }
)


def configured(options: Mapping[str, Any] | None = None) -> CompilerConfig:
    """Return the configuration for these options.

    Raises
    ------
    ScriptValueError
        For an unknown option; wrong values are errors of `CompilerConfig`.

    Examples
    --------
    >>> config = configured({"dump_tensor_data": True, "inplace_pass": False})
    >>> config.mode.value, config.dump_config.enable_dump.value
    ('npugraph_ex', '1')
    >>> config.debug.aclgraph.disable_reinplace_inplaceable_ops_pass.value
    '1'
    """
    config = CompilerConfig()
    config.mode = "npugraph_ex"
    for name, value in (options or {}).items():
        if name not in _PATHS:
            known = sorted(_PATHS)
            raise ScriptValueError(
                f"there is no option {name!r}",
                where="torch.compile(options=...)",
                allowed=known,
                nearest=nearest(name, known),
                vendor=f"Invalid option '{name}', allowed options: {known}",
                code="DS-TAR-002",
            )
        negated, _, path = _PATHS[name].rpartition(" ")
        *heads, last = path.split(".")
        group: Any = config
        for head in heads:
            group = getattr(group, head)
        setattr(group, last, not value if negated else value)
    return config
