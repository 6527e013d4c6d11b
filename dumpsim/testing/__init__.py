"""Help for tests of numerics: a pytest plugin with an emulated device, a dump directory and faults for each test."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dumpsim.device.injector import Injector

__all__ = ["inject"]


def inject(*faults: "Mapping[str, Any]") -> "Injector":
    """Let faults happen on the current emulated device from now on, instead of those planned before.

    Parameters
    ----------
    *faults : mapping
        Objects of a fault plan, as ``dumpsim check --schema faults`` describes them; none puts an end to faults.

    Returns
    -------
    Injector
        Tells by `unused()` which of them have not struck.

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
