"""The import aliases of `dumpsim run`: ``import mindspore`` gives the front end's module, the very same object.

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

__all__ = ["ALIASES", "AliasFinder", "AliasImportError", "environment", "install", "seed", "tell_of_no_dump"]

# package that scripts import -> package that answers
ALIASES = {
    "mindspore": "dumpsim.frontends.mindspore",
    "troubleshooter": "dumpsim.emulate.troubleshooter",
    "torchair": "dumpsim.frontends.torchair",
    "torch_npu": "dumpsim.frontends.torchair.torch_npu",
}

# numpy's BLAS must not choose its threads by the machine: sums would differ from run to run [design: bit-identical]
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


class AliasImportError(DumpsimError, ModuleNotFoundError):
    """The emulation has no such module, and the real MindSpore has none either."""


class _AliasLoader(Loader):
    """Hands out a module that another name already has."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.own_spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self.target)
        self.own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # the import system has just overwritten it; relative imports of the module need its own
        module.__spec__ = self.own_spec
        if self.target == ALIASES["torch_npu"]:
            module.install()  # again where a test before has taken the names away
        if type(module) is ModuleType and self.target.startswith(ALIASES["mindspore"]):
            from dumpsim.frontends.mindspore._standin import ScriptModule

            module.__class__ = ScriptModule


def _stand_in(fullname: str) -> ModuleType:
    """Return the module for one that the real package has and the emulation does not."""
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
        except ModuleNotFoundError:  # below a module that is not a package here
            found = None
        if found is None:
            found = _stand_in(fullname).__spec__
            assert found is not None
        return ModuleSpec(fullname, _AliasLoader(name), is_package=found.submodule_search_locations is not None)


def install(aliases: Mapping[str, str] = ALIASES) -> AliasFinder:
    """Put the finder in front; a second call finds the first one's and changes nothing.

    Returns
    -------
    AliasFinder
        The finder in place; `sys.meta_path.remove` takes it away.
    """
    for finder in sys.meta_path:
        if isinstance(finder, AliasFinder) and finder.aliases == dict(aliases):
            return finder
    finder = AliasFinder(aliases)
    sys.meta_path.insert(0, finder)
    return finder


def environment(settings: RunSettings, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a process that runs a script on the emulated machine.

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
        paths.append(package_root)  # an in-place checkout must be found from any working directory
    result["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, [result.get("PYTHONPATH")])])
    result[VARIABLE] = settings.to_text()
    commands = str(Path(__file__).parent / "bin")  # msrun of shell lines
    searched = result.get("PATH", os.defpath).split(os.pathsep)
    result["PATH"] = os.pathsep.join([commands, *(entry for entry in searched if entry != commands)])
    result["DUMPSIM_PYTHON"] = sys.executable
    for name in _ONE_THREAD:
        result.setdefault(name, "1")
    result.setdefault("PYTHONHASHSEED", "0")  # a script that walks a set of strings must walk it the same way again
    return result


def seed(settings: RunSettings) -> None:
    """Seed Python's and numpy's global generators: what a script does not seed itself is the same in every run."""
    import random

    import numpy as np

    random.seed(settings.seed)
    np.random.seed(settings.seed)


def tell_of_no_dump() -> None:
    """At the end of a process: say so if nobody read the dump config, as in PYNATIVE without `jit` and gradients."""
    if "dumpsim.frontends.mindspore" not in sys.modules:
        return  # a process that has nothing to do with it, such as a worker of a data set
    dumping = sys.modules.get("dumpsim.frontends.mindspore._dumping")
    if dumping is None or not dumping.asked():
        text = "nothing was dumped: no graph was compiled (PYNATIVE dumps what jit compiles, and backward graphs)"
        print(f"dumpsim: {text}", file=sys.stderr)


def _site_directories() -> set[str]:
    import site
    import sysconfig

    return {*site.getsitepackages(), site.getusersitepackages(), sysconfig.get_path("purelib")}
