"""The directories of a whole graph's dump. [spec mindspore 3.1] [seed 001]

::

    {path}/acl_dump_{device_id}.json                                                      O2 only
    {path}/{step}/{YYYYMMDDhhmmss}/{device_id}/{model_name}/{model_id}/{iteration}/...    GE: without the step
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from dumpsim.archive.naming import escape
from dumpsim.archive.tree import newest_stamp

__all__ = ["ModelTree"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTree:
    """The paths of one device's dump.

    Examples
    --------
    >>> tree = ModelTree(path="/data/dump/", device_id=0, step_level=True)
    >>> tree.data(3, 1_700_000_000 * 10**9, "kernel_graph1", 2, 3)
    '/data/dump/3/20231114221320/0/kernel_graph1/2/3'
    >>> tree.acl_json
    'acl_dump_0.json'
    """

    path: str
    device_id: int
    step_level: bool

    @property
    def root(self) -> str:
        """The common directory of all devices."""
        return self.path.rstrip("/")

    @property
    def acl_json(self) -> str:
        """Name of the file that passes each step's settings to ACL."""
        return f"acl_dump_{self.device_id}.json"

    def step(self, number: int) -> str:
        """Return the directory of a step, which is the dump path for ACL."""
        return f"{self.root}/{number}"

    def data(self, step: int, time_ns: int, model_name: str, model_id: int, iteration: int) -> str:
        """Return the directory of one model's tensors in one iteration; the time is UTC."""
        base = self.step(step) if self.step_level else self.root
        return f"{self.singles(time_ns, base)}/{escape(model_name)}/{model_id}/{iteration}"

    def singles(self, time_ns: int, base: str = "") -> str:
        """Return the directory of single operators, which run outside of models; the time is UTC."""
        when = datetime.fromtimestamp(time_ns // 10**9, UTC)
        return f"{base or self.root}/{when:%Y%m%d%H%M%S}/{self.device_id}"

    def devices(self) -> Iterator[str]:
        """Iterate over existing directories of this device."""
        levels = 2 if self.step_level else 1
        for path in _levels(self.root, levels):
            found = f"{path}/{self.device_id}"
            if os.path.isdir(found):
                yield found

    def exists(self) -> bool:
        """Return whether a dump of this device exists."""
        return os.path.lexists(f"{self.root}/{self.acl_json}") or next(self.devices(), None) is not None

    def newest_stamp(self) -> int:
        """Return the largest time stamp in names and rows of this device; 0 if there is none."""
        return max((newest_stamp(device) for device in self.devices()), default=0)


def _levels(path: str, depth: int) -> Iterator[str]:
    """Iterate over the directories `depth` levels below a directory whose names are numbers."""
    if depth == 0:
        yield path
        return
    for name in sorted(os.listdir(path)) if os.path.isdir(path) else ():
        if name.isdigit():
            yield from _levels(f"{path}/{name}", depth - 1)
