"""How many functions the vendor's type inference specialises for a construct of a script.

Each function that the inference meets takes the next number of one counter, once for each set of types and constants
of its arguments; the functions of the network that remain take the numbers after these, and their names begin with
them. [source program_specialize.cc: GetNextCounter] Which functions a construct takes along is data, read off
``01_type_inference`` of the real wheel. [observed 2.10]

An entry is text: a number counts functions that are made for each place in the script, ``name:number`` those of a
function of the vendor's library, which other places with equal arguments share. What is in no table is not known.
"""

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["CALLS", "CELLS", "OPERATORS", "PROPERTIES", "SUBSCRIPTS", "TRUTH"]


def _plain(names: str) -> dict[str, str]:
    """Functions that are one graph."""
    return {name: f"{name}:1" for name in names.split()}


# by the operator and the kinds of its operands
OPERATORS: Mapping[tuple[str, ...], str] = MappingProxyType(
    {
        ("Add", "tensor", "tensor"): "1 add:1",
        ("Add", "tensor", "scalar"): "1 add:1",
        ("Add", "scalar", "tensor"): "1 add:1",
        ("Sub", "tensor", "tensor"): "1",
        ("Sub", "tensor", "scalar"): "1",
        ("Sub", "scalar", "tensor"): "1",
        ("Mult", "tensor", "tensor"): "1",
        ("Mult", "tensor", "scalar"): "1 muls:1",
        ("Mult", "scalar", "tensor"): "1 muls:1",
        ("Div", "tensor", "tensor"): "1",
        ("Div", "tensor", "scalar"): "1",
        ("Div", "scalar", "tensor"): "1",
        ("FloorDiv", "tensor", "scalar"): "1",
        ("FloorDiv", "tensor", "tensor"): "1",
        ("Mod", "tensor", "scalar"): "1",
        ("Pow", "tensor", "scalar"): "1",
        ("MatMult", "tensor", "tensor"): "matmul:2",
        ("Lt", "tensor", "scalar"): "1 less:2",
        ("Lt", "tensor", "tensor"): "1 less:2",
        ("LtE", "tensor", "scalar"): "1",
        ("LtE", "tensor", "tensor"): "1",
        ("Gt", "tensor", "scalar"): "1 greater:1",
        ("Gt", "tensor", "tensor"): "1 greater:1",
        ("GtE", "tensor", "scalar"): "1",
        ("GtE", "tensor", "tensor"): "1",
        ("Eq", "tensor", "scalar"): "1",
        ("Eq", "tensor", "tensor"): "1 equal:1",
        ("NotEq", "tensor", "tensor"): "1 not_equal:1",
        ("NotEq", "tensor", "scalar"): "1 not_equal:1",
        ("USub", "tensor"): "1 neg:1",
        ("Not", "tensor"): "3 logical_not:1",
    }
)

TRUTH = "bool_:1 tensor_bool:3 cast:1"  # of a tensor that the graph decides

SUBSCRIPTS: Mapping[str, str] = MappingProxyType(
    {
        "sequence": "1",
        "slice": "3 slice:2",
        "tuple": "3 tuple:9 slices:1",
    }
)

PROPERTIES: Mapping[str, str] = MappingProxyType({"T": "T:4"})

# by name, with ``()`` for the form that has the tensor only
CALLS: Mapping[str, str] = MappingProxyType(
    {
        **_plain("abs add cos elu equal erf exp expand_dims flip floor gather greater log masked_fill masked_select"),
        **_plain("maximum minimum mul neg not_equal reshape select sigmoid silu sin sort sqrt square stack tanh tile"),
        **_plain("transpose unstack where assign assign_add assign_sub"),
        **dict.fromkeys(("reduce_max", "reduce_mean", "reduce_min", "reduce_sum"), ""),
        "cast": "cast:1",
        "chunk": "chunk:14",
        "clip_by_value": "clip_by_value:19",
        "less": "less:2",
        "nonzero": "nonzero:5",
        "split": "split:18",
        "unique": "unique:3",
        "matmul": "matmul:2",
        "relu": "relu:3",
        "squeeze": "squeeze:2",
        "softmax": "softmax:5",
        "softmax()": "softmax:6",
        "leaky_relu": "leaky_relu:3",
        "gelu": "gelu:10 add:1",
        "mean": "mean:2",
        "concat": "concat:1 cat:1",
        "std": "std:4",
        "var": "var:5",
        "cumsum": "cumsum:3",
        "amax": "amax:7",
        "Tensor.sum": "6 sum:1",
        "Tensor.mean": "1 mean:2",
        "Tensor.max": "6 max:4 max_:1",
        "Tensor.min": "6 min:4 min_:1",
        "Tensor.abs": "",
        "Tensor.split": "1 split:18",
        "Tensor.astype": "astype:3 cast:1",
    }
)

# with ``(relu)`` and the like for the activation of the cell; those of its own cells are counted apart
CELLS: Mapping[str, str] = MappingProxyType(
    {
        "Dense": "9",
        "ReLU": "1",
        "Tanh": "1",
        "GELU": "2 gelu:7",
        "LayerNorm": "4 astype:3 cast:1",
    }
)
