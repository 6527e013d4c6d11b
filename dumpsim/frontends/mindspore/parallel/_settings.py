"""The parallel settings of the network that is being compiled."""

from dataclasses import replace

from dumpsim.core.errors import ScriptValueError, UnsupportedError
from dumpsim.dump.tensordump import profile_of
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.communication._state import communication_state
from dumpsim.frontends.mindspore.communication.management import create_group, get_group_size, get_rank
from dumpsim.frontends.mindspore.parallel._context import (
    ParallelMode,
    get_auto_parallel_context,
    is_set,
    optimizer_threshold,
    setting,
)
from dumpsim.graph.graph import Graph
from dumpsim.graph.parallel.settings import Settings
from dumpsim.graph.parallel.sharding import Sharding
from dumpsim.runtime.session import Session

__all__ = ["join_groups", "parallel_settings", "slice_weights", "with_weights"]

_SPLIT = (ParallelMode.SEMI_AUTO_PARALLEL, ParallelMode.AUTO_PARALLEL)


def parallel_settings(target: str) -> Settings | None:
    """Return the settings of a network split over devices, or None if the parallel mode does not split networks.

    Raises
    ------
    UnsupportedError
        For pipeline stages and a search of strategies.
    """
    stages = get_auto_parallel_context("pipeline_stages")
    if stages > 1:
        raise UnsupportedError(
            f"{stages} stages are not emulated", where="set_auto_parallel_context.pipeline_stages", allowed=(1,)
        )
    mode = get_auto_parallel_context("parallel_mode")
    if mode not in _SPLIT:
        return None
    devices = get_auto_parallel_context("device_num") if is_set("device_num") else get_group_size()
    if devices == 1:
        return None
    rank = get_auto_parallel_context("global_rank") if is_set("global_rank") else get_rank()
    search = get_auto_parallel_context("search_mode")
    if mode == ParallelMode.AUTO_PARALLEL and search != "sharding_propagation":
        raise UnsupportedError(
            f"auto_parallel over {devices} devices with a search of strategies ({search}) is not emulated",
            where="set_auto_parallel_context.search_mode",
            allowed=("sharding_propagation",),
        )
    if rank >= devices:
        raise ScriptValueError(
            f"The context configuration parameter 'global_rank' must be smaller than 'device_num', but got {rank} and "
            f"{devices}."
        )
    full = get_auto_parallel_context("full_batch")
    return Settings(
        device_num=devices,
        rank=rank,
        mode=mode,
        dataset_strategy="full_batch" if full else setting("dataset_strategy") or "data_parallel",
        target=target,
        enable_alltoall=get_auto_parallel_context("enable_alltoall"),
        gradients_mean=get_auto_parallel_context("gradients_mean"),
        loss_repeated_mean=get_auto_parallel_context("loss_repeated_mean"),
        enable_parallel_optimizer=get_auto_parallel_context("enable_parallel_optimizer"),
        optimizer_threshold=optimizer_threshold(),
        tensordump=_tensordump(target),
    )


def _tensordump(target: str) -> str:
    """Return the session's generation of TensorDump."""
    settings = Session.current().settings
    return profile_of(settings.mindspore, target, settings.overrides).tensordump


def with_weights(settings: Settings, graph: Graph) -> Settings:
    """Add the properties of the Parameters of a captured graph to the settings."""
    weights = [p.storage for p in graph.parameters if p.is_weight]
    return replace(
        settings,
        clones=frozenset((w.name, w._cloned_from) for w in weights if w._cloned_from),
        frozen=frozenset(w.name for w in weights if not w.requires_grad),
        alone=frozenset(w.name for w in weights if not w.parallel_optimizer),
        planned=tuple((w.name, w._plan) for w in weights if w._plan is not None),
    )


def slice_weights(sharding: Sharding) -> None:
    """Reduce each Parameter to this rank's part."""
    for weight in sharding.weights:
        if isinstance(weight.storage, Parameter):
            weight.storage._slice(sharding.parameters[weight.name], sharding.settings.rank)


def join_groups(sharding: Sharding) -> None:
    """Create this rank's communication groups for a sharded network; do nothing before `init`."""
    state = communication_state()
    if not state.entered:
        return
    for name, members in sharding.groups.items():
        if name not in state.groups and len(members) < sharding.settings.device_num:
            create_group(name, list(members))
