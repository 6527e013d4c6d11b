"""A pytest plugin: an emulated device, a dump directory and fault plans for each test."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dumpsim.device.injector import Injector

__all__ = ["inject"]


def inject(*faults: "Mapping[str, Any]") -> "Injector":
    """Activate a fault plan on the current emulated device; it replaces the plan before.

    Parameters
    ----------
    *faults : mapping
        Objects of a fault plan, as ``dumpsim check --schema faults`` describes them; without any, faults end.

    Returns
    -------
    Injector
        Its `unused()` returns the faults that have not struck.

    Raises
    ------
    FaultPlanError
        For anything that the schema does not allow.

    Examples
    --------
    >>> from dumpsim.core.settings import RunSettings
    >>> from dumpsim.runtime.session import Session
    >>> before = Session.use(Session(RunSettings(device="cpu"), environment={}))
    >>> len(inject({"kind": "aicore_error", "op": "MatMul", "nth": 2}).unused())
    1
    >>> _ = Session.use(before)
    """
    from dumpsim.device.faults import make_plan
    from dumpsim.runtime.session import Session

    return Session.current().inject(make_plan(faults))
