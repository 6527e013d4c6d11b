"""The kernel of a node that gives a result of an ATen operator: the operator itself."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from dumpsim.frontends.torchair._extents import extent, extents
from dumpsim.frontends.torchair._ge import FxCall, GeNode, Ref

__all__ = ["Provided", "ResultKernel", "provided", "references", "result_kernel"]

Tensor = torch.Tensor


# types whose last output are indices, which GE has as int32
_INDICES = frozenset({"ArgMaxWithValue", "ArgMinWithValue", "MaxPoolWithArgmaxV1", "Sort", "TopKV2"})


@dataclass(frozen=True, slots=True)
class Pick:
    """What an output of a node is.

    Attributes
    ----------
    index : int
        Of the operator's result.
    added : tuple of int
        Dimensions of extent 1 that the node has and the result has not.
    narrow : bool
        Indices: GE has them as int32.
    """

    index: int
    added: tuple[int, ...] = ()
    narrow: bool = False


@dataclass(frozen=True, slots=True)
class Provided:
    """A node that computes an operator of ATen, and what its outputs are."""

    call: FxCall
    slots: Mapping[int, Pick]


def provided(call: FxCall) -> dict[str, dict[int, Pick]]:
    """The nodes of a call that compute its results, with what their outputs are."""
    given = references((call.arguments, call.keywords))
    own = {id(node) for node in call.nodes} - {id(one.node) for one in given}
    slots: dict[Ref, Pick] = {}
    for at, one in enumerate(call.results):
        is_tensor = at < len(call.values) and isinstance(call.values[at], Tensor)
        if isinstance(one, Ref) and id(one.node) in own and one.node.type != "Const" and is_tensor:
            slots.setdefault(one, Pick(at))
    for one in list(slots):
        while one.node.type in ("Cast", "Squeeze"):
            before = one.node.inputs[0]
            if before is None or id(before.node) not in own or before in slots or before.node.type == "Const":
                break
            pick = slots.pop(one)
            added = tuple(one.node.attrs["axis"]) if one.node.type == "Squeeze" else ()
            narrow = pick.narrow or (one.node.type == "Cast" and before.node.type in _INDICES)
            slots[before] = Pick(pick.index, (*pick.added, *added), narrow)
            one = before
    found: dict[str, dict[int, Pick]] = {}
    for one, pick in slots.items():
        found.setdefault(one.node.name, {})[one.index] = pick
    return found


def references(what: Any) -> list[Ref]:
    """The tensors among arguments."""
    if isinstance(what, Ref):
        return [what]
    if isinstance(what, dict):
        return [one for value in what.values() for one in references(value)]
    if isinstance(what, (list, tuple)):
        return [one for value in what for one in references(value)]
    return []


@dataclass(frozen=True, slots=True)
class _At:
    """A tensor of a call: an operand of the kernel."""

    index: int
    strides: tuple[int, ...] | None  # where the operator's result may depend on them


@dataclass(frozen=True, slots=True)
class _Unused:
    """A tensor without effect on the result."""

    shape: tuple[int, ...]
    dtype: torch.dtype


class ResultKernel:
    """Computes an operator of ATen from the operands of a node.

    Attributes
    ----------
    samples : list of torch.Tensor
        The node's outputs, without values.
    hidden : list of Ref
        Tensors of the operator that are no inputs of the node; they follow the inputs.
    """

    def __init__(
        self,
        function: Any,
        arguments: Any,
        keywords: Any,
        picks: Sequence[Pick],
        samples: list[Tensor],
        hidden: list[Ref],
    ) -> None:
        self.samples = samples
        self.hidden = hidden
        self._function = function
        self._arguments = arguments
        self._keywords = keywords
        self._picks = picks

    def __call__(self, *operands: Tensor, **attrs: Any) -> list[Tensor]:
        """The node's outputs."""
        made = self._function(*_filled(self._arguments, operands), **_filled(self._keywords, operands))
        results = list(made) if isinstance(made, (list, tuple)) else [made]
        found = []
        for pick, sample in zip(self._picks, self.samples, strict=True):
            one = results[pick.index]
            one = one.to(sample.dtype) if pick.narrow else one
            found.append(one.reshape(sample.shape) if pick.added else one)
        return found


def result_kernel(
    node: GeNode,
    own: Provided,
    sample: Callable[[Ref], Tensor],
    values: Mapping[str, Any],
    numbers: Callable[[Ref], int | None],
    sizes: Mapping[str, int],
) -> ResultKernel:
    """The kernel of a node that computes an operator.

    Parameters
    ----------
    node : GeNode
    own : Provided
    sample : callable
        A tensor of the graph without its values.
    values : mapping
        The nodes that are there, by name: others are no operands.
    numbers : callable
        What a symbol is in this program; None for a tensor.
    sizes : mapping of str to int
        Sizes of symbols.
    """
    call = own.call
    inputs = [one for one in node.inputs if one is not None and one.node.name in values]
    hidden: list[Ref] = []
    casts = {
        one.node.inputs[0]: one
        for one in inputs
        if one.node.type == "Cast" and any(one.node is made for made in call.nodes)
    }

    def placed(what: Any) -> Any:
        if isinstance(what, Ref):
            number = numbers(what)
            if number is not None:
                return number
            if what not in inputs and what in casts and _widens(sample(what).dtype, casts[what].node.attrs["dst_type"]):
                return _At(inputs.index(casts[what]), _strides(call, what, sample, sizes))
            if what in inputs:
                return _At(inputs.index(what), _strides(call, what, sample, sizes))
            if what.node.type == "Data" and what.node.name not in values:  # GE takes it out, since it has no effect
                value = call.seen[what]
                return _Unused(tuple(extents(value.shape, sizes)), value.dtype)
            if what not in hidden:
                hidden.append(what)
            return _At(len(inputs) + hidden.index(what), _strides(call, what, sample, sizes))
        if isinstance(what, torch.SymInt):
            return extent(what, sizes)
        if isinstance(what, (list, tuple)):
            return type(what)(placed(one) for one in what) if type(what) in (list, tuple) else [placed(o) for o in what]
        if isinstance(what, dict):
            return {key: placed(one) for key, one in what.items() if key not in ("device", "layout", "pin_memory")}
        return what

    arguments, keywords = placed(tuple(call.arguments)), placed(dict(call.keywords))
    function = call.function
    if node.type == "DropOutDoMask" and function is torch.ops.aten.native_dropout.default:
        function, arguments = _kept, (_At(0, None), _At(1, None), 1.0 - call.arguments[1])  # its mask is drawn once
        keywords, hidden = {}, []
    elif function is torch.ops.aten.max_pool2d_with_indices_backward.default:
        function, arguments = _unpooled, arguments[:-1]  # GE pools again: its graph does not take the indices
    picks = [own.slots.get(slot, _rest(node, own)) for slot in range(len(node.outputs))]
    samples = [_sampled(call.values[pick.index], pick, sizes) for pick in picks]
    return ResultKernel(function, arguments, keywords, picks, samples, hidden)


def _rest(node: GeNode, own: Provided) -> Pick:
    """What stands for an output that is no result: indices, or the last result."""
    last = len(own.call.values) - 1
    return Pick(last, (), node.type in _INDICES)


def _sampled(value: Any, pick: Pick, sizes: Mapping[str, int]) -> Tensor:
    """An output of a node without its values."""
    shape = list(extents(value.shape, sizes))
    rank = len(shape) + len(pick.added)
    for axis in sorted(axis % rank for axis in pick.added):
        shape.insert(axis, 1)
    return torch.empty(shape, dtype=torch.int32 if pick.narrow else value.dtype, device="meta")


def _unpooled(grad: Tensor, value: Tensor, kernel: Any, stride: Any, *further: Any) -> Tensor:
    """The gradient of a pooling, with indices found anew."""
    padding, dilation, ceil_mode = further
    indices = torch.ops.aten.max_pool2d_with_indices.default(value, kernel, stride, padding, dilation, ceil_mode)[1]
    made: Tensor = torch.ops.aten.max_pool2d_with_indices_backward.default(
        grad, value, kernel, stride, *further, indices
    )
    return made


def _kept(value: Tensor, mask: Tensor, keep: float) -> Tensor:
    """What dropout keeps, as torch computes it."""
    return value.mul(mask).mul_(1.0 / keep if keep else 0.0)


def _widens(source: torch.dtype, target: torch.dtype) -> bool:
    """Whether every number of a type keeps its value in another."""
    return torch.promote_types(source, target) == target and target != torch.bool


def _strides(
    call: FxCall, ref: Ref, sample: Callable[[Ref], Tensor], sizes: Mapping[str, int]
) -> tuple[int, ...] | None:
    """Strides that torch's operator sees, where they are not those of a contiguous tensor and may change its result."""
    if torch.Tag.pointwise in call.function.tags:
        return None
    value = call.seen.get(ref)
    if value is None:
        return None
    found = extents(value.stride(), sizes)
    return None if found == tuple(sample(ref).stride()) else found


def _filled(what: Any, operands: Sequence[Tensor]) -> Any:
    if isinstance(what, _At):
        tensor = operands[what.index]
        return tensor if what.strides is None else _laid(tensor, what.strides)
    if isinstance(what, _Unused):
        return torch.zeros(what.shape, dtype=what.dtype)
    if isinstance(what, (list, tuple)):
        return type(what)(_filled(one, operands) for one in what)
    if isinstance(what, dict):
        return {key: _filled(one, operands) for key, one in what.items()}
    return what


def _laid(tensor: Tensor, strides: Sequence[int]) -> Tensor:
    """A copy that lies in memory as the tensor of eager torch."""
    kept = tensor[tuple(slice(0, 1) if not one else slice(None) for one in strides)]
    made = torch.empty_strided(tuple(kept.shape), tuple(one or 1 for one in strides), dtype=tensor.dtype)
    return made.copy_(kept).expand(tensor.shape)
