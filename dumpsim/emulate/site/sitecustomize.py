"""Runs at the start of every process under `dumpsim run`: installs the import aliases, then hands on."""

import contextlib
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))

if os.environ.get("DUMPSIM_RUN"):
    from dumpsim.emulate import install

    install()

# a sitecustomize that stood behind this one still runs
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != _HERE]
sys.modules.pop("sitecustomize", None)
with contextlib.suppress(ImportError):
    import sitecustomize  # noqa: F401
