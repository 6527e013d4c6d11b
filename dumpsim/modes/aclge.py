"""GE's own validator of an ACL config, which runs after ADUMP's on the same file. [spec ge 2, 2.3 step 6, 8.10]

It repeats most of ADUMP's checks less strictly; only the checks that refuse what ADUMP accepts are here.
[source runtime/v1/common/dump/dump_callback.cc]
"""

import re
from collections.abc import Iterator

from dumpsim.modes.aclchecks import IP_PATH, is_address, section, text
from dumpsim.modes.aclitems import DUMP
from dumpsim.modes.dialect import Check, Draft, Finding, shown

__all__ = ["GE"]

_CODE = "100009"  # ACL_GE_INVALID_DUMP_CONFIG
_OUTSIDE = re.compile(r"[^A-Za-z0-9\-=\[\];\\,./!@#$%^&*()_+{}:?]")


def _refused(item: str, what: str, text: str) -> Finding:
    """Make an error with GE's error number."""
    return Finding(level="error", code="DS-ACL-006", where=f"$.{DUMP}.{item}", what=what, vendor=f"{_CODE}: {text}")


def _path(draft: Draft) -> Iterator[Finding]:
    """Check the characters of a path, also of one without an address."""
    path = text(draft, "dump_path")
    if not path or text(draft, "dump_scene"):
        return  # with a scene, GE checks nothing else
    found = IP_PATH.fullmatch(path)
    if found and is_address(found["host"]):
        return  # ADUMP has checked the rest
    odd = _OUTSIDE.search(path.encode().decode("latin-1"))
    if odd is not None:
        what = f"{shown(path)} holds a character that GE does not take at position {odd.start()}"
        yield _refused("dump_path", what, f"invalid dump_path [{path}] in dump config at {odd.start()}")


def _debug(draft: Draft) -> Iterator[Finding]:
    """Check that an overflow dump has no list."""
    if text(draft, "dump_debug") == "on" and not text(draft, "dump_scene") and section(draft).get("dump_list"):
        what = "an overflow dump (dump_debug on) takes no dump_list"
        yield _refused("dump_list", what, "nonsupport dump model when open dump overflow detection")


GE: tuple[Check, ...] = (Check("GE: path", _path), Check("GE: overflow and list", _debug))
