"""Read the operands of an operator from the preceding instructions, and evaluate them without running code.

``2 * x`` and ``x * 2`` reach a function mode as the same call; the operands on either side distinguish them.
"""

import math
import sys
from dataclasses import dataclass
from dis import Instruction
from types import FrameType, MappingProxyType
from typing import Any

__all__ = ["ATTRIBUTES", "CONSTANTS", "LOADS", "SOME_NUMBER", "Load", "evaluate", "operand"]

LOADS = (
    "LOAD_FAST",
    "LOAD_FAST_CHECK",
    "LOAD_FAST_BORROW",
    "LOAD_DEREF",
    "LOAD_CLASSDEREF",
    "LOAD_NAME",
    "LOAD_GLOBAL",
)
ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
CONSTANTS = ("LOAD_CONST", "LOAD_SMALL_INT")
_SIGNS = ("UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_INVERT")
_CALLS = ("CALL", "CALL_KW")
# instructions whose results cannot be evaluated: number of values that they pop; None: given by their argument
_OTHERS = MappingProxyType(
    {"COMPARE_OP": 2, "BINARY_SLICE": 3, "BUILD_SLICE": None, "BUILD_TUPLE": None, "BUILD_LIST": None}
)
_NULL_AFTER_CALLEE = sys.version_info >= (3, 13)
_DEPTH = 12

SOME_NUMBER = object()  # the value of an operand that is a number, when all that matters is that it is one
_NUMBERS = frozenset({bool, int, float})
_MAKERS = (int, float, len)  # functions that always return a number
_KEEPERS = (abs, max, min, pow, round)  # functions that return a number if all arguments are numbers
_QUERIES = frozenset({"item", "numel", "nelement", "dim", "ndimension"})  # methods of tensors that return a number
_ATTRIBUTE_DICTS = ("_parameters", "_buffers", "_modules")  # dicts of a module whose items look like its attributes


@dataclass(frozen=True, slots=True)
class Load:
    """An operand that can be evaluated again.

    Attributes
    ----------
    op : str
        The instruction that loads a constant or a variable; or ``"SUBSCRIPT"``, ``"CALL"`` or ``"COMBINE"``.
    root : object
        The constant, the name of the variable; container and index; callee and arguments; operands.
    attributes : tuple of str
        Attributes looked up on it.
    """

    op: str
    root: Any
    attributes: tuple[str, ...] = ()


def evaluate(load: Load | None, frame: FrameType) -> tuple[bool, Any]:
    """Return whether an operand can be evaluated without running code of the user, and its value."""
    if load is None:
        return False, None
    known, value = _root(load, frame)
    for name in load.attributes:
        if not known:
            break
        known, value = _attribute(value, name)
    return (True, value) if known else (False, None)


def operand(instructions: list[Instruction], last: int, depth: int = 0) -> tuple[Load | None, int]:
    """Return the operand that ends at instruction `last`, None if it cannot be evaluated, and its start, -1 if unknown.

    The list must contain at least one more instruction.
    """
    if last < 0 or depth > _DEPTH:
        return None, -1
    following = instructions[last + 1]
    if following.is_jump_target and following.positions is not None:  # one of two was computed: a if b else c
        return None, -1
    here = instructions[last]
    name = here.opname
    if name in CONSTANTS:
        return Load("LOAD_CONST", here.argval), last
    if name in LOADS:
        return Load(name, here.argval), last
    if name in ATTRIBUTES:
        inner, start = operand(instructions, last - 1, depth + 1)
        return inner and Load(inner.op, inner.root, (*inner.attributes, here.argval)), start
    if name == "BINARY_SUBSCR" or (name == "BINARY_OP" and here.argrepr == "[]"):
        found, start = _several(instructions, last - 1, 2, depth)
        return (None if None in found else Load("SUBSCRIPT", found)), start
    if name == "BINARY_OP" or name in _SIGNS:
        found, start = _several(instructions, last - 1, 2 if name == "BINARY_OP" else 1, depth)
        return (None if None in found else Load("COMBINE", found)), start
    if name in _CALLS:
        return _call(instructions, last, depth)
    if name in _OTHERS:
        taken = _OTHERS[name]
        return None, _several(instructions, last - 1, (here.arg or 0) if taken is None else taken, depth)[1]
    return None, -1


def _several(
    instructions: list[Instruction], last: int, number: int, depth: int
) -> tuple[tuple[Load | None, ...], int]:
    """Return `number` consecutive operands, the last of which ends at `last`, and their start."""
    found: list[Load | None] = []
    start = last + 1
    for _ in range(number):
        load, start = operand(instructions, start - 1, depth + 1)
        if start < 0:
            return (None,), -1
        found.insert(0, load)
    return tuple(found), start


def _call(instructions: list[Instruction], last: int, depth: int) -> tuple[Load | None, int]:
    """Return a call, and its start."""
    number = instructions[last].arg or 0
    last -= 1
    if instructions[last + 1].opname == "CALL_KW":  # 3.13: the names are on top
        last -= 1
    while last >= 0 and instructions[last].opname in ("PRECALL", "KW_NAMES"):  # 3.11, 3.12
        last -= 1
    arguments, start = _several(instructions, last, number, depth)
    if start < 1:
        return None, -1
    if _NULL_AFTER_CALLEE and instructions[start - 1].opname == "PUSH_NULL":
        start -= 1
    callee, start = operand(instructions, start - 1, depth + 1)
    if not _NULL_AFTER_CALLEE and start > 0 and instructions[start - 1].opname == "PUSH_NULL":
        start -= 1
    return callee and Load("CALL", (callee, arguments)), start


def _root(load: Load, frame: FrameType) -> tuple[bool, Any]:
    """Return whether the root of a load can be evaluated, and its value."""
    op, root = load.op, load.root
    if op == "LOAD_CONST":
        return True, root
    if op == "SUBSCRIPT":
        container, index = root
        return _subscript(container, index, frame)
    if op == "CALL":
        callee, arguments = root
        return _makes_number(callee, arguments, frame), SOME_NUMBER
    if op == "COMBINE":
        return all(_is_number(part, frame) for part in root), SOME_NUMBER
    space = frame.f_locals
    if root in space:
        return True, space[root]
    if op in ("LOAD_GLOBAL", "LOAD_NAME"):
        if root in frame.f_globals:
            return True, frame.f_globals[root]
        if root in frame.f_builtins:
            return True, frame.f_builtins[root]
    return False, None


def _attribute(value: Any, name: str) -> tuple[bool, Any]:
    """Return an attribute in an object's dict, in a module's dicts, or a number in its class."""
    space = vars(value) if hasattr(value, "__dict__") else {}
    if name in space:
        return True, space[name]
    for key in _ATTRIBUTE_DICTS:
        items = space.get(key)
        if type(items) is dict and name in items:
            return True, items[name]
    for cls in type(value).__mro__:
        if name in vars(cls):
            found = vars(cls)[name]
            return type(found) in _NUMBERS, found
    return False, None


def _subscript(container: Load, index: Load, frame: FrameType) -> tuple[bool, Any]:
    """Return an element of a list, a tuple or a dict; the sizes of a tensor are numbers."""
    if container.attributes[-1:] == ("shape",):
        return True, SOME_NUMBER
    known, value = evaluate(container, frame)
    if not known or type(value) not in (list, tuple, dict):
        return False, None
    known, key = evaluate(index, frame)
    if not known or type(key) not in (int, str):
        return False, None
    try:
        return True, value[key]
    except (LookupError, TypeError):
        return False, None


def _makes_number(callee: Load, arguments: tuple[Load | None, ...], frame: FrameType) -> bool:
    """Whether a call returns a number, for any arguments or for numbers."""
    name = callee.attributes[-1] if callee.attributes else ""
    if name in _QUERIES or (name == "size" and arguments):
        return True
    known, value = evaluate(callee, frame)
    if not known or value is math.prod:
        return False
    if any(value is maker for maker in _MAKERS) or getattr(value, "__self__", None) is math:
        return True
    keeps = any(value is keeper for keeper in _KEEPERS) or type(value).__module__ == "numpy"  # a function of numpy's
    return keeps and bool(arguments) and all(_is_number(argument, frame) for argument in arguments)


def _is_number(load: Load | None, frame: FrameType) -> bool:
    known, value = evaluate(load, frame)
    return known and (value is SOME_NUMBER or type(value) in _NUMBERS)
