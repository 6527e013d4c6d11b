"""`import mindspore` under `dumpsim run`."""

import os
import subprocess
import sys
import textwrap

import pytest

from dumpsim.core.settings import RunSettings
from dumpsim.emulate import environment


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
