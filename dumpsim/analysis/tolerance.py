"""Tolerances: rules by name, and defaults by number type."""

from collections.abc import Iterable
from dataclasses import dataclass

from dumpsim.core.errors import BadInputError

__all__ = ["DEFAULTS", "Rule", "Tolerance", "rule", "usual"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Elements agree where ``|a - b| <= atol + rtol * |b|``.

    Attributes
    ----------
    rtol, atol : float
    scaled : bool
        Whether to scale `atol`, given for elements around 1, to the size of the elements.
    """

    rtol: float
    atol: float
    scaled: bool = False

    @property
    def few(self) -> float:
        """The share of elements that may exceed the tolerance a little; 0 for a tolerance from the user."""
        return self.atol if self.scaled else 0.0

    def at(self, size: float) -> "Tolerance":
        """Return the tolerance for tensors with elements of this size.

        Examples
        --------
        >>> Tolerance(rtol=0.001, atol=0.001, scaled=True).at(5.0)
        Tolerance(rtol=0.001, atol=0.005, scaled=False)
        """
        return Tolerance(rtol=self.rtol, atol=self.atol * max(size, _LEAST)) if self.scaled else self


_LEAST = 1e-5  # smaller elements may be remainders of larger ones that cancelled out


# RTOL of float32 as in api_dump_compare [spec api_dump 2]; float16 and bfloat16 have 11 and 8 bits, and a sum of many
# products of rounded numbers is off by several of their last bits
DEFAULTS: dict[str, Tolerance] = {
    "float64": Tolerance(rtol=1e-7, atol=1e-7, scaled=True),
    "float32": Tolerance(rtol=1e-4, atol=1e-4, scaled=True),
    "float16": Tolerance(rtol=2e-3, atol=5e-3, scaled=True),
    "bfloat16": Tolerance(rtol=1.6e-2, atol=4e-2, scaled=True),
    "complex64": Tolerance(rtol=1e-4, atol=1e-4, scaled=True),
    "complex128": Tolerance(rtol=1e-7, atol=1e-7, scaled=True),
}
_NARROW = Tolerance(rtol=0.125, atol=0.0625, scaled=True)  # float8 and its like have 3 or 4 bits
_EXACT = Tolerance(rtol=0.0, atol=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Tolerance of the tensors that match a pattern (`Entry.answers`)."""

    pattern: str
    tolerance: Tolerance


def rule(text: str) -> Rule:
    """Parse ``PATTERN:RTOL[:ATOL]``; ATOL defaults to RTOL.

    Raises
    ------
    BadInputError
        For text of another form, and for invalid or negative numbers.

    Examples
    --------
    >>> rule("*softmax*:1e-3").tolerance
    Tolerance(rtol=0.001, atol=0.001, scaled=False)
    >>> rule("*:output.0:0.01:0").pattern
    '*:output.0'
    """
    words = text.split(":")
    numbers: list[float] = []
    while len(words) > 1 and len(numbers) < 2 and (number := _number(words[-1])) is not None:
        numbers.insert(0, number)
        words.pop()
    pattern = ":".join(words)
    if not numbers or not pattern or min(numbers) < 0:
        raise BadInputError(f"{text!r} is not a tolerance", where="tol", allowed=("PATTERN:RTOL[:ATOL]",))
    return Rule(pattern=pattern, tolerance=Tolerance(rtol=numbers[0], atol=numbers[-1]))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value == value and value != float("inf") else None


def usual(dtypes: Iterable[str]) -> Tolerance:
    """Return the widest default of some number types.

    Examples
    --------
    >>> usual(["float32", "float16"])
    Tolerance(rtol=0.002, atol=0.005, scaled=True)
    """
    return max((_default(name) for name in dtypes), key=lambda found: found.rtol, default=_EXACT)


def _default(dtype: str) -> Tolerance:
    if dtype in DEFAULTS:
        return DEFAULTS[dtype]
    return _NARROW if "float" in dtype else _EXACT
