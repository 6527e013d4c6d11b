"""The kernel of a node that returns a result of an ATen operator: the operator itself."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from dumpsim.frontends.torchair._extents import extent, extents
from dumpsim.frontends.torchair._ge import FxCall, GeNode, Ref
from dumpsim.frontends.torchair._product import FORMS, SUM, two
from dumpsim.frontends.torchair._strides import Strides
from dumpsim.frontends.torchair._writers import writer

__all__ = ["Provided", "ResultKernel", "provided", "references", "result_kernel"]

Tensor = torch.Tensor


# types whose last output is indices, which are int32 in GE
_INDICES = frozenset({"ArgMaxWithValue", "ArgMinWithValue", "MaxPoolWithArgmaxV1", "Sort", "TopKV2"})

# Operators that compute each element independently, with operations that IEEE 754 rounds correctly, or move elements.
# The others have code for vectors and code for single elements, which round in different ways.
_EXACT = frozenset(
    f"aten::{name}"
    for name in [
        "abs",
        "add",
        "alias",
        "bitwise_and",
        "bitwise_not",
        "bitwise_or",
        "clamp",
        "clone",
        "constant_pad_nd",
        "copy",
        "div",
        "eq",
        "expand",
        "ge",
        "gt",
        "le",
        "logical_and",
        "logical_not",
        "logical_or",
        "lt",
        "masked_fill",
        "maximum",
        "minimum",
        "mul",
        "ne",
        "neg",
        "permute",
        "relu",
        "reshape",
        "rsub",
        "select",
        "slice",
        "sqrt",
        "squeeze",
        "sub",
        "t",
        "threshold_backward",
        "transpose",
        "unsqueeze",
        "view",
        "where",
        "_to_copy",
        "_unsafe_view",
        "cat",
        "embedding",
        "index_select",
        "stack",
    ]
)


@dataclass(frozen=True, slots=True)
class Pick:
    """Which result of the operator an output of a node is.

    Attributes
    ----------
    index : int
        Index of the operator's result.
    added : tuple of int
        Dimensions of extent 1 that the output has and the result does not have.
    narrow : bool
        Whether the output is indices, which are int32 in GE.
    """

    index: int
    added: tuple[int, ...] = ()
    narrow: bool = False


@dataclass(frozen=True, slots=True)
class Provided:
    """A node that computes an operator of ATen; `slots` has the results by the node's outputs."""

    call: FxCall
    slots: Mapping[int, Pick]


def provided(call: FxCall) -> dict[str, dict[int, Pick]]:
    """Return the nodes of a call that compute its results, with the results by the nodes' outputs."""
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
    """Return the tensors in nested arguments."""
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
    strides: tuple[int, ...] | None = None  # if the operator's result may depend on them
    free: bool = False  # the result does not depend on the tensor's strides


@dataclass(frozen=True, slots=True)
class _Unused:
    """A tensor that has no effect on the result."""

    shape: tuple[int, ...]
    dtype: torch.dtype


class ResultKernel:
    """Computes an operator of ATen from the operands of a node.

    Attributes
    ----------
    samples : list of torch.Tensor
        The node's outputs, without values.
    hidden : list of Ref
        Tensors of the operator that are not inputs of the node; they follow the inputs.
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
        """Compute the node's outputs."""
        made = self._function(*_filled(self._arguments, operands), **_filled(self._keywords, operands))
        results = list(made) if isinstance(made, (list, tuple)) else [made]
        found = []
        for pick, sample in zip(self._picks, self.samples, strict=True):
            one = results[pick.index]
            if one is None:
                found.append(torch.empty(0))
                continue
            one = one.to(sample.dtype) if pick.narrow else one
            found.append(one.reshape(sample.shape) if pick.added else one)
        return found

    def bind(
        self, operands: Sequence[Tensor], views: Mapping[int, Tensor], out: Tensor | None
    ) -> tuple[Callable[[], Any], set[int], bool]:
        """Bind the kernel to tensors whose memory is the same in every run.

        Parameters
        ----------
        operands : sequence of torch.Tensor
            Tensors on the device's memory.
        views : mapping of int to torch.Tensor
            Operands whose elements can also be read from other memory, by index.
        out : torch.Tensor or None
            The output on the device's memory, if there is exactly one.

        Returns
        -------
        (callable, set of int, bool)
            The function that returns the node's outputs; the operands that it reads from the device's memory; whether
            it writes the output there.
        """
        filling = _Filling(operands, views)
        arguments, keywords = filling.filled(self._arguments), filling.filled(self._keywords)
        function = getattr(self._function, "_op", self._function)
        call: Callable[[], Any] = partial(function, *arguments, **keywords)
        writing = None
        if tuple(self._picks) != (Pick(0),) or self._is_several:
            call = partial(self._picked, call)
        elif out is not None and out.dtype == self.samples[0].dtype:
            writing = writer(self._function, arguments, keywords, out)
        call = call if writing is None else writing
        call = partial(_after, filling.copies, call) if filling.copies else call
        return call, filling.read, writing is not None

    @property
    def transposed(self) -> bool:
        """Whether the kernel computes a matrix column by column."""
        return self._function is two and self._arguments[2] is True

    @property
    def _is_several(self) -> bool:
        """Whether the operator returns several results."""
        schema = getattr(self._function, "_schema", None)
        return schema is not None and (len(schema.returns) > 1 or isinstance(schema.returns[0].type, torch.ListType))

    def _picked(self, call: Callable[[], Any]) -> list[Tensor]:
        """Return the operator's results that are outputs of the node."""
        made = call()
        results = made if isinstance(made, (list, tuple)) else [made]
        return [results[pick.index] for pick in self._picks]


class _Filling:
    """Puts tensors into the arguments of an operator, once for all runs."""

    def __init__(self, operands: Sequence[Tensor], views: Mapping[int, Tensor]) -> None:
        self._operands = operands
        self._views = views
        self.read: set[int] = set()  # operands that are read from memory
        self.copies: list[tuple[Tensor, Tensor]] = []  # targets with the strides of eager torch, and sources

    def filled(self, what: Any) -> Any:
        """Replace references in arguments by tensors."""
        if isinstance(what, _At):
            return self._tensor(what)
        if isinstance(what, (list, tuple)):
            return type(what)(self.filled(one) for one in what)
        if isinstance(what, dict):
            return {key: self.filled(one) for key, one in what.items()}
        return _filled(what, self._operands)

    def _tensor(self, what: _At) -> Tensor:
        tensor, view = self._operands[what.index], self._views.get(what.index)
        if view is not None and (what.free or _has_strides(view, what.strides)):
            return view if what.strides is None else view.as_strided(tuple(view.shape), what.strides)
        self.read.add(what.index)
        if what.strides is None:
            return tensor
        source, target = _strided_like(tensor, what.strides)
        self.copies.append((target, source))
        return target.expand(tensor.shape)


def _after(copies: Sequence[tuple[Tensor, Tensor]], call: Callable[[], Any]) -> Any:
    """Copy tensors, and return the result of `call`."""
    for target, source in copies:
        target.copy_(source)
    return call()


def _has_strides(tensor: Tensor, strides: Sequence[int] | None) -> bool:
    """Return whether a tensor has the given strides along the dimensions with more than one element."""
    if strides is None:
        return tensor.is_contiguous()
    found = zip(tensor.shape, tensor.stride(), strides, strict=True)
    return all(extent == 1 or own == wanted for extent, own, wanted in found)


def result_kernel(
    node: GeNode,
    own: Provided,
    sample: Callable[[Ref], Tensor],
    values: Mapping[str, Any],
    numbers: Callable[[Ref], int | float | None],
    sizes: Mapping[str, int],
    strides: Strides,
) -> ResultKernel:
    """Return the kernel of a node that computes an operator.

    Parameters
    ----------
    node : GeNode
    own : Provided
    sample : callable
        Returns a tensor of the graph without its values.
    values : mapping
        Nodes that can be operands, by name.
    numbers : callable
        Returns the value of a symbol in this program; None for a tensor.
    sizes : mapping of str to int
        Sizes of symbols.
    strides : Strides
        Strides of the captured graph's tensors.
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
                return _At(inputs.index(casts[what]), *_strides_seen(call, what, sample, sizes, strides))
            if what in inputs:
                return _At(inputs.index(what), *_strides_seen(call, what, sample, sizes, strides))
            if what.node.type == "Data" and what.node.name not in values:  # GE removes it, since it has no effect
                value = call.seen[what]
                return _Unused(tuple(extents(value.shape, sizes)), value.dtype)
            if what not in hidden:
                hidden.append(what)
            return _At(len(inputs) + hidden.index(what), *_strides_seen(call, what, sample, sizes, strides))
        if isinstance(what, torch.SymInt):
            return extent(what, sizes)
        if isinstance(what, (list, tuple)):
            return type(what)(placed(one) for one in what) if type(what) in (list, tuple) else [placed(o) for o in what]
        if isinstance(what, dict):
            return {key: placed(one) for key, one in what.items() if key not in ("device", "layout", "pin_memory")}
        return what

    arguments, keywords = placed(tuple(call.arguments)), placed(dict(call.keywords))
    function = call.function
    if call.form is not None and function in (torch.ops.aten.matmul.default, torch.ops.aten.mm.default):
        name, *needed = call.form
        function, arguments = FORMS[name], (*arguments, *placed(needed))
    elif call.form is not None and call.form[0] == SUM and function is torch.ops.aten.sum.dim_IntList:
        function, arguments, keywords = FORMS[SUM], placed(call.form[1:]), {}
    elif node.type == "DropOutDoMask" and function is torch.ops.aten.native_dropout.default:
        function, arguments = _apply_mask, (_At(0), _At(1), 1.0 - call.arguments[1])  # mask of another node
        keywords, hidden = {}, []
    elif node.type == "StatelessDropOutGenMask" and function is torch.ops.aten.native_dropout.default:
        function = _draw_mask
    elif function is torch.ops.aten.native_dropout_backward.default:
        function = _dropout_gradient
    elif function is torch.ops.aten.native_layer_norm_backward.default:
        function = _layer_norm_gradient
    elif function is torch.ops.aten.max_pool2d_with_indices_backward.default:
        function, arguments = _max_pool_gradient, arguments[:-1]  # GE's node takes no indices and pools again
    picks = [own.slots.get(slot, _rest(node, own)) for slot in range(len(node.outputs))]
    samples = [_sampled(call.values[pick.index], pick, sizes) for pick in picks]
    return ResultKernel(function, arguments, keywords, picks, samples, hidden)


def _rest(node: GeNode, own: Provided) -> Pick:
    """Return the result for an output that is not one of the call: indices, or the last result."""
    last = len(own.call.values) - 1
    return Pick(last, (), node.type in _INDICES)


def _sampled(value: Any, pick: Pick, sizes: Mapping[str, int]) -> Tensor:
    """Return an output of a node without its values; one that torch does not compute has no elements."""
    if value is None:
        return torch.empty(0, device="meta")
    shape = list(extents(value.shape, sizes))
    rank = len(shape) + len(pick.added)
    for axis in sorted(axis % rank for axis in pick.added):
        shape.insert(axis, 1)
    return torch.empty(shape, dtype=torch.int32 if pick.narrow else value.dtype, device="meta")


def _max_pool_gradient(grad: Tensor, value: Tensor, kernel: Any, stride: Any, *further: Any) -> Tensor:
    """Compute the gradient of a pooling, with the indices of another pooling of the same input."""
    padding, dilation, ceil_mode = further
    indices = torch.ops.aten.max_pool2d_with_indices.default(value, kernel, stride, padding, dilation, ceil_mode)[1]
    made: Tensor = torch.ops.aten.max_pool2d_with_indices_backward.default(
        grad, value, kernel, stride, *further, indices
    )
    return made


def _draw_mask(value: Tensor, share: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Apply dropout with a bit mask: first element in the lowest bit, padded to a multiple of 128 elements."""
    made, mask = torch.ops.aten.native_dropout.default(value, share, train)
    packed = np.zeros((value.numel() + 127) // 128 * 16, dtype=np.uint8)
    bits = np.packbits(mask.numpy(), axis=None, bitorder="little")
    packed[: bits.size] = bits
    return made, torch.from_numpy(packed)


def _mask_of(bits: Tensor, like: Tensor) -> Tensor:
    """Unpack a bit mask."""
    found = np.unpackbits(bits.numpy(), count=like.numel(), bitorder="little")
    return torch.from_numpy(found.astype(np.bool_)).reshape(like.shape)


def _apply_mask(value: Tensor, bits: Tensor, keep: float) -> Tensor:
    """Apply a dropout mask as torch does."""
    return value.mul(_mask_of(bits, value)).mul_(1.0 / keep if keep else 0.0)


def _dropout_gradient(grad: Tensor, bits: Tensor, scale: float) -> Tensor:
    """Compute the gradient of dropout."""
    mask = bits if bits.dtype == torch.bool else _mask_of(bits, grad)
    made: Tensor = torch.ops.aten.native_dropout_backward.default(grad, mask, scale)
    return made


def _layer_norm_gradient(
    grad: Tensor, value: Tensor, shape: Any, mean: Tensor, scale: Tensor, weight: Any, *last: Any
) -> Any:
    """Compute the gradient of a layer norm; torch requires the statistics in the weights' type if that is wider."""
    kind = mean.dtype if weight is None else torch.promote_types(mean.dtype, weight.dtype)
    return torch.ops.aten.native_layer_norm_backward.default(
        grad, value, shape, mean.to(kind), scale.to(kind), weight, *last
    )


def _widens(source: torch.dtype, target: torch.dtype) -> bool:
    """Return whether every value of a type exists in another."""
    return torch.promote_types(source, target) == target and target != torch.bool


def _strides_seen(
    call: FxCall, ref: Ref, sample: Callable[[Ref], Tensor], sizes: Mapping[str, int], strides: Strides
) -> tuple[tuple[int, ...] | None, bool]:
    """Return the strides with which torch's operator gets a tensor, and whether its result never depends on them.

    The strides are None if they are those of `sample` or if the result does not depend on them.
    """
    if call.function.name().partition(".")[0] in _EXACT:
        return None, True
    found = strides.of(call.seen[ref], sizes)
    return (None if found == tuple(sample(ref).stride()) else found), False


def _filled(what: Any, operands: Sequence[Tensor]) -> Any:
    if isinstance(what, _At):
        tensor = operands[what.index]
        return tensor if what.strides is None else _with_strides(tensor, what.strides)
    if isinstance(what, _Unused):
        return torch.zeros(what.shape, dtype=what.dtype)
    if isinstance(what, (list, tuple)):
        return type(what)(_filled(one, operands) for one in what)
    if isinstance(what, dict):
        return {key: _filled(one, operands) for key, one in what.items()}
    return what


def _with_strides(tensor: Tensor, strides: Sequence[int]) -> Tensor:
    """Copy a tensor to memory with the given strides."""
    source, target = _strided_like(tensor, strides)
    return target.copy_(source).expand(tensor.shape)


def _strided_like(tensor: Tensor, strides: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return a tensor without its repeated elements (stride 0), and an empty tensor for them with the strides."""
    source = tensor[tuple(slice(0, 1) if not one else slice(None) for one in strides)]
    return source, torch.empty_strided(tuple(source.shape), tuple(one or 1 for one in strides), dtype=tensor.dtype)
