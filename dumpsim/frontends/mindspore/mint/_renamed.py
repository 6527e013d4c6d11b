"""Functions of ``mindspore.ops`` with other argument names, generated from rows of text."""

import ast
import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._api import mint_function
from dumpsim.frontends.mindspore.common._operandtypes import takes
from dumpsim.frontends.mindspore.common._overloads import overloaded

__all__ = ["checked", "find", "renamed", "signature_of"]

# functions of mint that pass their arguments on to a primitive; the operator that runs here may be another one
_PRIMITIVES = """
acos arccos: AcosExt
acosh arccosh: AcoshExt
asin arcsin: AsinExt
asinh arcsinh: AsinhExt
atan arctan: AtanExt
atan2 arctan2: Atan2Ext
exp2: Exp2
frac: Frac
log10: Log10
log2: Log2
logaddexp: LogAddExp
addmm: Addmm
all: ReduceAll
amax: ReduceMax
amin: ReduceMin
argmin: ArgMinExt
argsort: ArgSort
baddbmm: Baddbmm
broadcast_to: BroadcastToView
clone: Clone
count_nonzero: CountNonZero
cumsum: CumsumExt
dot: Dot
full: FillScalar
flip: ReverseV2
full_like: FullLike
index_select: IndexSelect
logsumexp: LogSumExp
mean: MeanExt
mm: Mm
ones_like: OnesLikeExt
permute: TransposeView
prod: ProdExt
sort: SortExt
squeeze: Squeeze
stack: StackExt
std: Std
sum: SumExt
t: TExt
topk: TopkExt
trace: TraceExt
tril: TrilExt
var: Var
zeros_like: ZerosLikeExt
nn.functional.layer_norm: LayerNormExt
nn.functional.leaky_relu: LeakyReLUExt
nn.functional.mse_loss: MSELossExt
"""
_OVERLOADED = ("clamp", "floor_divide", "lerp", "lt", "repeat_interleave", "xlogy")


@cache
def _primitives() -> dict[str, str]:
    rows = (row.partition(": ") for row in _PRIMITIVES.strip().splitlines())
    return {name: op_type for names, _, op_type in rows for name in names.split()}


@cache
def checked(path: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of ``mint`` that checks its arguments op by op, as the vendor's primitive does.

    Parameters
    ----------
    path : str
        Its name in ``mint``: ``acos``, ``nn.functional.elu``.
    function : callable
    """
    if path in _OVERLOADED:
        return overloaded(f"mint.{path}")(function)
    op_type = _primitives().get(path)
    return function if op_type is None else takes(op_type)(function)


@cache
def find(name: str, space: str, rows: str) -> Callable[..., Any] | None:
    """Return the function of a name in the rows of text or in the table of public names, or None.

    Parameters
    ----------
    name : str
    space : str
        The prefix of the public name: "" or ``nn.functional.``.
    rows : str

    Examples
    --------
    >>> from dumpsim.frontends.mindspore import Tensor
    >>> total = find("total", "", "total(input, dim=None): sum(input, dim)")
    >>> total(Tensor([[1.0, 2.0]]), dim=1).asnumpy()
    array([3.], dtype=float32)
    """
    row = next((row for row in rows.splitlines() if row.startswith(f"{name}(")), None)
    if row is not None:
        return renamed(row)
    same = mint_function(space + name)
    return None if same is None else getattr(ops, same)


def renamed(row: str) -> Callable[..., Any]:
    """Generate the function of one row, ``cumsum(input, dim, dtype=None): cumsum(x, axis, dtype)``."""
    head, _, tail = row.partition("): ")
    name, _, arguments = head.partition("(")
    called, _, names = tail.rstrip(")").partition("(")
    target = getattr(ops, called)
    signature, target_signature = signature_of(arguments), inspect.signature(target)
    theirs = dict(zip(signature.parameters, names.split(", "), strict=True))

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"mint.{name}: {error}") from None
        bound.apply_defaults()
        passed = target_signature.bind(**{theirs[key]: value for key, value in bound.arguments.items()})
        return target(*passed.args, **passed.kwargs)  # by position, as in a script: an API dump records positions

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``{name}{signature}``: `ops.{called}`."
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def signature_of(arguments: str) -> inspect.Signature:
    """Parse ``input, dim=None`` into a signature; defaults must not contain commas.

    Examples
    --------
    >>> str(signature_of("input, dim=None"))
    '(input, dim=None)'
    """
    return inspect.Signature([_parameter(text) for text in arguments.split(", ") if text])


def _parameter(text: str) -> inspect.Parameter:
    name, equals, default = text.partition("=")
    value = ast.literal_eval(default) if equals else inspect.Parameter.empty
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=value)
