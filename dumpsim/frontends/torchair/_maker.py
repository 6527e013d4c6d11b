"""Functions for the converters' rules: they make nodes of GE and read types and shapes. [spec aten 9.4]"""

import math
from collections.abc import Callable, Collection, Sequence
from functools import partial
from types import CodeType, MappingProxyType
from typing import Any

import torch
from torch._prims_common import get_higher_dtype, type_to_dtype

from dumpsim.frontends.torchair import _composites, _convolution
from dumpsim.frontends.torchair._ge import GE_NUMBERS, GeGraph, Ref, SymbolList
from dumpsim.frontends.torchair._refusals import Refused

__all__ = ["Maker", "run_rule"]

# number of outputs of types that have several, if the attributes do not determine it [spec aten 9.4]
_OUTPUTS = MappingProxyType(
    {
        "ArgMaxWithValue": 2,
        "ArgMinWithValue": 2,
        "BN3DTrainingUpdateGrad": 2,
        "BNTrainingUpdateGrad": 2,
        "BatchNormV3": 5,
        "EmbeddingBag": 4,
        "GridSampler2DGrad": 2,
        "GroupNorm": 3,
        "LayerNormGradV3": 3,
        "LayerNormV4": 3,
        "MaxPool3DWithArgmaxV2": 2,
        "MaxPoolWithArgmaxV1": 2,
        "NLLLoss": 2,
        "PReluGrad": 2,
        "Sort": 2,
        "TopKV2": 2,
    }
)
# number of inputs of types whose last inputs are optional [spec aten 9.3]
_INPUTS = MappingProxyType(
    {
        "AscendAntiQuantV2": 3,
        "Conv2D": 4,
        "Conv3D": 4,
        "Conv2DTranspose": 5,
        "Conv3DTranspose": 5,
        "EmbeddingBag": 4,
        "NLLLoss": 3,
    }
)
# inputs that the prototypes of node types declare as indices: a number there is int64 [source ge raw ops 2.14.0]
_INDICES = MappingProxyType(
    {
        "AsStrided": (1, 2, 3),
        "ConcatV2": (-1,),
        "Conv2DTranspose": (0,),
        "Gather": (1,),
        "GatherElements": (1,),
        "GatherV2": (1, 2),
        "LinSpace": (2,),
        "StatelessBernoulli": (0,),
        "StatelessDropOutGenMask": (0, 2, 3),
        "StridedSliceV2": (1, 2, 3, 4),
        "ViewCopy": (1, 2, 3, 5, 6, 7),
        **dict.fromkeys(("BroadcastTo", "Cumsum", "ExpandDims", "MirrorPad", "PadV3", "PadV3Grad"), (1,)),
        **dict.fromkeys(("ReduceAll", "ReduceAny", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin"), (1,)),
        **dict.fromkeys(("ReduceProd", "ReduceSum", "Reshape", "ReverseV2", "SplitV", "Tile", "Transpose"), (1,)),
        "Fill": (0,),
    }
)
# errors of the real converters for memory formats other than the contiguous one [source ge_converter/aten]
_ORDERS = MappingProxyType(
    {
        "aten._to_copy.default": "Different from the community implementation, {} input memory_format only supports "
        "{known} now, but input memory_format = {given}",
        "aten.clone.default": "{} have some unprocessed parameters or cases, memory_format = {given}, "
        "torch.contiguous_format = {known}",
        "aten.empty.memory_format": "{} is only supported contiguous_format now.",
        "aten.empty_like.default": "{} is only supported contiguous_format and preserve_format now.",
    }
)
# types that a number takes from the tensors beside it, if they have only one of them
_FLOATS = frozenset({torch.bfloat16, torch.float16, torch.float32, torch.float64})
_INTEGERS = frozenset({torch.int8, torch.uint8, torch.int32, torch.int64})
_LIMITED = _INTEGERS | {torch.int16}
_NUMBERED = MappingProxyType({number: kind for kind, number in GE_NUMBERS.items()})
_SHORT = MappingProxyType(
    {
        "f16": torch.float16,
        "f32": torch.float32,
        "f64": torch.float64,
        "bf16": torch.bfloat16,
        "i8": torch.int8,
        "i16": torch.int16,
        "i32": torch.int32,
        "i64": torch.int64,
        "u8": torch.uint8,
        "u64": torch.uint64,
        "c64": torch.complex64,
        "bool_": torch.bool,
    }
)
_SYMBOLS = MappingProxyType({torch.SymInt: torch.int64, torch.SymFloat: torch.float32, torch.SymBool: torch.bool})
_PYTHON = MappingProxyType(
    {one.__name__: one for one in (bool, dict, float, int, len, list, min, range, tuple, math.ceil, math.floor)}
)
_REDUCTIONS = ("none", "mean", "sum")


class _Names(dict[str, Any]):
    """The names of a rule: arguments, short names of types, node types, methods of `Maker`, functions of Python."""

    def __init__(self, maker: "Maker", arguments: dict[str, Any]) -> None:
        super().__init__(arguments)
        self._maker = maker
        self["__builtins__"] = {}

    def __missing__(self, name: str) -> Any:
        if name in _SHORT:
            return _SHORT[name]
        if name[0].isupper():
            return partial(self._maker.op, name)
        found = getattr(self._maker, name, None)
        if found is not None:
            return found
        return _PYTHON[name]


def run_rule(code: CodeType, maker: "Maker", arguments: dict[str, Any]) -> Any:
    """Run a compiled rule and return the value that it binds to ``_``."""
    names = _Names(maker, arguments)
    exec(code, names)
    return names["_"]


class Maker:
    """Makes the nodes of one FX operator.

    Parameters
    ----------
    graph : GeGraph
    target : str
        The overload's name.
    arguments : dict
        By name; tensors and symbolic numbers are `Ref`.
    value_of : callable
        Returns the fake tensor of an output.
    results : sequence
        Fake tensors of the results.
    generator : callable
        Returns seed and offset of random numbers.
    given : collection of str
        Arguments that are written in the call; the others have their defaults.
    """

    inf = math.inf

    def __init__(
        self,
        graph: GeGraph,
        target: str,
        arguments: dict[str, Any],
        value_of: Callable[[Ref], torch.Tensor],
        results: Sequence[Any],
        generator: Callable[[], tuple[Ref, Ref]],
        given: Collection[str] = (),
    ) -> None:
        self._graph = graph
        self._target = target
        self._arguments = arguments
        self._value_of = value_of
        self.outs = results
        self._generator = generator
        self._given = given

    # ------------------------------------------------------------------------------------------------------- nodes
    def op(self, kind: str, *inputs: Any, outs: int | None = None, li: str = "", lo: str = "", **attrs: Any) -> Ref:
        """Make a node.

        Parameters
        ----------
        kind : str
        *inputs
            Tensors, None for a missing one, numbers and lists of numbers, which become Consts.
        outs : int, optional
            Number of outputs.
        li, lo : str
            Formats of inputs and outputs: one for all (``NCHW``), or by index (``0:ND,1:NCHW``).
        """
        beside = [one for one in inputs if isinstance(one, Ref) and one.node.type != "Const"]
        types = [one.output.dtype for one in beside if one.output.dtype is not None]
        fed: list[Ref | None] = [
            one if one is None or isinstance(one, Ref) else self._constant(kind, at, at - len(inputs), one, types)
            for at, one in enumerate(inputs)
        ]
        fed += [None] * (_INPUTS.get(kind, 0) - len(fed))
        node = self._graph.add(kind, fed, attrs, outputs=outs or _OUTPUTS.get(kind, 1))
        count = sum(one is not None for one in fed)
        for key, formats, many in (("input_layout_info", li, count), ("output_layout_info", lo, len(node.outputs))):
            if formats:
                node.attrs[key] = _layouts(formats, many)
        return Ref(node)

    def outputs(self, kind: str, count: int, *inputs: Any, **attrs: Any) -> list[Ref]:
        """Make a node with `count` outputs, and return all of them."""
        made = self.op(kind, *inputs, outs=count, **attrs)
        return [made[at] for at in range(count)]

    def parts(self, made: Ref) -> list[Ref]:
        """Return all outputs of a node."""
        return [made[at] for at in range(len(made.node.outputs))]

    def _constant(self, kind: str, at: int, from_end: int, value: Any, types: Sequence[torch.dtype]) -> Ref:
        """Make the Const of an operand that is not a tensor; `at` and `from_end` are its index from either end.

        A number takes the type of the tensors beside it that are of its kind, and two such types are an error. Helpers
        have no type in the real converters. [source ge_graph auto_type_promotion]
        """
        indices = _INDICES.get(kind, ())
        if at in indices or from_end in indices:
            return self.const(value, torch.int64)
        numbers = value if isinstance(value, (list, tuple)) else [value]
        if isinstance(value, SymbolList) or any(isinstance(one, Ref) for one in numbers):
            return self.const(value)
        if not numbers:
            return self.const(value, torch.int32)
        is_float = any(isinstance(one, float) for one in numbers)
        kinds = _FLOATS if is_float else _INTEGERS
        # a set of numbers, since the text of the error has its order
        known = [one for one in {GE_NUMBERS[kind] for kind in types} if _NUMBERED[one] in kinds]
        if len(known) > 1:
            word, first = ("float", float(numbers[0])) if is_float else ("int", numbers[0])
            raise Refused(AssertionError(f"Cannot promote {kind} input {at} {word} {first} with dtypes {known}"))
        return self.const(value, _NUMBERED[known[0]] if known else _plain_type(value, numbers))

    def const(self, value: Any, dtype: torch.dtype | None = None) -> Ref:
        """Make a Const; a list with a symbol becomes a Pack of its numbers."""
        if isinstance(value, SymbolList):
            return value.pack
        if isinstance(value, (list, tuple)) and any(isinstance(one, Ref) for one in value):
            return self._graph.pack(value)
        if isinstance(value, torch.dtype):
            raise TypeError(f"{value} is not a number")
        if dtype is None:
            dtype = torch.float32 if isinstance(value, float) else torch.int64
        return self._graph.const(list(value) if isinstance(value, tuple) else value, dtype)

    # ------------------------------------------------------------------------------------------------------- types
    @property
    def out(self) -> Any:
        """Fake tensor of the first result."""
        return self.outs[0]

    @property
    def out_type(self) -> torch.dtype:
        """Data type of the first result: also that of a symbol."""
        out = self.out
        return out.dtype if isinstance(out, torch.Tensor) else _SYMBOLS[type(out)]

    def argument(self, name: str) -> Any:
        """Return an argument whose name is a keyword of Python."""
        return self._arguments[name]

    def given(self, name: str) -> bool:
        """Return whether an argument was written in the call."""
        return name in self._given

    def type_of(self, value: Any) -> torch.dtype:
        """Return the data type of a tensor; the real converters take a helper's as float32."""
        return value.output.dtype or torch.float32

    def shape_of(self, value: Ref) -> list[Any]:
        """Return the shape of a tensor."""
        return list(self._value_of(value).shape)

    def rank(self, value: Ref) -> int:
        """Return the number of dimensions."""
        return self._value_of(value).dim()

    def as_type(self, value: Any, dtype: torch.dtype) -> Ref:
        """Cast a tensor to a type if it has another one or is a helper; a number becomes a Const."""
        if not isinstance(value, Ref):
            return self.const(value, dtype)
        return value if value.output.dtype == dtype else self.op("Cast", value, dst_type=dtype)

    def single(self, value: Ref) -> Ref:
        """Cast a tensor from float16 to float32."""
        return self.as_type(value, torch.float32) if self.type_of(value) == torch.float16 else value

    def as_number(self, value: Any) -> Ref:
        """Make the Const of a number of Python in numpy's type for it, but float32 for a float."""
        return value if isinstance(value, Ref) else self.const(value, _plain_type(value, [value]))

    def as_out(self, value: Any) -> Ref:
        """Cast a tensor or number to the type of the result if it has another one."""
        return self.as_type(value, self.out_type)

    def forced(self, value: Ref) -> Ref:
        """Cast to the type of the result, even if the tensor has it."""
        return self.op("Cast", value, dst_type=self.out_type)

    def common(self, *values: Any) -> list[Ref]:
        """Cast operands to the type that torch promotes them to."""
        known = [self._value_of(one) if isinstance(one, Ref) else one for one in values]
        kind = torch.result_type(known[0], known[1])
        return [self.as_type(one, kind) for one in values]

    def countable(self, left: Any, right: Any) -> list[Ref]:
        """Cast operands to the type that torch promotes them to, booleans to float32."""
        known = [self._value_of(one) if isinstance(one, Ref) else one for one in (left, right)]
        kind = torch.result_type(known[0], known[1])
        kind = torch.float32 if kind == torch.bool else kind
        return [self.as_type(one, kind) for one in (left, right)]

    def ordered(self, left: Ref, right: Any) -> list[Any]:
        """Cast operands to the higher one of their types, booleans to float32."""
        own = self.type_of(left)
        other = self.type_of(right) if isinstance(right, Ref) else type_to_dtype(type(right))
        if own != other:
            kind = get_higher_dtype(own, other)
            assert kind is not None
            return [self.as_type(one, kind) for one in (left, right)]
        return [self.as_type(one, torch.float32) for one in (left, right)] if own == torch.bool else [left, right]

    def same_types(self, left: Any, right: Any) -> None:
        """Refuse operands of different types; the vendor's text prints one type twice. [spec aten 9.5]"""
        if isinstance(left, Ref) and isinstance(right, Ref) and self.type_of(left) != self.type_of(right):
            kinds = [GE_NUMBERS[self.type_of(one)] for one in (left, right)]
            raise Refused(AssertionError(f"Inputs data type mismatch {kinds[1]} vs. {kinds[1]}"))

    def lowest_of(self, kind: torch.dtype) -> Any:
        """Return the smallest number of a type; minus infinity for all but integers."""
        return torch.iinfo(kind).min if kind in _LIMITED else -math.inf

    def highest_of(self, kind: torch.dtype) -> Any:
        """Return the largest number of a type; infinity for all but integers."""
        return torch.iinfo(kind).max if kind in _LIMITED else math.inf

    def tensors_among(self, *values: Any) -> bool:
        """Return whether a value is a tensor or a symbol."""
        return any(isinstance(one, Ref) for one in values)

    def is_open(self, value: Ref) -> bool:
        """Return whether a tensor has a dynamic shape."""
        return any(not isinstance(extent, int) for extent in self.shape_of(value))

    def list_number(self, value: Any, values: Sequence[Ref]) -> Ref:
        """Make the Const of a number for a list of tensors: in their type, float32 for bfloat16."""
        kind = self.type_of(values[0])
        return self.const(value, torch.float32 if kind == torch.bfloat16 else kind)

    def long_integers(self, values: Sequence[Any]) -> Any:
        """Make a Const of type int64 if the first of some numbers is an integer."""
        return self.const(values, torch.int64) if isinstance(values[0], int) else values

    def is_float(self, value: Any) -> bool:
        """Return whether a number is a float of Python."""
        return isinstance(value, float)

    # ------------------------------------------------------------------------------------------------------ shapes
    def all_dims(self, dims: Any) -> list[int]:
        """Return the given dimensions as a list; all of them if none is given."""
        if dims is None or (isinstance(dims, (list, tuple)) and not dims):
            return list(range(self.rank(self._arguments["self"])))
        return [dims] if isinstance(dims, int) else list(dims)

    def unit_dims(self, value: Ref) -> list[int]:
        """Return the dimensions of extent 1."""
        return [at for at, extent in enumerate(self.shape_of(value)) if extent == 1]

    def other_dims(self, rank: int, dim: int) -> list[int]:
        """Return all dimensions but one."""
        return [at for at in range(rank) if at != dim % rank]

    def swap_last(self, rank: int) -> list[int]:
        """Return the permutation that exchanges the last two dimensions."""
        if rank < 2:
            raise Refused(IndexError("list index out of range"))
        return self.swapped(rank, -1, -2)

    def swapped(self, rank: int, first: int, second: int) -> list[int]:
        """Return the permutation that exchanges two dimensions."""
        found = list(range(rank))
        found[first], found[second] = found[second], found[first]
        return found

    def dense(self, size: Sequence[int]) -> list[int]:
        """Return the strides of a contiguous tensor."""
        found, step = [], 1
        for extent in reversed(size):
            found.append(step)
            step *= extent
        return found[::-1]

    def ge_pads(self, pads: Sequence[int], rank: int) -> list[int]:
        """Order paddings by dimension; torch's begin with the last dimension."""
        found = [0, 0] * rank
        for at in range(len(pads) // 2):
            found[2 * (rank - 1 - at) : 2 * (rank - at)] = pads[2 * at : 2 * at + 2]
        return found

    def split_sizes(self, extent: Any, size: Any) -> list[Any]:
        """Return the sizes of a split; the last part takes the rest."""
        known = self._graph.symbols[size.node.name, size.index] if isinstance(size, Ref) else size
        return [size] * int(-(-extent // known) - (1 if extent % known or extent // known else 0)) + [-1]

    def pair(self, value: Any) -> list[Any]:
        """Return two numbers, from one or two."""
        found = [value] if isinstance(value, int) else list(value)
        return found * 2 if len(found) == 1 else found

    def triple(self, value: Any) -> list[Any]:
        """Return three numbers, from one or three."""
        found = [value] if isinstance(value, int) else list(value)
        return found * 3 if len(found) == 1 else found

    def twice(self, values: Sequence[Any]) -> list[Any]:
        """Repeat each number: the padding before and after a dimension."""
        return [one for value in values for one in (value, value)]

    def picked(self, shape: Ref, at: int) -> Ref:
        """Read an extent from a shape."""
        return self.op(
            "Gather",
            shape,
            at,
            batch_dims=0,
            is_preprocessed=False,
            negative_index_support=False,
            validate_indices=True,
        )

    def size_of(self, value: Ref, dim: int) -> Any:
        """Return an extent: a number if it is known, otherwise nodes that compute it."""
        extent = self.shape_of(value)[dim]
        if isinstance(extent, int):
            return extent
        shape = self.op("Shape", value, dtype=torch.int64)
        found = self.picked(shape, dim)
        found.node.attrs["_force_unknown_shape"] = True
        return found

    # ------------------------------------------------------------------------------------------------- other names
    @property
    def seeds(self) -> tuple[Ref, Ref]:
        """Seed and offset of the random generator."""
        return self._generator()

    def reduced(self, number: int) -> str:
        """Return the name of a reduction."""
        return _REDUCTIONS[number]

    def interpolation(self, number: int) -> str:
        """Return the name of an interpolation."""
        return ("bilinear", "nearest", "bicubic")[number]

    def sampling(self, number: int) -> str:
        """Return the name of a padding mode."""
        return ("zeros", "border", "reflection")[number]

    @property
    def foreach_type(self) -> str:
        """The node type of an operator on lists of tensors: ForeachAddScalar for ``_foreach_add.Scalar``."""
        _, name, overload = self._target.split(".")
        word = name.removeprefix("_foreach_")
        return f"Foreach{word[0].upper()}{word[1:]}{'' if overload == 'default' else overload}"

    def need_numbers(self, *values: Any) -> None:
        """Refuse None, as the real converter does."""
        if any(one is None for one in values):
            raise Refused(TypeError("must be real number, not NoneType"))

    def is_whole(self, value: Ref) -> bool:
        """Return whether the result has the shape of a tensor."""
        return str(self.shape_of(value)) == str(list(self.out.shape))

    def not_implicit(self, implicit: bool) -> None:
        """Refuse an implicit expansion."""
        if implicit:
            text = f"torch.ops.{self._target} ge_converter is not implemented when param implicit is True."
            raise Refused(RuntimeError(text))

    def small_divisor(self, divisor: int | None) -> None:
        """Refuse divisors beyond a byte."""
        if divisor is not None and not 0 < divisor <= 255:
            text = f"The value of divisor_override = {divisor} is invalid, only support [1, 255] at present."
            raise Refused(AssertionError(text))

    def to_the_right(self, side: str | None, right: bool) -> bool:
        """Return on which side of equal elements a search ends; `side` outweighs `right`."""
        if side is not None and side not in ("left", "right"):
            text = f"torch.ops.aten.searchsorted.Tensor side must be 'left' or 'right', got {side!r}"
            raise Refused(ValueError(text))
        return right if side is None else side == "right"

    def only_false(self, *names: str) -> None:
        """Refuse arguments that are true."""
        for name in names:
            if self._arguments[name]:
                text = f"torch.ops.{self._target} input {name} only supports False now, but input {name} = True"
                raise Refused(NotImplementedError(text))

    def no_booleans(self, value: Ref) -> None:
        """Refuse tensors of bool and uint8."""
        if self.type_of(value) in (torch.bool, torch.uint8):
            raise Refused(NotImplementedError("_unsafe_index.Tensor currently not support dtype Bool or Uint8."))

    def need_more_than_zero(self, high: Any) -> None:
        """Refuse an empty range of random integers."""
        if not isinstance(high, Ref) and high <= 0:
            raise Refused(RuntimeError(f"from must be less than high, but now from is 0, high is {high}"))

    def in_training(self, training: bool) -> None:
        """Refuse a normalisation by running statistics."""
        if not training:
            self._refuse_while("training is False")

    def two_dims(self, value: Ref) -> None:
        """Refuse tensors of fewer than two dimensions."""
        if self.rank(value) < 2:
            self._refuse_while("input dim <2")

    def _refuse_while(self, what: str) -> None:
        text = f"torch.ops.{self._target} ge_converter is not implemented while {what}!"
        raise Refused(RuntimeError(text))

    def half_input(self, half_to_float: bool, value: Ref) -> None:
        """Refuse ``half_to_float`` of softmax for types other than float16."""
        if half_to_float and self.type_of(value) != torch.float16:
            text = f"torch.ops.{self._target}: when half_to_tensor is True, input tensor must be half type."
            raise Refused(RuntimeError(text))

    def same_gradient(self, grad: Ref, kind: torch.dtype) -> None:
        """Refuse a gradient of another type than the input, except float32 for float16."""
        own = self.type_of(grad)
        if own == kind or (own, kind) == (torch.float32, torch.float16):
            return
        types = ("Half", "Float") if "log" in self._target else ("Float", "Half")
        error = NotImplementedError if "log" in self._target else RuntimeError
        text = f" or input to be at::{types[0]} and grad to be at::{types[1]}"
        raise Refused(error("expected input and grad types to match,", text))

    def half_only(self, half_to_float: bool, value: Ref) -> None:
        """Refuse ``half_to_float`` for types other than float16."""
        if half_to_float and self.type_of(value) != torch.float16:
            text = f"half_to_float is True but x.dtype is {self.type_of(value)}, expected torch.half"
            raise Refused(AssertionError(text))

    def both_wanted(self, mask: Sequence[bool]) -> None:
        """Refuse a product's gradient for only one operand."""
        if not all(mask):
            raise Refused(NotImplementedError("matmul_backward currently only support mask == [True, True]"))

    def no_bytes(self, *values: Ref) -> None:
        """Refuse a product of int8."""
        if any(self.type_of(one) == torch.int8 for one in values):
            raise Refused(RuntimeError(f"torch.ops.{self._target} ge_converter is not support int8 dtype!"))

    def in_order(self, memory_format: torch.memory_format | None) -> None:
        """Refuse memory formats other than the contiguous one."""
        preserves = self._target == "aten.empty_like.default" and memory_format == torch.preserve_format
        if not preserves and memory_format not in (None, torch.contiguous_format):
            known = torch.contiguous_format
            text = _ORDERS[self._target].format(f"torch.ops.{self._target}", given=memory_format, known=known)
            raise Refused(RuntimeError(text))

    def four_dims(self, value: Ref) -> None:
        """Refuse tensors that do not have four dimensions."""
        if self.rank(value) != 4:
            text = "ge_converter is only implemented for 4D input!"
            raise Refused(NotImplementedError(f"torch.ops.{self._target} ", text))

    def fed_from(self, at: int, *inputs: Any) -> None:
        """Refuse missing inputs that the node type requires; `at` is the index of the first."""
        for number, one in enumerate(inputs, at):
            if one is None:
                raise Refused(AssertionError(f"Input {number} can not be None as it is not optional"))

    def all_wanted(self, *wanted: bool) -> None:
        """Refuse a normalisation's gradient for only some of its operands."""
        if not all(wanted):
            text = "ge_converter is implemented while input, weight and bias all have gradients."
            raise Refused(NotImplementedError(f"torch.ops.{self._target} ", text))

    def no_number(self) -> None:
        """Refuse a result that is a Python number."""
        raise Refused(AssertionError("ge_outputs must be list or a tuple."))

    def no_symbol(self) -> None:
        """Refuse a Python number where a symbol is required."""
        text = "meta_output must be one of following instances:[torch.SymInt, torch.SymFloat, torch.SymBool]"
        raise Refused(AssertionError(text))

    def total(self, values: Sequence[Any]) -> Any:
        """Sum numbers and symbols."""
        if isinstance(values, SymbolList):
            return self.op("ReduceSum", values.pack, self.const(0), keep_dims=False)
        if self.tensors_among(*values):
            raise Refused(TypeError("unsupported operand type(s) for +: 'int' and 'Tensor'"))
        return sum(values)

    def __getattr__(self, name: str) -> Any:
        """Return a function of the modules for operators of several nodes."""
        found = getattr(_composites, name, None) or getattr(_convolution, name, None)
        if found is None or name.startswith("_"):
            raise AttributeError(name)
        return partial(found, self)


def _layouts(formats: str, count: int) -> dict[int, str]:
    """Parse formats: by index."""
    if ":" not in formats:
        return dict.fromkeys(range(count), formats)
    return {int(at): name for at, _, name in (one.partition(":") for one in formats.split(","))}


def _plain_type(value: Any, numbers: Sequence[Any]) -> torch.dtype:
    """Return the type of a number or list beside no tensor of its kind: numpy's, but float32 for a single float."""
    if any(isinstance(one, float) for one in numbers):
        return torch.float32 if isinstance(value, float) else torch.float64
    return torch.bool if all(isinstance(one, bool) for one in numbers) else torch.int64
