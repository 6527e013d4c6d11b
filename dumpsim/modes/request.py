"""The request of a dump, independent of the vendor's options, which are parsed to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dumpsim.core.match import KernelRules
from dumpsim.core.steps import Steps

__all__ = ["Blocked", "DumpRequest", "ModelRule", "RequestedStatistics", "Selection", "Trigger", "Watch"]

# when an operator is dumped: in every run, if its results overflow, or if it fails
Trigger = Literal["every", "overflow", "failure"]
_MARK = "dump"  # attribute of an operator that the script has marked [spec mindspore 2.3]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """Tensors of an operator that are not dumped.

    Attributes
    ----------
    name : str
        Full name of the operator, or its type.
    by_type : bool
    inputs, outputs : frozenset of int
        Slots of the tensors.
    """

    name: str
    by_type: bool
    inputs: frozenset[int] = frozenset()
    outputs: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRule:
    """The operators of a model to dump.

    Attributes
    ----------
    model : str
        Name of the model; "" for any model.
    names : tuple of str or None
        Full names of operators, or of those that a fused one replaced; None: every operator.
    ranges : tuple of (str, str)
        First and last operator of sequences in execution order.
    blocked : tuple of Blocked
    """

    model: str = ""
    names: tuple[str, ...] | None = None
    ranges: tuple[tuple[str, str], ...] = ()
    blocked: tuple[Blocked, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether all operators are selected."""
        return self.names is None and not self.ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Operators whose outputs are read again after others have run, to find out who overwrites them.

    Attributes
    ----------
    layers : tuple of str or None
        Operators after which the outputs are read; None: every operator.
    nodes : tuple of str
        Operators whose outputs are read.
    """

    layers: tuple[str, ...] | None
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The operators to dump: those that match a rule or have the script's mark; without both, all operators.

    Attributes
    ----------
    rules : KernelRules or None
        Names, types and patterns.
    marked : bool
        Whether operators with the script's mark are selected.
    models : tuple of ModelRule or None
        Rules for operators of models.

    Examples
    --------
    >>> Selection(rules=KernelRules.parse(["MatMul"])).selects("Default/fc1-Dense/MatMul-op0", {})
    True
    >>> Selection(marked=True).selects("Default/fc1-Dense/MatMul-op0", {})
    False
    """

    rules: KernelRules | None = None
    marked: bool = False
    models: tuple[ModelRule, ...] | None = None

    @property
    def everything(self) -> bool:
        """Whether all operators are selected."""
        return self.rules is None and not self.marked and self.models is None

    def selects(self, full_name: str, attrs: Mapping[str, Any]) -> bool:
        """Return whether an operator is selected."""
        if self.everything or (self.rules is not None and self.rules.match(full_name) is not None):
            return True
        return self.marked and self.mark(attrs).lower() == "true"

    def mark(self, attrs: Mapping[str, Any]) -> str:
        """Return the mark of an operator; empty if marks have no effect."""
        return str(attrs.get(_MARK, "")) if self.marked else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedStatistics:
    """The statistics to save, by their names in `dumpsim.core.statistic`, in the order of their columns.

    Attributes
    ----------
    device : bool
        Whether the device computes them, not the host.
    precision : str
        ``high`` or ``low``: precision of the device's results.
    """

    names: tuple[str, ...]
    device: bool = False
    precision: str = "high"


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpRequest:
    """The tensors to dump, the time, the form and the directory.

    Attributes
    ----------
    path : str
        Root of the dump.
    net_name : str
        Directory of the net, in trees that have one.
    file : str
        Name of the config file, as given by the user.
    text : bytes
        Content of the file, for trees with a copy.
    dialect : str
        Dialect of the config: ``mindspore`` or ``acl``.
    selection : Selection
    inputs, outputs : bool
    steps : Steps
    first_step : int
        Number of the first step.
    trigger : str
        ``every``, ``overflow`` or ``failure``.
    overflow_limit : int
        Largest number of overflowing operators to dump; 0: all.
    tensors : bool
        Whether tensors are saved.
    statistics : RequestedStatistics or None
        Statistics to save.
    file_format : str
        ``npy``: one file per tensor; ``bin``: one file per operator.
    host_layout : bool
        Whether device layouts and data types are converted to the host's.
    sample : int or None
        Largest number of elements of a tensor to save.
    kernel_arguments : bool
        Whether the arguments of kernels are saved.
    useless_outputs : bool
        Whether outputs that are known to be useless are saved.
    asynchronous : bool
        Whether tensors are read by callbacks on the kernels' streams.
    singles : bool
        Whether single operators, outside of graphs, are dumped.
    watches : tuple of Watch
        If not empty, only watched outputs are dumped.
    disabled : str or None
        Why a valid request dumps nothing on this device.
    """

    path: str
    net_name: str = ""
    file: str = ""
    text: bytes = b""
    dialect: Literal["mindspore", "acl"] = "mindspore"
    selection: Selection = field(default_factory=Selection)
    inputs: bool = True
    outputs: bool = True
    steps: Steps = field(default_factory=lambda: Steps(text="all", every=True))
    first_step: int = 0
    trigger: Trigger = "every"
    overflow_limit: int = 0
    tensors: bool = True
    statistics: RequestedStatistics | None = None
    file_format: Literal["npy", "bin"] = "npy"
    host_layout: bool = True
    sample: int | None = None
    kernel_arguments: bool = False
    useless_outputs: bool = False
    asynchronous: bool = False
    singles: bool = False
    watches: tuple[Watch, ...] = ()
    disabled: str | None = None
