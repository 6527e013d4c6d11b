"""Runs at the start of every process under `dumpsim run`: installs the import aliases, then runs the next one."""

import atexit
import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))

if os.environ.get("DUMPSIM_RUN"):
    from dumpsim.core.settings import RunSettings
    from dumpsim.emulate import failure, install, report_no_dump, seed

    install()
    failure.install()
    _settings = RunSettings.from_environment()
    seed(_settings)
    if os.environ.get("MINDSPORE_DUMP_CONFIG") and not _settings.quiet:
        atexit.register(report_no_dump)

# run the sitecustomize that this one hides
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != _HERE]
_next = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
if _next is not None and _next.loader is not None:
    _module = importlib.util.module_from_spec(_next)
    sys.modules["sitecustomize"] = _module
    _next.loader.exec_module(_module)
