"""What only names and IR text need of a node: where the script made it, and what the compiler's text says of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dumpsim.core.irdoc import SourceLine

__all__ = ["NodeText"]


@dataclass(eq=False, slots=True, kw_only=True)
class NodeText:
    """The text of a node; a pipeline that makes no text makes none of these.

    Attributes
    ----------
    full_name : str
        The name in IR text and execution order, where it is not the node's. [spec observed 0.17]
    variable : str
        The variable that the result was assigned to; a node without one is printed as ``CNode_N``.
    instance_name : str or None
        Name of the primitive that the script called.
    primitive : str
        Type of the primitive in the front end, where the kernel has another.
    attrs : dict
        Primitive attributes that the script or the compiler set, besides those of the operator.
    given : tuple of str
        Attributes that the caller gave; the others have their defaults.
    node_attrs : dict
        Attributes of the node itself, which are printed apart.
    primal : dict
        Attributes of the node that the nodes of its backward pass have, too.
    sources : tuple of SourceLine
        Lines of the script, innermost first.
    candidate : str
        As in `IrNode.candidate`.
    call_scope : str or None
        Scope of the call whose body holds the node.
    block_scope : str or None
        The same, of the innermost branch or function.
    constant_scope : str or None
        Scope of the constant that holds the primitive, where it is not the node's.
    formals : mapping of Node to object
        Operands that are formal parameters of a function that the vendor's parser makes of a loop, with what stands
        for the loops of the function of the script.
    call_variable : str
        The variable that took the result of that call.
    calls : int
        How many calls around it are inlined into a function that is differentiated.
    frame : int
        The same of the function whose code has its operands; its branches, which are known, are not counted, nor are
        functions that only call the operator.
    is_backend : bool
        The compiler's backend made the node.
    is_remade : bool
        The backend makes the node anew, which takes a further number.
    """

    full_name: str = ""
    variable: str = ""
    instance_name: str | None = None
    primitive: str = ""
    attrs: dict[str, Any] = field(default_factory=dict)
    given: tuple[str, ...] = ()
    node_attrs: dict[str, Any] = field(default_factory=dict)
    primal: dict[str, Any] = field(default_factory=dict)
    sources: tuple[SourceLine, ...] = ()
    candidate: str = ""
    call_scope: str | None = None
    block_scope: str | None = None
    constant_scope: str | None = None
    formals: Mapping[Any, object] = field(default_factory=dict)
    call_variable: str = ""
    calls: int = 0
    frame: int = 0
    is_backend: bool = False
    is_remade: bool = False
