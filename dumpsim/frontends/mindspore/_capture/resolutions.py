"""Names that constructs of a script create in the vendor's front end, recorded from a traced compiler. [observed 2.10]

Each entry is a list of names. A plain name is an operator that is resolved by the types of its operands and is named
once in a process, or, if `is_function`, a function of the vendor's Python library that is named once per compile.
``name@`` is named once for each set of constants, ``ints@`` for each sequence of integers among them, ``name!`` at each
call. ``(axis)`` marks the form with more arguments than the tensor.
"""

from collections.abc import Mapping
from types import MappingProxyType

__all__ = [
    "CALLS",
    "CELLS",
    "ITERATION",
    "OPERATORS",
    "PRIMITIVES",
    "PROPERTIES",
    "SUBSCRIPTS",
    "TRUTH",
    "has_branch",
    "is_function",
]

_NOT = "logical_not _scalar_tensor_to_scalar bool_"
_INTS = f"_normalize_int_sequence {_NOT}"  # normalizes a sequence of integers
_SHAPE = f"{_INTS} ints@ iter_converter getitem list_append append"
_ALL = f"{_INTS} tuple_func@ iter_converter"  # reduces all dimensions
_AXIS = f"{_INTS} do_type_cast equal in"

_FUNCTIONS = frozenset(
    {
        *("_getitem", "_normalize_int_sequence", "_scalar_tensor_to_int", "_scalar_tensor_to_scalar", "T", "astype"),
        *("bool_", "bool_func", "check_len_", "do_type_cast", "expand_dims", "float_func", "int_bool", "int_func"),
        *("list_append", "list_extend", "ms_len", "none_bool", "nonzero", "raise_error_msg", "size_", "softmax"),
        *("str_func", "swapaxes", "tensor_bool", "to_float", "to_half", "to_int"),
    }
)


def is_function(name: str) -> bool:
    """Whether a name belongs to a function, or to a part of a function (``name:part``)."""
    return name in _FUNCTIONS or ":" in name


def has_branch(name: str) -> bool:
    """Whether a function of ``ops`` tests a condition, so that its operators are in its branches.

    Examples
    --------
    >>> has_branch("relu"), has_branch("tanh"), has_branch("mul")
    (True, False, False)
    """
    return name not in _PLAIN and "bool_" in CALLS.get(name, "").split()


# functions that only apply an operator; their tests come from the operator's signature
# [wheel ops/auto_generate/gen_ops_def.py; observed 2.10: all of them, called by the root and by a cell]
_PLAIN = frozenset(
    {"log_softmax", "cat", "reshape", "transpose", "permute", "tile", "mul", "broadcast_to", "masked_fill"}
)


# by the operator and the kind of its operands: "tensor", "sequence", "scalar", "" for any
OPERATORS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("Add", "sequence"): "add bool_ tuple_add",
        ("Add", ""): "add",
        ("Sub", ""): "sub",
        ("Mult", ""): "mul",
        ("Div", ""): "div",
        ("FloorDiv", ""): "floordiv",
        ("Mod", "tensor"): "mod _scalar_tensor_to_scalar bool_",
        ("Mod", ""): "mod",
        ("Pow", ""): "pow",
        ("BitAnd", ""): "bitwise_and",
        ("BitOr", ""): "bitwise_or",
        ("AugAdd", "tensor"): "augassign_add _scalar_tensor_to_scalar bool_",
        ("AugAdd", ""): "augassign_add",
        ("AugSub", "tensor"): "augassign_sub _scalar_tensor_to_scalar bool_",
        ("AugSub", ""): "augassign_sub",
        ("AugMult", "tensor"): "augassign_mul _scalar_tensor_to_scalar bool_",
        ("AugMult", ""): "augassign_mul",
        ("AugDiv", "tensor"): "augassign_div _scalar_tensor_to_scalar bool_",
        ("AugDiv", ""): "augassign_div",
        ("Lt", "tensor"): "less unpack_call@",
        ("Lt", ""): "less",
        ("LtE", ""): "less_equal",
        ("Gt", ""): "greater",
        ("GtE", ""): "greater_equal",
        ("Eq", ""): "equal",
        ("NotEq", "tensor"): "not_equal",
        ("NotEq", ""): f"{_NOT} not_equal",
        ("In", ""): f"{_NOT} in",
        ("NotIn", ""): f"{_NOT} not_in",
        ("USub", ""): "negative",
        ("Invert", ""): "invert",
        ("Not", "tensor"): "",
        ("Not", ""): _NOT,
    }
)

# a condition that does not depend on attributes of the cell only; "tensor": a condition on a tensor of the graph
TRUTH: Mapping[str, str] = MappingProxyType({"": "bool_", "tensor": "bool_ tensor_bool"})

ITERATION = "iter_converter getitem"

_PART_OF_TENSOR = f"getitem equal {_NOT} iter_converter augassign_add greater handle_bool_tensor tensor_index_getitem"
SUBSCRIPTS: Mapping[str, str] = MappingProxyType(
    {
        "sequence": "getitem",
        "part": f"getitem {_NOT} tuple_slice",
        "int": (
            f"getitem equal {_INTS} iter_converter pow augassign_add add list_append append tuple_func:index less "
            "tuple_func@ tuple_func@"
        ),
        "slice": "getitem equal bool_ tensor_index_getitem",
        "tuple": _PART_OF_TENSOR,
        "tensor": f"getitem equal {_NOT} less greater unpack_call! add",
        "mask": f"getitem equal {_NOT} less tuple_slice not_equal nonzero unpack_call!",
    }
)

PROPERTIES: Mapping[str, str] = MappingProxyType(
    {
        "T": f"{_SHAPE} T less_equal equal sub negative tuple_func:T",
        "size": "size_",
    }
)

# functions of `ops`, methods of tensors and lists, functions of Python; operators in arguments are counted separately
CALLS: Mapping[str, str] = MappingProxyType(
    {
        "relu": "bool_",
        "gelu": f"{_NOT} not_in equal add mul",
        "softmax": f"{_AXIS} negative",
        "softmax(axis)": _AXIS,
        "log_softmax": "negative _scalar_tensor_to_int bool_",
        "leaky_relu": "greater bool_ mul",
        "concat": "_scalar_tensor_to_int bool_",
        "cat": "_scalar_tensor_to_int bool_",
        "stack": "unpack_call!",
        "split": f"{_NOT} greater getitem equal mod floordiv tuple_func@",
        "chunk": f"{_NOT} less_equal getitem equal greater mod",
        "topk": (
            f"{_NOT} tuple_func@ iter_converter getitem add tuple_add not_in tuple_func@ raise_error_msg unpack_call!"
        ),
        "unique": _SHAPE,
        "reshape": _SHAPE,
        "transpose": _SHAPE,
        "flatten": f"{_NOT} negative equal in",
        "flatten(axis)": f"{_NOT} unpack_call! negative equal in",
        "squeeze": _ALL,
        "squeeze(axis)": _AXIS,
        "tile": _SHAPE,
        "clamp": "bool_ _scalar_tensor_to_scalar",
        "clip_by_value": _NOT,
        "sum(axis)": _AXIS,
        "mean": _ALL,
        "mean(axis)": _AXIS,
        "amax": _ALL,
        "amax(axis)": _AXIS,
        "max": "logical_not equal bool_ unpack_call!",
        "min": "logical_not equal bool_ unpack_call!",
        "argmax": f"{_SHAPE} equal negative",
        "argmax(axis)": "logical_not equal bool_",
        "cumsum": "bool_ _scalar_tensor_to_int",
        "norm": f"{_SHAPE} in",
        "std": (
            f"{_NOT} in _check_is_tensor:else _check_var_std_input:after bool_func greater_equal equal _getitem "
            "getitem unpack_call!"
        ),
        "var": (
            f"{_NOT} in _check_is_tensor:else _check_var_std_input:after bool_func greater_equal equal _getitem "
            "getitem unpack_call!"
        ),
        "less": "unpack_call!",
        "zeros_like": "bool_",
        "ones_like": "bool_",
        "zeros": "zeros:size@",
        "ones": _SHAPE,
        "full": f"{_NOT} not_in do_type_cast equal in",
        "arange": (
            f"{_NOT} getitem iter_converter has_next greater next list_slice str_func greater_equal equal _getitem "
            "list_add str_func str_func dict_get has_key less_equal ms_len not_equal do_type_cast in"
        ),
        "one_hot": f"{_NOT} negative",
        "tril": "unpack_call!",
        "cross_entropy": (
            f"{_AXIS} negative greater_equal not_in greater sub add mul DeprecatedSum unpack_call! size_ getitem div"
        ),
        "mse_loss": f"{_SHAPE} not_in sub equal",
        "l1_loss": f"{_SHAPE} not_in sub equal do_type_cast in",
        "dropout": "bool_ sub getitem",
        "max_pool2d": "bool_ unpack_call! getitem",
        "avg_pool2d": f"{_NOT} unpack_call! unpack_call!",
        "conv2d": f"{_NOT} getitem mod equal tuple_slice unpack_call!",
        "pad": f"{_NOT} equal tuple_func@ mod not_equal iter_converter getitem unpack_call!",
        "swapaxes": f"{_SHAPE} equal greater add less tuple_slice tuple_add",
        "permute": _SHAPE,
        "div": f"{_NOT} none_bool do_type_cast equal in",
        "mul": f"{_NOT} do_type_cast equal in",
        "broadcast_to": _SHAPE,
        "sort": "negative unpack_call!",
        "argsort": "negative unpack_call! getitem",
        "masked_fill": f"{_NOT} do_type_cast equal in",
        "bias_add": "unpack_call!",
        "Tensor.sum": "DeprecatedSum bool_ unpack_call!",
        "Tensor.sum(axis)": f"{_AXIS} DeprecatedSum unpack_call!",
        "Tensor.mean": f"{_ALL} DeprecatedMean",
        "Tensor.mean(axis)": f"{_AXIS} DeprecatedMean",
        "Tensor.max": f"{_NOT} DeprecatedMax unpack_call! equal unpack_call! getitem",
        "Tensor.max(axis)": (
            f"{_NOT} DeprecatedMax unpack_call! equal unpack_call! check_len_ not_equal tensor_bool getitem"
        ),
        "Tensor.reshape": _SHAPE,
        "Tensor.view": _SHAPE,
        "Tensor.transpose": f"{_SHAPE} DeprecatedTranspose equal ms_len not_equal",
        "Tensor.astype": f"{_NOT} astype",
        "Tensor.flatten": (
            f"{_SHAPE} DeprecatedFlatten unpack_call! equal not_equal negative less greater_equal "
            "check_axis_valid:else add greater in less_equal augassign_add augassign_mul tuple_slice tuple_add"
        ),
        "Tensor.flatten(axis)": f"{_NOT} DeprecatedFlatten unpack_call! equal negative in",
        "Tensor.swapaxes": f"{_SHAPE} swapaxes equal greater add less tuple_slice tuple_add",
        "Tensor.argmax": "DeprecatedArgmax logical_not equal bool_",
        "Tensor.to": "ToDtypeMetaImpl",
        "Tensor.expand_dims": f"{_NOT} expand_dims",
        "Tensor.squeeze": f"{_ALL} DeprecatedSqueeze",
        "Tensor.pow": "DeprecatedPow",
        "Tensor.min": f"{_NOT} DeprecatedMin unpack_call! equal unpack_call! getitem",
        "Tensor.expand_as": f"{_SHAPE} DeprecatedExpandAs",
        "Tensor.tile": f"{_SHAPE} DeprecatedTile",
        "Tensor.split": f"{_NOT} DeprecatedSplit greater getitem equal mod floordiv tuple_func@",
        "Tensor.add": "DeprecatedAdd bool_",
        "Tensor.permute": f"{_SHAPE} DeprecatedPermute equal ms_len not_equal",
        "Tensor.float": "to_float",
        "Tensor.half": "to_half",
        "Tensor.int": "to_int",
        "Tensor.std": (
            f"{_ALL} DeprecatedStd DeprecatedVar in equal size_ bool_func greater_equal _getitem getitem less "
            "tuple_func@ sub none_bool do_type_cast"
        ),
        "Tensor.var": (
            f"{_ALL} DeprecatedVar in equal size_ bool_func greater_equal _getitem getitem less tuple_func@ sub "
            "none_bool do_type_cast"
        ),
        "Tensor.new_zeros": _SHAPE,
        "Tensor.broadcast_to": _SHAPE,
        "Tensor.unsqueeze": "DeprecatedUnsqueeze",
        "Tensor.prod": "DeprecatedProd",
        "Tensor.any": f"{_ALL} DeprecatedReduceAny",
        "Tensor.all": "DeprecatedReduceAll",
        "Tensor.cumsum": f"{_NOT} DeprecatedCumsum in greater_equal negative less add mod _scalar_tensor_to_int",
        "Tensor.topk": (
            f"{_NOT} DeprecatedTopk tuple_func@ iter_converter getitem add tuple_add not_in tuple_func@ "
            "raise_error_msg unpack_call!"
        ),
        "Tensor.chunk": f"{_NOT} DeprecatedChunk less_equal getitem equal greater mod",
        "Tensor.clamp": "_scalar_tensor_to_scalar bool_",
        "Tensor.softmax": f"{_AXIS} softmax unpack_call!",
        "Tensor.matmul": "DeprecatedMatmul",
        "list.append": "list_append bool_ append",
        "list.extend": "list_extend extend",
        "enumerate": f"{_NOT} iter_converter getitem tuple_add unpack_call! zip_operation",
        "zip": "iter_converter getitem bool_ add tuple_add unpack_call! zip_operation",
        "float": f"{_NOT} float_func greater_equal equal _getitem getitem",
        "int": f"{_NOT} int_func greater_equal equal _getitem getitem unpack_call!",
        "print": "unpack_call! unpack_call!",
    }
)

# primitive objects
PRIMITIVES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"), _ALL),
        **{f"{name}(axis)": _AXIS for name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd")},
        **{f"{name}(axes)": _SHAPE for name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd")},
        **dict.fromkeys(("Reshape", "Transpose", "Tile", "Slice", "StridedSlice"), _SHAPE),
        "CumSum": "_scalar_tensor_to_int bool_",
    }
)

# cells of `nn`; ``(train)`` is the form in training, ``(wide)`` the form for more than two dimensions
CELLS: Mapping[str, str] = MappingProxyType(
    {
        "Dense": f"{_NOT} not_equal ms_len",
        "Dense(wide)": f"{_SHAPE} not_equal ms_len negative tuple_slice add tuple_add",
        "MaxPool2d": "equal bool_",
        "AvgPool2d": "equal bool_",
        "Flatten": f"{_NOT} not_equal negative less greater_equal check_axis_valid:else unpack_call! equal in",
        "BatchNorm2d": "equal bool_ ms_len less getitem",
        "BatchNorm2d(train)": "equal bool_ ms_len getitem",
        "LayerNorm": f"{_NOT} astype getitem",
        "Dropout(train)": "getitem",
        "GELU": f"{_NOT} unpack_call! not_in equal",
        "LeakyReLU": "greater bool_ mul",
        "Embedding": f"{_SHAPE} add tuple_add tuple_func@",
        "SequentialCell": "iter_converter getitem",
        "MSELoss": f"{_SHAPE} sub do_type_cast equal in",
        "L1Loss": f"{_SHAPE} not_in sub equal do_type_cast in",
        "SoftmaxCrossEntropyWithLogits": f"{_NOT} negative do_type_cast equal in",
        "CrossEntropyLoss": (
            f"{_AXIS} greater_equal not_in sub add negative expand_dims DeprecatedSum unpack_call! "
            "DeprecatedSqueeze unpack_call! unpack_call! div unpack_call! unpack_call! mul"
        ),
    }
)
