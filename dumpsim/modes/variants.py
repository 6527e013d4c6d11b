"""Configs that dump less than a given one: with one change, if the vendor's dialect allows it."""

import json
from collections.abc import Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any

from dumpsim.core.errors import DumpsimError
from dumpsim.modes.conditions import COMMON, E2E
from dumpsim.modes.configfile import load
from dumpsim.modes.profile import Profile
from dumpsim.modes.request import DumpRequest

__all__ = ["SAMPLE", "dumping_devices", "smaller"]

SAMPLE = 100  # elements of a sampled tensor
# label -> fields by section
_CHANGES: Mapping[str, tuple[tuple[str, Mapping[str, Any]], ...]] = MappingProxyType(
    {
        'saved_data: "statistic"': ((COMMON, {"saved_data": "statistic"}),),
        "input_output: 2 (outputs only)": ((COMMON, {"input_output": 2}),),
        f"sample_mode: 1, sample_num: {SAMPLE}": ((E2E, {"sample_mode": 1, "sample_num": SAMPLE}),),
        "op_debug_mode: 3 (overflows only)": ((COMMON, {"op_debug_mode": 3}),),
    }
)


def smaller(
    text: bytes, environment: Mapping[str, str], profile: Profile, *, device_id: int = 0
) -> tuple[tuple[str, DumpRequest], ...]:
    """Return requests of configs that may dump less, with labels of the changes.

    Parameters
    ----------
    text : bytes
        The config.
    environment, profile, device_id
        As for `dumpsim.modes.configfile.load`.

    Examples
    --------
    >>> from dumpsim.modes.profile import find
    >>> config = {"common_dump_settings": {"dump_mode": 0, "path": "/d", "net_name": "Net", "iteration": "0",
    ...           "input_output": 0, "kernels": [], "support_device": [0]}, "e2e_dump_settings": {"enable": True}}
    >>> [label for label, _ in smaller(json.dumps(config).encode(), {}, find("2.7", "cpu"))]
    ['input_output: 2 (outputs only)', 'op_debug_mode: 3 (overflows only)']
    """
    try:
        document = json.loads(text)
        given, _ = load(text, environment, profile, device_id=device_id)
    except (DumpsimError, ValueError):
        return ()
    found = []
    for label, changes in _CHANGES.items():
        changed = deepcopy(document)
        for section, fields in changes:
            changed.setdefault(section, {}).update(fields)
        try:
            request, _ = load(json.dumps(changed).encode(), environment, profile, device_id=device_id)
        except DumpsimError:
            continue  # this device or release does not have it
        if _differs(request, given):
            found.append((label, request))
    return tuple(found)


def dumping_devices(text: bytes, environment: Mapping[str, str], profile: Profile, devices: int) -> tuple[int, ...]:
    """Return the devices of a server that ``support_device`` lists.

    Raises
    ------
    DumpConfigError
        For a config that the vendor rejects.
    """
    return tuple(
        device for device in range(devices) if load(text, environment, profile, device_id=device)[0].disabled is None
    )


def _differs(one: DumpRequest, other: DumpRequest) -> bool:
    """Return whether two requests dump different tensors."""
    fields = ("inputs", "outputs", "trigger", "tensors", "statistics", "sample")
    return any(getattr(one, name) != getattr(other, name) for name in fields)
