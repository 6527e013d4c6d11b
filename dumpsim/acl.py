"""ACL's dump calls: dump the models of a script by an ACL config, as ``aclmdlSetDump`` does.

Examples
--------
A script under ``dumpsim run``, before its first model is compiled::

    from dumpsim import acl

    acl.set_dump("acl.json")

``dumpsim check acl.json --dialect acl`` looks at the config first.
"""

from dumpsim.frontends.acl.dump import finalize_dump, set_dump

__all__ = ["finalize_dump", "set_dump"]
