"""``troubleshooter.migrator``: API dump of networks of torch and MindSpore, and its comparison. [seed 002]

``import troubleshooter`` under ``dumpsim run`` gives this module as ``troubleshooter.migrator``.
"""

import logging
import os
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from dumpsim.analysis.apicompare.compare import api_dump_compare
from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError, ScriptValueError, nearest
from dumpsim.world.context import current

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dumpsim.frontends.apidump.output import Output
    from dumpsim.frontends.apidump.selection import Request

__all__ = ["ApiDump", "api_dump_compare", "api_dump_init", "api_dump_start", "api_dump_stop"]

LOG = logging.getLogger("troubleshooter.log")
EXACT = "1.0.17"
_DEFAULT_DIRECTORY = "ts_api_dump"
# nets that the real tool accepts and this one refuses, by the package of their class
_ELSEWHERE = MappingProxyType(
    {
        "mindtorch": "; dumps of MindTorch are read and compared, not made",
        "mindspore": "; cells are dumped where our front end is MindSpore: dumpsim run SCRIPT",
    }
)


class _Session(Protocol):
    """The interface of one framework's API dump."""

    exact: bool
    output: "Output"
    skipped: "Mapping[str, int]"

    @property
    def recorded(self) -> bool: ...
    def start(self, request: "Request") -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...


class ApiDump:
    """A dump from init to `close`, which removes all hooks; also a context manager.

    Attributes
    ----------
    path : str
        The directory, absolute.
    skipped : mapping of str to int
        Values that were not recorded, by reason.

    Examples
    --------
    ::

        with api_dump_init(net, "before", retain_backward=True) as dump:
            dump.start(dump_type="statistics")
            net(inputs).sum().backward()
            dump.stop()
        print(dump.skipped)
    """

    def __init__(self, session: _Session) -> None:
        self._session = session

    @property
    def path(self) -> str:
        return self._session.output.root

    @property
    def skipped(self) -> "Mapping[str, int]":
        return dict(self._session.skipped)

    def __enter__(self) -> "ApiDump":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(
        self,
        mode: str = "all",
        scope: list[str] | None = None,
        dump_type: str = "all",
        filter_data: bool = True,
        filter_stack: bool = True,
    ) -> None:
        """Start to record, as `api_dump_start` does."""
        from dumpsim.frontends.apidump.selection import Request

        self._session.start(Request.checked(mode, scope, dump_type, filter_data, filter_stack))
        _attention(f"API dump has started. Dump data will be saved to {self.path}. ")

    def stop(self) -> None:
        """Stop, as `api_dump_stop` does."""
        self._session.stop()
        if self._session.recorded:
            _attention(f"API dump has been stopped. Dump data has been saved to {self.path}.")
        else:
            LOG.warning(
                "[*User Warning*] API dump has been stopped, but no data has been saved. Please check the dump scope!"
            )
        if self._session.skipped:
            reasons = ", ".join(f"{count} x {reason}" for reason, count in sorted(self._session.skipped.items()))
            LOG.warning("[*User Attention*] Not recorded: %s.", reasons)

    def superseded(self, framework: str) -> "_Session | None":
        """Return the session if it can continue as an exact dump of the same framework."""
        session = self._session
        return session if framework == "torch" == session.output.framework and session.exact else None

    def close(self) -> None:
        """Write everything and remove all hooks; the next `api_dump_start` needs an init."""
        active = _active()
        if active.dump is self:
            active.dump = None
        self._session.close()


class _Active:
    """The dump that the vendor's three functions share in a rank."""

    dump: ApiDump | None = None


def _active() -> _Active:
    return current().get(_Active)


def api_dump_init(
    net: Any,
    output_path: "str | os.PathLike[str] | None" = _DEFAULT_DIRECTORY,
    *,
    retain_backward: bool = False,
    compare_statedict: bool = False,
    coverage: Literal["listed", "full"] = "listed",
    compat: str | None = None,
    **kwargs: Any,
) -> ApiDump:
    """Prepare the dump of a network; dropout has no effect until `ApiDump.close`.

    Calls are recorded in every thread that starts from `api_dump_start` on; in older ones, and in daemon threads, only
    while a module runs there, which `ApiDump.skipped` counts. What ``torch.compile`` has compiled runs uncompiled
    meanwhile, and encoder layers that torch would fuse in evaluation run layer by layer, as under the real tool; either
    may change a result by rounding. A child that is forked writes nothing.

    Files are whole after stop, close and the end of the interpreter, by an error too; a signal that kills it, or
    ``os._exit``, loses what has waited for the disk since the last stop.

    Writes::

        <output_path>/rank0/
            torch_api_dump/<record>.npy
            torch_api_dump_info.pkl          text, one JSON array a line
            torch_api_dump_stack.json
            pt_net.pth                       only with compare_statedict

    Parameters
    ----------
    net : torch.nn.Module or mindspore.nn.Cell
    output_path : path
        Made where it is missing; what an earlier dump of this rank and framework left in it goes at the first recorded
        call. What other ranks left stays: a run of fewer ranks wants a directory of its own.
    retain_backward : bool
        Also the gradients with respect to the outputs. Those of a second backward through one graph end in ``.pass2``,
        and so on; those of checkpointed regions have the names of the first run's calls.
    compare_statedict : bool
        Keep the parameters too, for a comparison with MindTorch.
    coverage : {"listed", "full"}
        The APIs that the real tool lists, or more of them, with keyword arguments. Ours; not in the real tool.
    compat : {None, "1.0.17"}
        The real tool exactly: it counts calls from here on, not from start on, and keeps its defects where they show in
        names, order or numbers. Ours; not in the real tool.
    **kwargs
        None are known. Under `compat` any are ignored, as the real tool ignores them.

    Returns
    -------
    ApiDump
        The real tool returns None; scripts may ignore it.

    Raises
    ------
    TypeError
        For a network of no known framework, an argument of the wrong type, or an unknown one.
    RuntimeError
        For ``output_path=None``.
    ValueError
        For an unknown `coverage` or `compat`.

    Examples
    --------
    >>> try:
    ...     api_dump_init(None)
    ... except TypeError as error:
    ...     print(error)
    For 'troubleshooter.api_dump.init' function, ... but got <class 'NoneType'>.
    """
    from dumpsim.frontends.apidump.selection import check_bool

    exact = _check_ours(coverage, compat)
    if not exact:
        _refuse(kwargs)
    framework = _framework(net)
    check_bool("retain_backward", retain_backward)
    if output_path is None:
        raise ScriptRuntimeError(
            "output_path is None",
            vendor="set_dump_path 'None' error, please set a valid filename",
            where="api_dump_init(output_path=)",
            code="DS-ADP-014",
        )
    path = os.path.abspath(os.fsdecode(output_path))
    if os.path.exists(path) and not os.path.isdir(path):
        raise FileExistsError(17, "File exists", path)
    previous = None
    active = _active()
    if active.dump is not None:
        previous = active.dump.superseded(framework) if exact else None
        if previous is None:
            active.dump.close()
    _attention("For precision comparison, the probability p in the dropout method is set to 0.")
    _attention("Please disable the shuffle function of the dataset before running the program.")
    if not os.path.isdir(path):
        _attention(f"The path '{path}' does not exist, the path will be created automatically.")
    session = _open(
        framework,
        net,
        path,
        retain_backward=bool(retain_backward),
        compare_statedict=bool(compare_statedict),
        coverage=coverage,
        exact=exact,
        **({} if previous is None else {"previous": previous}),
    )
    active.dump = ApiDump(session)
    return active.dump


def api_dump_start(
    mode: str = "all",
    scope: list[str] | None = None,
    dump_type: str = "all",
    filter_data: bool = True,
    filter_stack: bool = True,
) -> None:
    """Record from here; may be called again after `api_dump_stop`.

    Parameters
    ----------
    mode : {"all", "list", "range", "api_list"}
        Everything; the calls named in `scope`; from the first to the second of `scope`, both included, or to the end
        where they are the same; the calls whose name holds a word of `scope`, in upper or lower case.
    scope : list of str
        Names as in the info file, without direction: ``NN_Linear_1``.
    dump_type : {"all", "statistics", "npy", "stack"}
        Which of statistics and npy files are written; order and stacks always are.
    filter_data : bool
        Leave out numbers, and tensors that are not floating or have no dimension or no element.
    filter_stack : bool
        Leave out frames of torch and of this tool.

    Raises
    ------
    RuntimeError
        Before `api_dump_init`.
    TypeError, ValueError
        With the real tool's text and ours as a note.

    Examples
    --------
    >>> try:
    ...     api_dump_start(mode="list", scope=["NN_Linear_0"])
    ... except RuntimeError as error:
    ...     print(error)
    You must call 'troubleshooter.api_dump.init' before calling...
    """
    _dump("start").start(mode, scope, dump_type, filter_data, filter_stack)


def api_dump_stop() -> None:
    """Stop recording; every file is complete when this returns.

    Raises
    ------
    RuntimeError
        Before `api_dump_init`.
    DumpWriteError
        If the disk did not take everything.

    Examples
    --------
    >>> try:
    ...     api_dump_stop()
    ... except RuntimeError as error:
    ...     print(error)
    You must call 'troubleshooter.api_dump.init' before calling...
    """
    _dump("stop").stop()


def _dump(verb: str) -> ApiDump:
    dump = _active().dump
    if dump is None:
        raise ScriptRuntimeError(
            "api_dump_init has not been called",
            vendor=f"You must call 'troubleshooter.api_dump.init' before calling'troubleshooter.api_dump.{verb}' "
            "function.",
            where=f"api_dump_{verb}",
            code="DS-ADP-015",
        )
    return dump


def _check_ours(coverage: object, compat: object) -> bool:
    """Check the two arguments that the vendor does not have; return whether the dump is exact."""
    if coverage not in ("listed", "full"):
        raise ScriptValueError(
            f"{coverage!r} is not known",
            where="api_dump_init(coverage=)",
            allowed=("listed", "full"),
            code="DS-ADP-016",
        )
    if compat not in (None, EXACT):
        raise ScriptValueError(
            f"{compat!r} is not known", where="api_dump_init(compat=)", allowed=("None", EXACT), code="DS-ADP-016"
        )
    if compat == EXACT and coverage == "full":
        raise ScriptValueError(
            "1.0.17 has no other than the listed APIs", where="api_dump_init(coverage=)", code="DS-ADP-016"
        )
    return compat == EXACT


def _refuse(kwargs: "Mapping[str, object]") -> None:
    """Refuse unknown keywords; the real tool ignores them, and makes another dump. [spec api_dump 1.1]"""
    for name in kwargs:
        known = ("net", "output_path", "retain_backward", "compare_statedict", "coverage", "compat")
        raise ScriptTypeError(
            f"there is no argument {name!r}",
            where="api_dump_init",
            allowed=known,
            nearest=nearest(name, known),
            code="DS-ADP-016",
        )


def _framework(net: object) -> str:
    """Return the framework of a network, among those that are imported."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(net, torch.nn.Module):
        return "torch"
    cells = sys.modules.get("dumpsim.frontends.mindspore.nn")
    if cells is not None and isinstance(net, cells.Cell):
        return "mindspore"
    roots = {cls.__module__.partition(".")[0] for cls in type(net).__mro__}
    hint = next((text for root, text in _ELSEWHERE.items() if root in roots), "")
    raise ScriptTypeError(
        f"net is {type(net)}{hint}",
        vendor="For 'troubleshooter.api_dump.init' function, the type of argument 'net' must be mindspore.nn.Cell, "
        f"torch.nn.Module or mindtorch.torch.nn.Module, but got {type(net)}.",
        where="api_dump_init(net=)",
        code="DS-ADP-017",
    )


def _open(framework: str, net: Any, path: str, **kwargs: Any) -> Any:
    if framework == "torch":
        from dumpsim.frontends.apidump.pytorch.session import Session

        return Session(net, path, **kwargs)
    from dumpsim.frontends.apidump.mindspore.session import CellSession

    return CellSession(net, path, **kwargs)


def _attention(text: str) -> None:
    LOG.warning("[*User Attention*] %s", text)
