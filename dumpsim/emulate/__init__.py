"""The import aliases of `dumpsim run`: ``import mindspore`` returns the front end's own module object.

Nothing happens at import of dumpsim; `install` puts one finder at the front of `sys.meta_path`, and `environment` makes
child processes do the same.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from dumpsim.core.errors import DumpsimError
from dumpsim.core.settings import VARIABLE, RunSettings

__all__ = ["ALIASES", "AliasFinder", "AliasImportError", "environment", "install", "report_no_dump", "seed"]

# package that scripts import -> package that they get
ALIASES = {
    "mindspore": "dumpsim.frontends.mindspore",
    "troubleshooter": "dumpsim.emulate.troubleshooter",
    "torchair": "dumpsim.frontends.torchair",
    "torch_npu": "dumpsim.frontends.torchair.torch_npu",
}

# a fixed number of BLAS threads: sums would differ between machines otherwise [design: bit-identical]
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class AliasImportError(DumpsimError, ModuleNotFoundError):
    """Neither the emulation nor real MindSpore has the module."""


class _AliasLoader(Loader):
    """Returns a module that is already loaded under another name."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.own_spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self.target)
        self.own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # the import system has just overwritten `__spec__`; relative imports need the module's own
        module.__spec__ = self.own_spec
        if self.target == ALIASES["torch_npu"]:
            module.install()  # again, if an earlier test removed the names
        if type(module) is ModuleType and self.target.startswith(ALIASES["mindspore"]):
            from dumpsim.frontends.mindspore._standin import ScriptModule

            module.__class__ = ScriptModule


def _stand_in(fullname: str) -> ModuleType:
    """Return a stand-in for a module that the real package has and the emulation does not."""
    if fullname.partition(".")[0] != "mindspore":
        raise AliasImportError(f"the emulation has no module {fullname!r}", code="DS-EMU-001")
    from dumpsim.frontends.mindspore._standin import vendor_module

    try:
        return vendor_module(fullname)
    except ModuleNotFoundError as error:
        raise AliasImportError(str(error), code="DS-EMU-001") from None


class AliasFinder(MetaPathFinder):
    """Finds ``mindspore.x.y`` as ``dumpsim.frontends.mindspore.x.y``."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self.aliases = dict(aliases)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        root, _, rest = fullname.partition(".")
        if root not in self.aliases:
            return None
        name = f"{self.aliases[root]}.{rest}" if rest else self.aliases[root]
        try:
            found = find_spec(name)
        except ModuleNotFoundError:  # its parent is not a package here
            found = None
        if found is None:
            found = _stand_in(fullname).__spec__
            assert found is not None
        return ModuleSpec(fullname, _AliasLoader(name), is_package=found.submodule_search_locations is not None)


def install(aliases: Mapping[str, str] = ALIASES) -> AliasFinder:
    """Put the finder first on `sys.meta_path`; a second call changes nothing.

    Returns
    -------
    AliasFinder
        The installed finder; `sys.meta_path.remove` removes it.
    """
    for finder in sys.meta_path:
        if isinstance(finder, AliasFinder) and finder.aliases == dict(aliases):
            return finder
    finder = AliasFinder(aliases)
    sys.meta_path.insert(0, finder)
    return finder


def environment(settings: RunSettings, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a process that runs a script on the emulated machine.

    Examples
    --------
    >>> env = environment(RunSettings(device="cpu"), {"PYTHONPATH": "/home/me/lib"})
    >>> env["PYTHONPATH"].endswith("/home/me/lib"), env["OMP_NUM_THREADS"]
    (True, '1')
    """
    result = dict(os.environ if base is None else base)
    site = str(Path(__file__).parent / "site")
    package_root = str(Path(__file__).parents[2])
    paths = [site]
    if find_spec("dumpsim") is not None and package_root not in _site_directories():
        paths.append(package_root)  # so that a checkout is importable from any working directory
    result["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, [result.get("PYTHONPATH")])])
    result[VARIABLE] = settings.to_text()
    commands = str(Path(__file__).parent / "bin")  # msrun for shell scripts
    searched = result.get("PATH", os.defpath).split(os.pathsep)
    result["PATH"] = os.pathsep.join([commands, *(entry for entry in searched if entry != commands)])
    result["DUMPSIM_PYTHON"] = sys.executable
    for name in _ONE_THREAD:
        result.setdefault(name, "1")
    result.setdefault("PYTHONHASHSEED", "0")  # the order of sets of strings must be the same in every run
    return result


def seed(settings: RunSettings) -> None:
    """Seed Python's and numpy's global generators, so that scripts without a seed repeat."""
    import random

    import numpy as np

    random.seed(settings.seed)
    np.random.seed(settings.seed)


def report_no_dump() -> None:
    """Report at the end of a process that no graph was compiled, so that the dump config was not read."""
    if "dumpsim.frontends.mindspore" not in sys.modules:
        return  # an unrelated process, such as a worker of a data set
    dumping = sys.modules.get("dumpsim.frontends.mindspore._dumping")
    if dumping is None or not dumping.has_compiled():
        text = "nothing was dumped: no graph was compiled (PYNATIVE dumps what jit compiles, and backward graphs)"
        print(f"dumpsim: {text}", file=sys.stderr)


def _site_directories() -> set[str]:
    import site
    import sysconfig

    return {*site.getsitepackages(), site.getusersitepackages(), sysconfig.get_path("purelib")}
