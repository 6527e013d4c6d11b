"""Properties of a node that only names and IR text need, such as its lines in the script and printed attributes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dumpsim.core.irdoc import SourceLine

__all__ = ["NodeText"]


@dataclass(eq=False, slots=True, kw_only=True)
class NodeText:
    """The text of a node; only pipelines that print graphs create it.

    Attributes
    ----------
    full_name : str
        The name in IR text and execution order, if it is not the node's. [spec observed 0.17]
    variable : str
        The variable that the result was assigned to; a node without one is printed as ``CNode_N``.
    instance_name : str or None
        Name of the primitive that the script called.
    primitive : str
        Type of the primitive in the front end, if it is not the kernel's.
    attrs : dict
        Primitive attributes that the script or the compiler has set, in addition to those of the operator.
    given : tuple of str
        Attributes that the caller has passed; the others have their defaults.
    node_attrs : dict
        Attributes of the node itself, which are printed separately.
    primal : dict
        Attributes of the node that are copied to the nodes of its backward pass.
    sources : tuple of SourceLine
        Lines of the script, innermost first.
    candidate : str
        See `IrNode.candidate`.
    call_scope : str or None
        Scope of the call whose body contains the node.
    block_scope : str or None
        Scope of the innermost branch or function that contains the node.
    constant_scope : str or None
        Scope of the constant with the primitive, if it is not the node's.
    formals : mapping of Node to object
        Operands that are formal parameters of a function that the vendor's parser creates from a loop, with a key for
        the loops of the script's function.
    forward : Node or None
        Of a node of a backward pass: the node of the forward pass whose gradient it belongs to.
    call_variable : str
        The variable to which the result of that call was assigned.
    passed : tuple of Node
        Arguments of the script's function whose result the node is, also those that it does not use.
    calls : int
        Number of enclosing calls that are inlined into a function that is differentiated.
    frame : int
        The same number for the function whose code has its operands. Branches of it that are decided at compile time do
        not count, nor do functions that only call the operator.
    is_backend : bool
        Whether the compiler's backend has created the node.
    is_remade : bool
        Whether the backend creates the node again, which uses up another number.
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
    forward: Any = None
    call_variable: str = ""
    passed: tuple[Any, ...] = ()
    calls: int = 0
    frame: int = 0
    is_backend: bool = False
    is_remade: bool = False
