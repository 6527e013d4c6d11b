"""The definition of an operator: kernel, shape and type rule, gradient rule and IR attributes.

An ops module exports a frozen table ``OPS: tuple[OpDef, ...]``; `dumpsim.ops.table` finds the module of an operator
type and loads it on first use.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from dumpsim.core.abstract import Abstract
from dumpsim.ops.openshape import has_open, infer_open

if TYPE_CHECKING:
    from dumpsim.ops.bounds import Bounds

__all__ = ["Emitter", "GradBuilder", "OpDef", "Symbol"]


class Symbol(Protocol):
    """A value of a graph as a gradient rule sees it: only its type is known."""

    @property
    def abstract(self) -> Abstract: ...


class Emitter(Protocol):
    """Emits the nodes of an expansion; implemented in `dumpsim.graph`."""

    def emit(self, op_type: str, *operands: Any, **attrs: Any) -> Any:
        """Add a node and return its output (a symbol).

        Operands are symbols, host constants (numbers, tuples of numbers, DType, None), numpy arrays (constant
        tensors) and, for operators that take a tuple of tensors, Python tuples of symbols.
        """
        ...

    def item(self, value: Any, index: int) -> Any:
        """Return output `index` of a node with several outputs."""
        ...


class GradBuilder(Emitter, Protocol):
    """Emits the nodes of a gradient."""

    @property
    def in_graph(self) -> bool:
        """Whether the vendor builds the gradient in GRAPH mode."""
        ...

    def choose(self, condition: Any, one: Callable[[], Any], other: Callable[[], Any]) -> Any:
        """Return the tensor that `one` emits if the condition holds, else that of `other`, of the same type."""
        ...


Infer = Callable[[Sequence[Abstract], Mapping[str, Any]], Abstract]
Kernel = Callable[..., Any]
Largest = Callable[[Sequence[tuple[int, ...]]], tuple[int, ...]]
Grad = Callable[[GradBuilder, Sequence[Any], Any, Any, Mapping[str, Any]], Sequence[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpDef:
    """An operator type.

    Attributes
    ----------
    name : str
        Type as the vendor prints it, ``MatMul``.
    operands : tuple of str
        Names of the node's operands in order. Operands are tensors or host constants (numbers, tuples, types);
        operators that the vendor defines by yaml take their settings as operands (``MatMul(x, w, transpose_a,
        transpose_b)``), older ones as `attrs`. Operators of several tensors (``AddN``, ``Concat``, ``Stack``) take
        one operand that is a tuple; IR text shows it flattened.
    defaults : tuple
        Values of trailing operands that a caller omits.
    infer : callable
        ``infer(abstracts, attrs) -> Abstract``: type of the output; a TupleType for several outputs. Constants
        carry their value in the abstract. Raises ScriptValueError/ScriptTypeError for invalid shapes and types, as the
        vendor does. Callers use `output_type`, which also takes operands with open extents (-1).
    kernel : callable
        ``kernel(*operands, **attrs)`` -> array or tuple of arrays. Tensors arrive as numpy arrays, constants as
        Python values. Low-precision operands (float16, bfloat16) arrive widened to float32 and the device narrows
        the result, with the overflow rule of its chip. Kernels never write their operands, unless `updates` names
        them. Results have the inferred shape and number type (float32 if the inferred type is float16 or
        bfloat16), may be views of operands and need not be contiguous. Kernels preserve subclasses of arrays
        (``np.asanyarray``), so that `dumpsim.replay` can propagate bounds of rounding errors.
    grad : callable or None
        ``grad(b, operands, out, dout, attrs)`` -> one entry per operand: the symbol of its gradient, or None.
        Operands have the form of those of `GradBuilder.emit`; a tuple operand gets a tuple of gradients. `out` is the
        operator's output; for several outputs it is a tuple (use `b.item`), and `dout` has their gradients (use
        `dumpsim.ops.gradient.part`). If `grad` is None, taking the gradient is an error, unless `stop` is set, which
        means that the gradient is zero.
    attrs : mapping
        Attributes with their defaults: keyword arguments of the kernel, and primitive attributes of the IR text, except
        those whose names begin with an underscore.
    fixed : mapping
        Primitive attributes that the IR text shows but the kernel does not take (``side_effect_mem``); a callable
        ``(abstracts, output, attrs) -> value`` for those that follow from the operands (``pad_list``). See
        `dumpsim.ops.printed`.
    promotes : tuple of int
        Operands that the vendor converts to one number type before the operator, by nodes ``Cast``; see
        `dumpsim.ops.promotion`.
    mixed : tuple of int
        Operands that may have different number types: tensors are unchanged, host numbers become constant tensors of
        Int32, Float32 or Bool. These operators have a twin for numbers (Mul and Muls, Equal and EqScalar).
        [observed 2.10]
    prim_func : bool
        Defined by yaml in the real system: printed as ``PrimFunc_<name>``.
    updates : tuple of int
        Operands that the kernel writes in place (``ApplyMomentum``: 0 and 1). Such kernels get writable views.
    alias : mapping of int to int
        Output slot -> operand whose buffer it is (views such as Reshape, and updated operands).
    view : bool
        No kernel runs; the output is the operand's bytes (Reshape, Flatten). [spec observed 1.2]
    side_effect : str or None
        ``mem`` or ``io``: the operator takes and returns a monad.
    stop : bool
        Gradients end here (comparisons, ArgMax, random masks).
    input_names, output_names : list or tuple of str
        The primitive attributes of the same names, empty if the vendor has none. Primitives created in Python show
        a list (``[x, w]``), those created by a gradient rule a tuple (``(x, w)``).
    branches : bool
        The gradient rule has a branch: the vendor does not inline its function where that is called more than once.
    composite : bool
        Never part of a kernel graph: the compiler expands it (`dumpsim.ops.expand`); PYNATIVE runs the kernel.
    random : bool
        The kernel takes a keyword `counter`, the number of earlier runs of this node, so that each step draws different
        numbers.
    device : bool
        The kernel takes a keyword `device`, the device that runs it, and its operands in their stored types, without
        widening.
    targets : tuple of str
        Device targets whose graphs have a kernel for it; empty means all.
    unwritten : mapping of str to tuple of int
        Device target -> outputs that the vendor's kernel never writes there; they read as zeros.
    ignored : mapping of str to tuple of str
        Device target -> attributes that the vendor's kernel ignores there.
    formats : mapping
        Private device formats on chips that use them: ``{"in": {0: "NC1HWC0", 1: "FRACTAL_Z"}, "out": {0:
        "NC1HWC0"}}``.
    largest : callable or None
        For an operator whose values decide the shape of its first output: ``largest(shapes)`` returns the shape of the
        largest possible result for operands of these shapes.
    bounds : callable or None
        For an operator that takes indices: ``bounds(*operands, **attrs)`` returns the first one that is out of range,
        see `dumpsim.ops.bounds`. The kernel itself reads zeros at such indices and writes nothing there.
    batched : bool
        The kernel may take the operands of several ranks at once: each stacked on a leading axis, followed by axes of
        extent 1 if other operands have more axes. Its result is stacked too, bit-identical to separate calls.
    unseen : int
        Number of trailing operands that listeners do not see: the vendor's kernel does not take them, ours needs them.
    engine : str
        ``aicore``, ``aicpu``, ``hccl`` or ``host``. [spec parallel 4.1]
    flops : callable or None
        ``flops(abstracts, attrs)`` for the virtual clock; None counts elements.
    """

    name: str
    operands: tuple[str, ...]
    infer: Infer
    kernel: Kernel
    grad: Grad | None = None
    defaults: tuple[Any, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    promotes: tuple[int, ...] = ()
    mixed: tuple[int, ...] = ()
    prim_func: bool = False
    updates: tuple[int, ...] = ()
    alias: Mapping[int, int] = field(default_factory=dict)
    view: bool = False
    side_effect: str | None = None
    stop: bool = False
    branches: bool = False
    composite: bool = False
    random: bool = False
    device: bool = False
    targets: tuple[str, ...] = ()
    input_names: Sequence[str] = ()
    output_names: Sequence[str] = ()
    unwritten: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    ignored: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    formats: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    largest: Largest | None = None
    bounds: "Bounds | None" = None
    batched: bool = False
    unseen: int = 0
    engine: str = "aicore"
    flops: Callable[[Sequence[Abstract], Mapping[str, Any]], int] | None = None

    def output_type(self, abstracts: Sequence[Abstract], attrs: Mapping[str, Any]) -> Abstract:
        """Return what `infer` gives; extents that follow from open ones are open."""
        if has_open(abstracts):
            return infer_open(self.name, self.infer, abstracts, attrs)
        return self.infer(abstracts, attrs)
