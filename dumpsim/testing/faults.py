"""The fixture ``faults``: activates fault plans on the device of a test."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dumpsim.device.injector import Injector
    from dumpsim.runtime.session import Session

__all__ = ["Faults"]


class Faults:
    """Activates fault plans on a session; each call replaces the plan.

    Parameters
    ----------
    session : Session

    Attributes
    ----------
    strict : list of Injector
        The plans whose faults must all strike.

    Examples
    --------
    >>> from dumpsim.core.settings import RunSettings
    >>> from dumpsim.runtime.session import Session
    >>> faults = Faults(Session(RunSettings(device="cpu"), environment={}))
    >>> faults
    Faults(none active)
    >>> _ = faults({"kind": "overflow", "op": "MatMul", "nth": 2})
    >>> faults
    Faults(overflow of 'MatMul' never struck: 0 launches matched, it waits for launch 2)
    """

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._active: tuple[Injector, int] | None = None  # and the number of its faults
        self.strict: list[Injector] = []

    def __call__(self, *wanted: "Mapping[str, Any]", strict: bool = True) -> "Injector":
        """Activate these faults in place of those before.

        Raises
        ------
        FaultPlanError
            For anything that the schema of fault plans does not allow.
        """
        from dumpsim.device.faults import make_plan

        injector = self._session.inject(make_plan(wanted))
        self._active = (injector, len(wanted)) if wanted else None
        if strict:
            self.strict.append(injector)
        return injector

    def __repr__(self) -> str:
        if self._active is None:
            return "Faults(none active)"
        injector, planned = self._active
        return f"Faults({'; '.join(injector.unused_text()) or f'{planned} active, none pending'})"
