"""What a dump is asked to do, in words of no vendor: parsers of options make it, the dump service takes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dumpsim.core.match import KernelRules
from dumpsim.core.steps import Steps

__all__ = ["Blocked", "DumpRequest", "ModelRule", "RequestedStatistics", "Selection", "Trigger", "Watch"]

# when an operator is dumped: whenever it runs, when its results overflow, when it fails
Trigger = Literal["every", "overflow", "failure"]
_MARK = "dump"  # attribute that a script's mark leaves on an operator [spec mindspore 2.3]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """Tensors that are left out of the dump of an operator.

    Attributes
    ----------
    name : str
        Full name of the operator, or its type.
    by_type : bool
    inputs, outputs : frozenset of int
        Slots.
    """

    name: str
    by_type: bool
    inputs: frozenset[int] = frozenset()
    outputs: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRule:
    """What to dump of a model.

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
        """Whether every operator is chosen."""
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
    """Which operators to dump: those that a rule names and those that the script marked; all of them without either.

    Attributes
    ----------
    rules : KernelRules or None
        Names, types and patterns.
    marked : bool
        Operators that the script marked.
    models : tuple of ModelRule or None
        Operators by the model that they are part of.

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
        """Whether an operator is selected."""
        if self.everything or (self.rules is not None and self.rules.match(full_name) is not None):
            return True
        return self.marked and self.mark(attrs).lower() == "true"

    def mark(self, attrs: Mapping[str, Any]) -> str:
        """The mark of an operator, empty where marks do not matter."""
        return str(attrs.get(_MARK, "")) if self.marked else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedStatistics:
    """Which statistics to save, by their names in `dumpsim.core.statistic`, in the order of their columns.

    Attributes
    ----------
    device : bool
        The device computes them, not the host.
    precision : str
        ``high`` or ``low``: number type in which the device does so.
    """

    names: tuple[str, ...]
    device: bool = False
    precision: str = "high"


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpRequest:
    """What to dump, when, in which form, and where.

    Attributes
    ----------
    path : str
        Root of the dump.
    net_name : str
        Directory of the net, in trees that have one.
    file : str
        The file that the request was read from, as the user named it.
    text : bytes
        Its bytes, for trees that keep a copy.
    dialect : str
        Whose config the file is: ``mindspore`` or ``acl``.
    selection : Selection
    inputs, outputs : bool
    steps : Steps
    first_step : int
        Number of the first step.
    trigger : str
        ``every``, ``overflow`` or ``failure``.
    overflow_limit : int
        Overflowing operators to dump; 0: all of them.
    tensors : bool
        Tensors themselves are saved.
    statistics : RequestedStatistics or None
        Statistics that are saved.
    file_format : str
        ``npy``: one file a tensor; ``bin``: one file an operator.
    host_layout : bool
        Device layouts and number types are converted to the host's.
    sample : int or None
        Only this many elements of a tensor are saved.
    kernel_arguments : bool
        The arguments of kernels are saved, too.
    useless_outputs : bool
        So are outputs that are known to be useless.
    asynchronous : bool
        Tensors are read by callbacks on the kernels' streams.
    singles : bool
        Operators that run at once, outside of graphs, are dumped, too.
    watches : tuple of Watch
        Dump watched outputs and nothing else.
    disabled : str or None
        Why a legal request dumps nothing on this device.
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
