"""`import mindspore` under `dumpsim run`."""

import importlib
import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from dumpsim import emulate
from dumpsim.core.errors import UnsupportedError
from dumpsim.core.settings import VARIABLE, RunSettings
from dumpsim.emulate import ALIASES, AliasFinder, AliasImportError, environment, install, report_no_dump, seed
from dumpsim.frontends.mindspore._standin import StandInModule
from dumpsim.testing.imports import aliased
from dumpsim.testing.randomness import restored


def run(code, **options):
    env = environment(RunSettings(manifest=None, quiet=True), {"PATH": os.environ["PATH"], **options.pop("env", {})})
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60, env=env, **options
    )


def test_the_alias_is_the_very_module():
    result = run(
        """
        import sys
        import mindspore, mindspore.nn, mindspore.common.tensor
        import dumpsim.frontends.mindspore as real
        import dumpsim.frontends.mindspore.nn, dumpsim.frontends.mindspore.common.tensor
        assert mindspore is real
        assert mindspore.nn is sys.modules["dumpsim.frontends.mindspore.nn"]
        assert sys.modules["mindspore.common.tensor"] is real.common.tensor
        assert real.nn.__spec__.name == "dumpsim.frontends.mindspore.nn"
        from mindspore import Tensor
        from mindspore.common.tensor import Tensor as Other
        assert Tensor is Other is real.Tensor
        """
    )
    assert result.returncode == 0, result.stderr


def test_child_processes_have_it_too():
    result = run(
        """
        import subprocess, sys
        print(subprocess.check_output([sys.executable, "-c", "import mindspore; print(mindspore.__name__)"], text=True))
        """
    )
    assert "dumpsim.frontends.mindspore" in result.stdout, result.stderr


def test_a_module_that_is_not_there_is_named():
    result = run("import mindspore.no_such_module")
    assert "mindspore.no_such_module" in result.stderr
    assert "AliasImportError" in result.stderr


def test_another_sitecustomize_still_runs(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('mine')\n")
    result = run("import mindspore", env={"PYTHONPATH": str(tmp_path)})
    assert result.stdout == "mine\n", result.stderr


def test_nothing_is_aliased_without_it():
    code = "import dumpsim, importlib.util, sys; sys.exit(importlib.util.find_spec('mindspore') is not None)"
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "DUMPSIM_RUN")}
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if subprocess.run([sys.executable, "-c", code], env=env | {"PYTHONPATH": root}, check=False).returncode:
        pytest.fail("import dumpsim made mindspore importable")


def test_import_dumpsim_loads_no_third_party_package():
    code = """
    import sys
    before = set(sys.modules)
    import dumpsim
    import dumpsim.core.errors, dumpsim.core.dtype, dumpsim.core.settings, dumpsim.core.irdoc, dumpsim.core.events
    names = {name.partition(".")[0] for name in set(sys.modules) - before}
    print(sorted(names - set(sys.stdlib_module_names) - {"dumpsim"}))
    """
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": root}
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, env=env, check=True
    )
    assert result.stdout.strip() == "[]"


def test_what_the_script_does_not_seed_is_the_same_in_every_run():
    code = "import random, numpy; print(random.random(), numpy.random.rand(), list({'a', 'b', 'c', 'd'}))"
    first, second = run(code), run(code)
    assert first.stdout == second.stdout != ""
    other = environment(RunSettings(seed=7), {"PATH": os.environ["PATH"]})
    assert subprocess.check_output([sys.executable, "-c", code], env=other, text=True) != first.stdout


HERE = Path(emulate.__file__).parent
ROOT = str(HERE.parents[1])


def test_variables_of_a_process_under_run(monkeypatch):
    settings = RunSettings(seed=7)
    threads = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    always = {VARIABLE: settings.to_text(), "DUMPSIM_PYTHON": sys.executable, **dict.fromkeys(threads, "1")}
    given = {
        "PATH": f"/a:{HERE}/bin:/b",
        "PYTHONPATH": "/mine",
        "MKL_NUM_THREADS": "4",
        "PYTHONHASHSEED": "5",
        "X": "y",
    }
    assert environment(settings, given) == {
        **always, "PATH": f"{HERE}/bin:/a:/b", "PYTHONPATH": f"{HERE}/site:{ROOT}:/mine", "MKL_NUM_THREADS": "4",
        "PYTHONHASHSEED": "5", "X": "y",
    }  # fmt: skip
    assert environment(settings, {}) == {
        **always, "PATH": f"{HERE}/bin:{os.defpath}", "PYTHONPATH": f"{HERE}/site:{ROOT}", "PYTHONHASHSEED": "0",
    }  # fmt: skip
    assert given["PATH"] == f"/a:{HERE}/bin:/b"  # is left as it was
    monkeypatch.setattr(emulate, "_site_directories", lambda: {ROOT})  # an installed package needs no path
    assert environment(settings, {"PYTHONPATH": ""})["PYTHONPATH"] == f"{HERE}/site"
    monkeypatch.setenv("DUMPSIM_TEST_OF_OWN", "1")
    assert environment(settings)["DUMPSIM_TEST_OF_OWN"] == "1"


def test_where_packages_are_installed():
    assert str(Path(np.__file__).parents[1]) in emulate._site_directories()
    assert ROOT not in emulate._site_directories() or "site-packages" in ROOT


def test_the_package_lists_what_it_exports():
    import dumpsim

    assert dir(dumpsim) == sorted(dumpsim.__all__)


def test_both_generators_start_from_the_seed():
    with restored():
        seed(RunSettings(seed=3))
        found = random.random(), np.random.rand()
        assert found == (random.Random(3).random(), np.random.RandomState(3).rand())


@pytest.mark.parametrize(
    ("loaded", "compiled", "said"),
    [((), None, False), (("",), None, True), (("", "._dumping"), False, True), (("", "._dumping"), True, False)],
)
def test_a_process_that_dumped_nothing_says_so(monkeypatch, capsys, loaded, compiled, said):
    for name in ("", "._dumping"):
        monkeypatch.delitem(sys.modules, ALIASES["mindspore"] + name, raising=False)
    for name in loaded:
        module = SimpleNamespace(has_compiled=lambda: compiled)
        monkeypatch.setitem(sys.modules, ALIASES["mindspore"] + name, module)
    report_no_dump()
    text = "nothing was dumped: no graph was compiled (PYNATIVE dumps what jit compiles, and backward graphs)"
    assert capsys.readouterr() == ("", f"dumpsim: {text}\n" if said else "")


def test_the_finder_is_put_first_and_once(monkeypatch):
    others = [finder for finder in sys.meta_path if not isinstance(finder, AliasFinder)]
    monkeypatch.setattr(sys, "meta_path", list(others))
    finder, other = install(), install({"other": "dumpsim.core"})
    assert finder.aliases == ALIASES
    assert install() is finder
    assert install({"other": "dumpsim.core"}) is other
    assert sys.meta_path == [other, finder, *others]
    assert finder.find_spec("numpy") is None
    assert finder.find_spec("mindsporex.nn") is None
    assert finder.find_spec("mindspore").submodule_search_locations == []
    assert finder.find_spec("mindspore.common.dtype").submodule_search_locations is None


@pytest.mark.parametrize("name", ["mindspore.common.dtype", "torchair", "troubleshooter.migrator"])
def test_a_module_of_mindspore_exports_all_names_of_the_vendor_and_one_of_others_its_own(name):
    root, _, rest = name.partition(".")
    module = ModuleType(f"{ALIASES[root]}.{rest}" if rest else ALIASES[root])  # as it is when it is first imported
    module.__all__ = ["own"]
    loader = AliasFinder(ALIASES).find_spec(name).loader
    loader.exec_module(module)
    assert module.__all__[0] == "own"
    assert ("bfloat16" in module.__all__) is (root == "mindspore")


def test_a_module_that_only_the_vendor_has_stays_a_stand_in():
    with aliased():
        assert isinstance(importlib.import_module("mindspore.rewrite"), StandInModule)


def test_modules_under_their_two_names_in_this_process():
    with aliased():
        aliased_type = importlib.import_module("mindspore.common.dtype")
        assert aliased_type is importlib.import_module("dumpsim.frontends.mindspore.common.dtype")
        assert aliased_type.__spec__.name == "dumpsim.frontends.mindspore.common.dtype"
        names = {}
        exec("from mindspore.common.dtype import *", names)
        assert {"float16", "bfloat16", "int32"} <= names.keys()
        # of the vendor alone: it can be imported, and nothing in it is there
        assert importlib.import_module("mindspore.rewrite").__name__.endswith("mindspore.rewrite")
        for name in ("mindspore.no_such", "troubleshooter.no_such"):
            with pytest.raises(AliasImportError, match=name) as caught:
                importlib.import_module(name)
            assert caught.value.code == "DS-EMU-001"
            assert isinstance(caught.value, ModuleNotFoundError)


@pytest.mark.parametrize("name", ["troubleshooter", "troubleshooter.migrator"])
def test_what_troubleshooter_has_and_the_emulation_has_not_is_refused_by_name(name):
    module = importlib.import_module(name.replace("troubleshooter", ALIASES["troubleshooter"]))
    for absent in ("FRAMEWORK_TYPE", "save", "save_grad"):
        with pytest.raises(UnsupportedError, match=rf"^{name}\.{absent} is not emulated \[DS-EMU-002\]$"):
            getattr(module, absent)
    with pytest.raises(AttributeError, match=f"^module '{name}' has no attribute 'sav'$"):
        _ = module.sav
    assert not any(hasattr(module, absent) for absent in ("__wrapped__", "__path_", "nothing"))
