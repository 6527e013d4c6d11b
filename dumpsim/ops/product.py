"""Products of vectors and matrices beyond MatMul, also with an added term, and Einsum."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract
from dumpsim.core.errors import ScriptValueError, UnsupportedError
from dumpsim.ops.gradient import shape_of, unbroadcast
from dumpsim.ops.opdef import Grad, GradBuilder, Infer, OpDef
from dumpsim.ops.rules import constant, is_spread, output, same_dtype, tensor_of, tensors_in, vector

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]


def _infer(op: str, names: tuple[str, str], letters: str) -> Infer:
    """Return the rule of two tensors whose axes are `letters`, as in ``ab,bc->ac``."""
    left, right = letters.split("->")[0].split(",")

    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x, y = (tensor_of(op, abstracts[at], names[at]) for at in range(2))
        sizes: dict[str, int] = {}
        for tensor, axes in ((x, left), (y, right)):
            if len(tensor.shape) != len(axes) or any(
                sizes.setdefault(letter, n) != n for letter, n in zip(axes, tensor.shape, strict=True)
            ):
                raise ScriptValueError(
                    f"For '{op}', the shapes of '{names[0]}' and '{names[1]}' do not fit: {vector(x.shape)} and "
                    f"{vector(y.shape)}."
                )
        kind = same_dtype(op, {names[0]: x, names[1]: y})
        return output(kind, tuple(sizes[letter] for letter in letters.split("->")[1]))

    return infer


def _letters(b: GradBuilder, equation: str, *tensors: Any) -> Any:
    return b.emit("Einsum", tuple(tensors), equation=equation)


def _grad(letters: str) -> Grad:
    sides, result = letters.split("->")
    left, right = sides.split(",")

    def grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
        x, y = operands
        dx = _letters(b, f"{result},{right}->{left}", dout, y)
        return dx, _letters(b, f"{left},{result}->{right}", x, dout)

    return grad


def _pair(name: str, names: tuple[str, str], letters: str, *, prim_func: bool = True) -> OpDef:
    return OpDef(
        name=name,
        operands=names,
        infer=_infer(name, names, letters),
        kernel=lambda x, y: np.einsum(letters, x, y, optimize=True),
        grad=_grad(letters),
        prim_func=prim_func,
        input_names=[] if prim_func else list(names),
        output_names=[] if prim_func else ["y"],
    )


def _infer_added(op: str, names: tuple[str, str], letters: str) -> Infer:
    of_pair = _infer(op, names, letters)

    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x, result = tensor_of(op, abstracts[0], "input"), of_pair(abstracts[1:3], attrs)
        whole = tensor_of(op, result, "output")
        if not is_spread(x.shape, whole.shape):
            raise ScriptValueError(
                f"For '{op}', 'input' {vector(x.shape)} must broadcast to the product {vector(whole.shape)}."
            )
        return whole

    return infer


def _grad_added(letters: str) -> Grad:
    of_pair = _grad(letters)

    def grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
        x, one, two, beta, alpha = operands

        def scaled(slope: Any, factor: Any) -> Any:
            number = constant(factor)
            return slope if number == 1 else b.emit("Mul", slope, np.asanyarray(number, slope.abstract.dtype.numpy))

        first = unbroadcast(b, scaled(dout, beta), shape_of(x), shape_of(out))
        slopes = of_pair(b, (one, two), out, scaled(dout, alpha), attrs)
        return [first, *slopes, None, None]

    return grad


def _added(name: str, names: tuple[str, str], letters: str) -> OpDef:
    def kernel(x: Array, one: Array, two: Array, beta: float = 1, alpha: float = 1) -> Array:
        whole = np.einsum(letters, one, two, optimize=True)
        return np.asanyarray(np.asanyarray(beta, x.dtype) * x + np.asanyarray(alpha, x.dtype) * whole)

    return OpDef(
        name=name,
        operands=("input", *names, "beta", "alpha"),
        defaults=(1, 1),
        infer=_infer_added(name, names, letters),
        kernel=kernel,
        grad=_grad_added(letters),
        prim_func=True,
    )


def _infer_einsum(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    tensors = tensors_in("Einsum", abstracts[0], "inputs")
    kind = same_dtype("Einsum", {f"inputs[{at}]": tensor for at, tensor in enumerate(tensors)})
    equation = attrs["equation"].replace(" ", "")
    shapes = [tensor.shape for tensor in tensors]
    known = _of_letters(equation, shapes)
    if known is not None:
        return output(kind, known)
    if any(-1 in shape for shape in shapes):
        raise UnsupportedError(f"the equation {attrs['equation']!r} for shapes {shapes}", where="Einsum")
    try:
        # only the shapes matter: broadcast arrays need no memory
        empty = [np.broadcast_to(np.int8(0), shape) for shape in shapes]
        shape = np.einsum(equation, *empty, optimize=True).shape
    except (ValueError, TypeError) as error:
        raise ScriptValueError(
            f"For 'Einsum', the equation {attrs['equation']!r} does not fit shapes {shapes}: {error}."
        ) from None
    return output(kind, shape)


def _of_letters(equation: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Return the shape of the result of ``ab,bc->ac``; None for other forms and for shapes that do not fit."""
    sides, arrow, result = equation.partition("->")
    terms = sides.split(",")
    if not arrow or "." in equation or [len(term) for term in terms] != [len(shape) for shape in shapes]:
        return None
    extents: dict[str, int] = {}
    for letter, n in zip("".join(terms), (n for shape in shapes for n in shape), strict=True):
        before = extents.setdefault(letter, n)
        if before == 1 or (before == -1 and n != 1):
            extents[letter] = n
        elif n not in (1, -1, before):
            return None
    if len(set(result)) != len(result) or not set(result) <= set(extents):
        return None
    return tuple(extents[letter] for letter in result)


def _einsum(inputs: Sequence[Array], *, equation: str) -> Array:
    return np.asanyarray(np.einsum(equation.replace(" ", ""), *inputs, optimize=True))


def _grad_einsum(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """The gradient of each operand is an Einsum of `dout` and the other operands; its own summed letters are ones."""
    tensors = tuple(operands[0])
    equation = attrs["equation"].replace(" ", "")
    if (
        "->" not in equation
        or "." in equation
        or any(len(set(t)) != len(t) for t in equation.split("->")[0].split(","))
    ):
        raise UnsupportedError(f"the gradient of the equation {equation!r}", where="Einsum")
    sides, result = equation.split("->")
    terms = sides.split(",")
    slopes = []
    for at, term in enumerate(terms):
        others = [(letters, tensor) for k, (letters, tensor) in enumerate(zip(terms, tensors, strict=True)) if k != at]
        known = set(result).union(*(letters for letters, _ in others))
        alone = "".join(letter for letter in term if letter not in known)
        extra = []
        if alone:
            shape = tuple(n for letter, n in zip(term, shape_of(tensors[at]), strict=True) if letter in alone)
            extra = [(alone, np.ones(shape, dout.abstract.dtype.numpy))]
        pairs = [(result, dout), *others, *extra]
        slopes.append(_letters(b, ",".join(p[0] for p in pairs) + f"->{term}", *(p[1] for p in pairs)))
    return (tuple(slopes),)


OPS = (
    _pair("Mm", ("input", "mat2"), "ab,bc->ac"),
    _pair("Mv", ("input", "vec"), "ab,b->a"),
    _pair("Dot", ("input", "other"), "a,a->"),
    _pair("Outer", ("input", "vec2"), "a,b->ab"),
    _pair("Ger", ("x1", "x2"), "a,b->ab", prim_func=False),
    _added("Addmm", ("mat1", "mat2"), "ab,bc->ac"),
    _added("Addmv", ("mat", "vec"), "ab,b->a"),
    _added("Addbmm", ("batch1", "batch2"), "nab,nbc->ac"),
    _added("Baddbmm", ("batch1", "batch2"), "nab,nbc->nac"),
    OpDef(
        name="Einsum",
        operands=("inputs",),
        infer=_infer_einsum,
        kernel=_einsum,
        grad=_grad_einsum,
        attrs={"equation": ""},
        input_names=["inputs"],
        output_names=["output"],
    ),
)
