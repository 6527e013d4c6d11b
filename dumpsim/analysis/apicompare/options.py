"""What api_dump_compare may be asked, checked as the real tool does. [spec api_dump 1.10, 2]"""

from dataclasses import dataclass
from typing import Any

from dumpsim.analysis.apicompare.vendormapping import METHODS
from dumpsim.analysis.namemap import NameMap
from dumpsim.analysis.tolerance import Tolerance
from dumpsim.core.errors import ScriptTypeError, ScriptValueError, UnsupportedError, nearest

__all__ = ["EXACT", "Options"]

EXACT = "1.0.17"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The arguments of `api_dump_compare`, which says what they mean.

    Raises
    ------
    ScriptTypeError, ScriptValueError, UnsupportedError
        For arguments that the real tool refuses, with its text; for an unknown `compat`, and for a `name_map` together
        with the mapping of the real tool.
    """

    rtol: float = 1e-4
    atol: float = 1e-4
    equal_nan: bool = False
    ignore_unmatched: bool = False
    ignore_backward: bool = False
    convinced_match_method: str | None = None
    compat: str | None = None
    name_map: NameMap | None = None

    def __post_init__(self) -> None:
        for name in ("rtol", "atol"):
            _check(name, getattr(self, name), float)
        for name in ("equal_nan", "ignore_unmatched", "ignore_backward"):
            _check(name, getattr(self, name), bool)
        if self.compat not in (None, EXACT):
            raise ScriptValueError(
                f"{self.compat!r} is not known",
                where="api_dump_compare(compat=)",
                allowed=("None", EXACT),
                code="DS-API-015",
            )
        if self.method not in (None, *METHODS):
            raise UnsupportedError(
                f"unknown mapping method {self.method!r}",
                where="api_dump_compare(convinced_match_method=)",
                allowed=METHODS,
                nearest=nearest(self.method, METHODS),
                code="DS-API-015",
                vendor=f"Not support {self.method} now.",
            )
        if self.method and self.name_map is not None:
            raise ScriptValueError(
                "the mapping of 1.0.17 has names of its own: leave compat and convinced_match_method out",
                where="api_dump_compare(name_map=)",
                code="DS-API-015",
            )

    @property
    def exact(self) -> bool:
        """Whether to compute numbers and steps exactly as the real tool does on this machine."""
        return self.compat is not None

    @property
    def method(self) -> str | None:
        """The real tool's way of mapping, or None for ours."""
        return self.convinced_match_method or (METHODS[0] if self.exact else None)

    @property
    def tolerance(self) -> Tolerance:
        """The tolerance of numbers."""
        return Tolerance(rtol=self.rtol, atol=self.atol)


def _check(name: str, value: Any, wanted: type) -> None:
    """Check a type as the vendor does: false values pass."""
    if value and not isinstance(value, wanted):
        raise ScriptTypeError(
            f"{value!r} is not of type {wanted.__name__}",
            where=name,
            code="DS-API-013",
            vendor=f"The parameter '{name}' must be {wanted}",
        )
