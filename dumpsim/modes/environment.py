"""The dump that the environment of a MindSpore process configures. [spec mindspore 1.1, 1.5]"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dumpsim.core.errors import DumpConfigError
from dumpsim.modes.configfile import CONFIG_VARIABLE, load, read_file
from dumpsim.modes.profile import Profile, device_of, find
from dumpsim.modes.readers import PATH_VARIABLE
from dumpsim.modes.request import DumpRequest

__all__ = ["READ_ONCE", "Asked", "read_environment"]

READ_ONCE = (CONFIG_VARIABLE, PATH_VARIABLE)  # variables whose later changes have no effect
_GE = "ENABLE_MS_GE_DUMP"
_IGNORE_USELESS = "MINDSPORE_DUMP_IGNORE_USELESS_OUTPUT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request, its profile, and warnings: the vendor's function and the text."""

    profile: Profile
    request: DumpRequest
    warnings: tuple[tuple[str, str], ...] = ()


def read_environment(
    environment: Mapping[str, str],
    *,
    release: str,
    target: str,
    jit_level: str = "O0",
    device_id: int = 0,
    exception_dump: str = "",
    overrides: Mapping[str, str] | None = None,
) -> Asked | None:
    """Return the dump that an environment configures; None if there is none.

    Parameters
    ----------
    environment : mapping
        ``MINDSPORE_DUMP_CONFIG``, ``MS_DIAGNOSTIC_DATA_PATH``, ``MINDSPORE_DUMP_IGNORE_USELESS_OUTPUT``,
        ``ENABLE_MS_GE_DUMP``.
    release, target, jit_level : str
        ``seed``, ``2.7`` or ``2.10``; ``Ascend``, ``GPU`` or ``CPU``; ``O0``, ``O1`` or ``O2``.
    device_id : int
        Device, for ``support_device``.
    exception_dump : str
        ``exception_dump`` of the context's ``ascend_config``; "" if the script does not set it.
    overrides : mapping of str to str, optional
        Fields of the profile to change.

    Raises
    ------
    DumpConfigError
        For a config that the vendor refuses.
    UnsupportedError
        For modes that the release has removed.

    Examples
    --------
    >>> import json, tempfile
    >>> config = {"common_dump_settings": {"dump_mode": 0, "path": "/data", "net_name": "Net", "iteration": "all",
    ...           "input_output": 2, "kernels": [], "support_device": [0]}, "e2e_dump_settings": {"enable": True}}
    >>> with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
    ...     json.dump(config, file)
    ...     file.flush()
    ...     asked = read_environment({"MINDSPORE_DUMP_CONFIG": file.name}, release="seed", target="CPU")
    >>> asked.profile.name, asked.request.net_name, asked.request.inputs, asked.request.outputs
    ('seed/cpu', 'Net', False, True)
    """
    found = read_file(environment)
    if found is None:
        return None
    file, text = found
    ge = environment.get(_GE) == "1"
    profile = find(release, device_of(target, jit_level, ge=ge), overrides)
    request, findings = load(text, environment, profile, device_id=device_id, file=file)
    warnings = [(finding.function, finding.text) for finding in findings]
    if ge and profile.dialect != "graph":
        warnings.append(("", f"{_GE} has no effect: it belongs to Ascend with jit_level O2"))
    if profile.dialect == "graph" and exception_dump == "2":
        raise DumpConfigError(
            "the lite exception dump and the dump of whole graphs exclude each other",
            where='set_context(ascend_config={"exception_dump": "2"})',
            allowed=("0", "1"),
            nearest="1",
            code="DS-DMP-005",
        )
    ignored = environment.get(_IGNORE_USELESS, "1")
    if ignored not in ("0", "1"):
        text_ = f"{_IGNORE_USELESS} should be 0 or 1, but got {ignored!r}; the default 1 is used"
        warnings.append(("", text_))
    request = replace(request, useless_outputs=ignored == "0")
    return Asked(profile=profile, request=request, warnings=tuple(warnings))
