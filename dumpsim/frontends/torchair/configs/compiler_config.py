"""``CompilerConfig``: all options of a compilation, and the options of GE that follow from them. [spec aten 9.10]"""

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from dumpsim.frontends.torchair.configs._option import Directory, File, Integer, NewDirectory, Option, Options
from dumpsim.frontends.torchair.configs.dump_config import DataDumpConfig

__all__ = ["CompilerConfig"]

_LARGEST = 2**63 - 1
_SORTING = MappingProxyType({"BFS": "0", "DFS": "1", "RDFS": "2", "StableRDFS": "3"})
_BOTH = (True, False)


def _switch(default: bool) -> Option:
    return Option(default, _BOTH)


def _debug() -> Options:
    graph = {
        "disable_reinplace_inplaceable_ops_pass": _switch(False),
        "disable_reinplace_input_mutated_ops_pass": _switch(False),
        "disable_mempool_reuse_in_same_fx": _switch(False),
        "enable_output_clone": _switch(False),
        "static_capture_size_limit": Integer(64, 1, _LARGEST),
        "clone_input": _switch(True),
    }
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "graph_dump": ("_Dump", {"type": Option(None, ["txt", "pbtxt", "py"]), "path": NewDirectory(".")}),
        "data_dump": ("_DataDump", {"type": Option(None, ["npy"]), "path": NewDirectory("."), "filter": None}),
        "fx_summary": (
            "_FxSummary",
            {"type": Option(None, ["csv"]), "skip_compile": _switch(True), "path": NewDirectory(".")},
        ),
        "aclgraph": ("_AclGraphDebugConfig", graph),
    }
    members: dict[str, Any] = {n: Options(title, f"debug.{n}", inner) for n, (title, inner) in kinds.items()}
    members |= {"run_eagerly": _switch(False), "deadlock_check": _switch(False)}
    return Options("_DebugConfig", "debug", members)


def _export() -> Options:
    inner = {"enable_record_nn_module_stack": _switch(False), "auto_atc_config_generated": _switch(False)}
    members = {
        "export_mode": _switch(False),
        "export_path_dir": Directory("./"),
        "export_name": None,
        "weight_name": None,
        "inputs_name": None,
        "experimental": Options("_ExperimentalConfig", "export.experimental", inner),
        "enable_save_load_mode": _switch(False),
    }
    return Options("_ExportConfig", "export", members)


def _experimental() -> Options:
    inner = {
        "_aclnn_static_shape_kernel": _switch(False),
        "_aclnn_static_shape_kernel_build_dir": Option(None),
        "_aclnn_static_shape_kernel_sym_value_range": Option(None),
        "_aclnn_static_shape_kernel_sym_index": Integer(0, 0, _LARGEST),
    }
    members = {
        "cc_parallel_enable": _switch(False),
        "keep_inference_input_mutations": _switch(True),
        "memory_efficiency": _switch(False),
        "frozen_parameter": _switch(False),
        "static_model_ops_lower_limit": Integer(None, -1, _LARGEST),
        "jit_compile": Option("auto", ["auto"]),
        "npu_fx_pass": _switch(False),
        "aot_config_enable_joint_graph": _switch(False),
        "aot_config_output_loss_index": Option(0),
        "topology_sorting_strategy": Option("DFS", list(_SORTING)),
        "enable_ref_data": _switch(False),
        "enable_view_optimize": _switch(True),
        "remove_noop_ops": _switch(True),
        "tiling_schedule_optimize": _switch(False),
        "pattern_fusion_pass": _switch(True),
        "aclgraph": Options("_AclGraphExperimentalConfig", "experimental_config.aclgraph", inner),
    }
    return Options("_ExperimentalConfig", "experimental_config", members)


def _ge() -> Options:
    members = {
        "enable_single_stream": _switch(False),
        "oo_level": Option("O3", ["O1", "O3"]),
        "oo_constant_folding": Option(None, _BOTH),
        "oo_dead_code_elimination": Option(None, _BOTH),
        "export_compile_stat": Option("2", ["0", "1", "2"]),
        "aicore_num": Option(None),
        "optimization_switch": Option(None),
        "multistream_parallel_mode": Option(None),
    }
    return Options("_GEConfig", "ge_config", members)


class CompilerConfig(Options):
    """The options of a compilation.

    Examples
    --------
    >>> config = CompilerConfig()
    >>> config.mode = "reduce-overhead"
    >>> config.mode.value, config.changed()
    ('reduce-overhead', ['mode'])
    """

    def __init__(self) -> None:
        aoe = {"aoe_mode": Option(None, ["2"]), "work_path": Option("./"), "aoe_config_file": Option(None)}
        members = {
            "debug": _debug(),
            "aoe_config": Options("_AoeConfig", "aoe_config", aoe),
            "export": _export(),
            "dump_config": DataDumpConfig(),
            "fusion_config": Options("_FusionConfig", "fusion_config", {"fusion_switch_file": File(None)}),
            "experimental_config": _experimental(),
            "inference_config": Options(
                "_InferenceConfig",
                "inference_config",
                {"dynamic_gears_merge_policy": Option("zip", ["zip", "product"])},
            ),
            "ge_config": _ge(),
            "aclgraph_config": Options("_AclGraphConfig", "aclgraph_config", {"use_custom_pool": Option(None)}),
            "mode": Option("max-autotune", ["max-autotune", "reduce-overhead", "npugraph_ex"]),
        }
        super().__init__("CompilerConfig", "", members)

    def as_dict(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return options of a graph and options of the process, and create the dump's directory. [spec ge 1.3]"""
        mode = self.mode.value
        local = dict(self._local(mode == "max-autotune"))
        local["mode"] = mode
        return local, {**self.dump_config.as_options(mode), **dict(self._global(mode == "max-autotune"))}

    def _global(self, ge: bool) -> Iterator[tuple[str, Any]]:
        group, experimental = self.ge_config, self.experimental_config
        if self.fusion_config.fusion_switch_file.value is not None:
            yield "ge.fusionSwitchFile", self.fusion_config.fusion_switch_file.value
        if ge:
            yield "ge.exec.enableEngineParallel", experimental.cc_parallel_enable.value
        yield "ge.enableSingleStream", "true" if group.enable_single_stream else "false"
        yield "ge.oo.level", group.oo_level.value
        for key, option in (
            ("ge.oo.constantFolding", group.oo_constant_folding),
            ("ge.oo.deadCodeElimination", group.oo_dead_code_elimination),
        ):
            if option.value is not None:
                yield key, "true" if option else "false"
        yield "ge.exportCompileStat", group.export_compile_stat.value
        for key, option in (
            ("ge.aicoreNum", group.aicore_num),
            ("ge.optimizationSwitch", group.optimization_switch),
        ):
            if option.value is not None:
                yield key, option.value

    def _local(self, ge: bool) -> Iterator[tuple[str, Any]]:
        debug, experimental = self.debug, self.experimental_config
        for name in (
            "disable_mempool_reuse_in_same_fx",
            "enable_output_clone",
            "static_capture_size_limit",
            "clone_input",
        ):
            yield name, getattr(debug.aclgraph, name).value
        yield "run_eagerly", debug.run_eagerly.value
        yield "deadlock_check", debug.deadlock_check.value
        if self.aoe_config.aoe_mode.value is not None:
            for name in ("aoe_mode", "work_path", "aoe_config_file"):
                if getattr(self.aoe_config, name).value is not None:
                    yield name, getattr(self.aoe_config, name).value
        for name in ("remove_noop_ops", "pattern_fusion_pass", "frozen_parameter"):
            yield name, getattr(experimental, name).value
        if not ge:
            return
        yield "ge.tiling_schedule_optimize", experimental.tiling_schedule_optimize.value
        yield "ge.featureBaseRefreshable", experimental.memory_efficiency.value
        strategy = (
            "StableRDFS" if self.ge_config.oo_level.value == "O1" else experimental.topology_sorting_strategy.value
        )
        yield "ge.topoSortingMode", _SORTING[strategy]
        yield "ge.jit_compile", "2"
        if experimental.static_model_ops_lower_limit.value is not None:
            yield "ge.exec.static_model_ops_lower_limit", experimental.static_model_ops_lower_limit.value
        if self.ge_config.multistream_parallel_mode.value is not None:
            yield "ge.autoMultistreamParallelMode", self.ge_config.multistream_parallel_mode.value
