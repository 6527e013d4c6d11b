"""Find the name by which an API was called from the caller's instruction, if a function object has several names.

torch passes ``x + y`` and ``x.add(y)`` to a function mode as the same function, likewise ``F.conv2d`` and
``torch.conv2d``; the caller's current instruction distinguishes them. Results are cached by (code, offset).
"""

import dis
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType, MappingProxyType, ModuleType

from dumpsim.frontends.apidump.pytorch.operands import ATTRIBUTES, CONSTANTS, LOADS, Load, evaluate, operand

__all__ = ["CallSite", "Load", "Sites", "base_module", "evaluate"]

_OPERATORS = ("BINARY_OP", "COMPARE_OP", "UNARY_", "INPLACE_", "BINARY_", "TO_BOOL", "POP_JUMP", "CONTAINS_OP")
_PAIRS = MappingProxyType(
    {
        "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
        "LOAD_FAST_BORROW_LOAD_FAST_BORROW": ("LOAD_FAST_BORROW", "LOAD_FAST_BORROW"),
        "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    }
)


@dataclass(frozen=True, slots=True)
class CallSite:
    """An instruction that called into torch.

    Attributes
    ----------
    operator : bool
        Whether it is an operator, not a call.
    callee : Load or None
        The called expression.
    left, right : Load or None
        Operands of an operator, if they are simple.
    left_loads, right_loads : tuple of Load
        The variables in operands that are not simple.
    positional : int or None
        Number of positional arguments, if the instruction shows it.
    """

    operator: bool
    callee: Load | None = None
    left: Load | None = None
    right: Load | None = None
    positional: int | None = None
    left_loads: tuple[Load, ...] = ()
    right_loads: tuple[Load, ...] = ()

    @property
    def name(self) -> str | None:
        """Last word of the called expression."""
        if self.callee is None:
            return None
        return self.callee.attributes[-1] if self.callee.attributes else str(self.callee.root)


class Sites:
    """Cache of the call sites found so far."""

    def __init__(self) -> None:
        # by id of a code object that is kept alive: hashing a code object hashes all of its content
        self._known: dict[tuple[int, int], tuple[CallSite, CodeType]] = {}

    def find(self, frame: FrameType) -> CallSite:
        """Return the call site of the current instruction of `frame`."""
        code = frame.f_code
        key = (id(code), frame.f_lasti)
        known = self._known.get(key)
        if known is not None:
            return known[0]
        try:
            site = _read(code, frame.f_lasti)
        except Exception:  # an unknown instruction set must not stop the user's program
            site = CallSite(False)
        self._known[key] = (site, code)
        return site


def base_module(load: Load | None, frame: FrameType) -> str | None:
    """Return the name of the module that a callee such as ``F.conv2d`` was looked up in."""
    if load is None or not load.attributes:
        return None
    known, value = evaluate(Load(load.op, load.root, load.attributes[:-1]), frame)
    return value.__name__ if known and isinstance(value, ModuleType) else None


def _read(code: CodeType, offset: int) -> CallSite:
    instructions = list(_single(code))
    # during a call from Python to Python, the caller's offset is that of the cache after its instruction
    at = max(n for n, i in enumerate(instructions) if i.offset <= offset)
    here = instructions[at]
    before = instructions[:at]
    if here.opname.startswith(_OPERATORS):
        right, right_starts = operand(instructions, at - 1)
        left = operand(instructions, right_starts - 1)[0] if right_starts > 0 else _left(here, before)
        left_loads, right_loads = _variables(here, before)
        return CallSite(True, left=left, right=right, left_loads=left_loads, right_loads=right_loads)
    # 3.11: a specialised PRECALL does the call itself
    if not here.opname.startswith(("CALL", "PRECALL")) or here.positions is None or here.positions.lineno is None:
        return CallSite(False)
    start = (here.positions.lineno, here.positions.col_offset)
    best: int | None = None
    for n in range(at - 1, -1, -1):
        place = before[n].positions
        if place is None or (place.lineno, place.col_offset) != start or before[n].opname.startswith("PUSH_NULL"):
            continue
        if before[n].opname in ATTRIBUTES or before[n].opname in LOADS:
            best = n
            break
        if before[n].opname.startswith("CALL"):
            break
    return CallSite(
        False, callee=None if best is None else _chain(before, best), positional=_positional(code, here, before)
    )


def _single(code: CodeType) -> Iterator[dis.Instruction]:
    """Yield the instructions of a code object; those of 3.13 and later that load two variables become two."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in _PAIRS:
            first, second = instruction.argval
            one, other = _PAIRS[instruction.opname]
            yield instruction._replace(opname=one, argval=first)
            # the position in the source is that of the first
            yield instruction._replace(opname=other, argval=second, positions=None)
        elif instruction.opname not in ("CACHE", "EXTENDED_ARG"):
            yield instruction


def _positional(code: CodeType, here: dis.Instruction, before: list[dis.Instruction]) -> int | None:
    """Return the number of positional arguments of a call: all but those that the instruction names."""
    if here.opname == "CALL_FUNCTION_EX" or here.arg is None:
        return None
    for instruction in reversed(before[-3:]):
        if instruction.opname == "KW_NAMES":  # 3.11 and 3.12
            return here.arg - len(code.co_consts[instruction.arg or 0])
        if here.opname == "CALL_KW":  # 3.13
            return here.arg - len(instruction.argval)
    return here.arg


def _chain(instructions: list[dis.Instruction], last: int) -> Load | None:
    """Return the simple operand whose last instruction is `last`."""
    names: list[str] = []
    n = last
    while n >= 0 and instructions[n].opname in ATTRIBUTES:
        names.insert(0, instructions[n].argval)
        n -= 1
    if n >= 0 and (instructions[n].opname in LOADS or instructions[n].opname in CONSTANTS):
        op = "LOAD_CONST" if instructions[n].opname in CONSTANTS else instructions[n].opname
        return Load(op, instructions[n].argval, tuple(names))
    # the base is an expression; its last attribute is still the called name
    return Load("", "", tuple(names)) if names else None


def _variables(here: dis.Instruction, before: list[dis.Instruction]) -> tuple[tuple[Load, ...], tuple[Load, ...]]:
    """Return the variables in the left and in the right operand of an operator, by their position in the source."""
    found: tuple[list[Load], list[Load]] = ([], [])
    if not before or here.positions is None or before[-1].positions is None:
        return (), ()
    start = (here.positions.lineno or 0, here.positions.col_offset or 0)
    middle = (before[-1].positions.lineno or 0, before[-1].positions.col_offset or 0)
    for n, instruction in enumerate(before):
        if instruction.opname not in LOADS or instruction.positions is None:
            continue
        place = (instruction.positions.lineno or 0, instruction.positions.col_offset or 0)
        if place < start:
            continue
        last = n
        while last + 1 < len(before) and before[last + 1].opname in ATTRIBUTES:
            last += 1
        load = _chain(before, last)
        if load is not None:
            found[place >= middle].append(load)
    return tuple(found[0]), tuple(found[1])


def _left(here: dis.Instruction, before: list[dis.Instruction]) -> Load | None:
    """Return the left operand of an operator, if it is simple; it starts where the whole expression starts."""
    if here.positions is None or here.positions.lineno is None:
        return None
    start = (here.positions.lineno, here.positions.col_offset)
    found: int | None = None
    for n, instruction in enumerate(before):
        place = instruction.positions
        if place is None or (place.lineno, place.col_offset) != start:
            continue
        if (
            instruction.opname in LOADS
            or instruction.opname in CONSTANTS
            or (found is not None and instruction.opname in ATTRIBUTES)
        ):
            found = n
        elif found is not None:
            return None  # not only a variable and its attributes
    return None if found is None else _chain(before, found)
