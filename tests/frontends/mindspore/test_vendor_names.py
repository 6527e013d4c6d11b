"""Every name of the real MindSpore 2.10 can be imported, and raises an error when used if it is not emulated."""

import ast
import contextlib
import enum
import importlib
import subprocess
import sys
import textwrap
import types
from pathlib import Path

import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.errors import UnsupportedError
from dumpsim.core.settings import RunSettings
from dumpsim.emulate import environment
from dumpsim.frontends.mindspore import Tensor, _standin, _vendor, nn, ops
from dumpsim.frontends.mindspore._standin import vendor_module, vendored

PACKAGE = Path(ms.__file__).parent


def run(code):
    env = environment(RunSettings(manifest=None, quiet=True))
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, env=env)


def test_every_name_of_every_module_imports():
    """Import statements return the module, and the module has each of the recorded names."""
    result = run(
        """
        from importlib import import_module
        from dumpsim.frontends.mindspore import _vendor

        wanted = missing = 0
        for path in _vendor._record():
            module = import_module(path)
            for name in _vendor.entries(path):
                wanted += 1
                try:
                    getattr(module, name)
                except Exception as error:
                    missing += 1
                    print(path, name, repr(error))
        print(wanted, missing)
        """
    )
    assert result.returncode == 0, result.stderr[-2000:]
    wanted, missing = map(int, result.stdout.split()[-2:])
    assert missing == 0, result.stdout[-2000:]
    assert (len(_vendor._record()), wanted) == (1486, 43411)


def test_star_imports_give_what_the_vendor_exports():
    result = run(
        """
        from dumpsim.frontends.mindspore import _vendor

        for path in _vendor._record():
            wanted = _vendor.exported(path)
            if wanted:
                space = {}
                exec(f"from {path} import *", space)
                lost = sorted(set(wanted) - set(space))
                if lost:
                    print(path, lost)
        """
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert result.stdout == ""


def test_importing_networks_does_not_read_the_record():
    result = run(
        """
        import mindspore as ms
        from mindspore import Tensor, nn, ops, context, dataset, train, amp
        from mindspore.common.initializer import initializer
        from dumpsim.frontends.mindspore import _vendor

        class Net(nn.Cell):
            def __init__(self):
                super().__init__()
                self.dense = nn.Dense(2, 3)

            def construct(self, x):
                return ops.relu(self.dense(x))

        Net()(Tensor([[1.0, 2.0]], ms.float32)).asnumpy()
        print(_vendor._record.cache_info().currsize)
        """
    )
    assert result.stdout == "0\n", result.stderr


def test_an_unknown_name_is_an_attribute_error_as_in_python():
    assert not hasattr(ms, "nonsense")
    with pytest.raises(AttributeError, match=r"module 'mindspore.ops' has no attribute 'concatt' \(did you mean"):
        ops.concatt  # noqa: B018
    with pytest.raises(AttributeError, match=r"has no attribute '_constantz' \(did you mean '_constants'\?\)"):
        ops._constantz  # noqa: B018
    with pytest.raises(AttributeError, match=r"has no attribute '_relu'$"):  # no public name is close to it
        ops._relu  # noqa: B018
    result = run("from mindspore.ops import concatt")
    assert "ImportError: cannot import name 'concatt' from 'dumpsim.frontends.mindspore.ops'" in result.stderr
    result = run("import mindspore.ops.operations.nn_opps")
    assert "ModuleNotFoundError" in result.stderr.replace("AliasImportError", "ModuleNotFoundError")
    assert "did you mean 'mindspore.ops.operations.nn_ops'?" in result.stderr


MODULES = sorted(
    path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if "\ndef __getattr__(" in path.read_text("utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_no_module_has_an_unknown_name(name):
    """Modules that look up the vendor's names have no other names."""
    root = "dumpsim.frontends.mindspore"
    module = importlib.import_module(root if name == "__init__" else f"{root}.{name}")
    assert not hasattr(module, "no_such_name_at_all")


def test_a_class_can_be_subclassed_but_not_instantiated():
    for use in (nn.InstanceNorm2d, type("Mine", (nn.InstanceNorm2d,), {})):
        assert issubclass(use, nn.Cell)
        with pytest.raises(UnsupportedError, match=r"mindspore\.nn: InstanceNorm2d is not emulated, nearest is nn\."):
            use(3)
    assert not isinstance(nn.Dense(1, 1), nn.InstanceNorm2d)
    assert ms.CSRTensor is vendored("mindspore.common.sparse_tensor", "CSRTensor")
    assert not isinstance(Tensor([1.0]), (ms.CSRTensor, ms.COOTensor, ms.RowTensor))


def test_a_function_refuses_when_it_is_called_or_decorates():
    with pytest.raises(UnsupportedError, match=r"mindspore: export is not emulated, nearest is save_checkpoint"):
        ms.export(nn.Dense(1, 1), file_name="net")
    with pytest.raises(UnsupportedError, match=r"mindspore\.ops: fold is not emulated"):
        ops.fold(Tensor([1.0]))


def test_the_nearest_name_is_by_meaning_then_by_spelling():
    with pytest.raises(UnsupportedError, match=r"Lamb is not emulated, nearest is nn\.AdamWeightDecay"):
        nn.Lamb([])
    with pytest.raises(UnsupportedError, match=r"bitwise_left_shift is not emulated"):
        ops.bitwise_left_shift(1, 2)
    with pytest.raises(UnsupportedError, match=r"AdaptiveMaxPool3D is not emulated, nearest is ops\.Adaptive"):
        ops.AdaptiveMaxPool3D(1)


def test_exceptions_are_raised_and_caught():
    recorded = vendor_module("mindspore.mindrecord.common.exceptions").MRMOpenError
    assert issubclass(recorded, Exception)
    with pytest.raises(recorded):
        raise recorded("file")
    with pytest.raises(ZeroDivisionError), contextlib.suppress(recorded):
        _ = 1 / 0


def test_constants_enums_and_sequences_have_the_vendors_values():
    quant = ms.common.dtype.QuantDtype
    assert issubclass(quant, enum.Enum)
    assert quant["INT8"].name == "INT8"
    assert vendored("mindspore.numpy.array_creations", "pi") == 3.141592653589793
    first, second = (vendored("mindspore.common.dtype", "float_type") for _ in range(2))
    assert ms.float32 in first
    assert first == second
    assert vendored("mindspore._c_expression", "OpDtype").DT_END == 25


def own(kind):
    """Entries of a kind whose objects the front end defines itself."""
    homes = {(module, name): entry for module in _vendor._record() for name, entry in _vendor.defined(module).items()}
    found = {home: _standin._emulated(home) for home, entry in homes.items() if entry.kind == kind}
    return [
        (".".join(home), homes[home].detail, value) for home, value in found.items() if value is not _standin._MISSING
    ]


def test_constants_and_enums_of_the_front_end_have_the_vendors_values():
    different = {}
    for path, detail, value in own("data"):
        if value != (literal := ast.literal_eval(detail)) or type(value) is not type(literal):
            different[path] = (value, literal)
    for path, (base, members), value in own("enum"):
        shown = {name: repr(getattr(one, "value", one)) for name, one in value.__members__.items()}
        if shown != members:
            different[path] = (shown, base, members)
    assert len(own("data")) > 20
    assert len(own("enum")) > 5
    different.pop("mindspore.__version__")  # that of the profile
    assert different == {}


def test_modules_are_modules_and_other_packages_are_themselves():
    import numpy as np

    quant = vendor_module("mindspore.ops.operations._quant_ops")
    assert isinstance(quant, types.ModuleType)
    assert "FakeQuantPerLayer" in dir(quant)
    assert vendored("mindspore.nn.layer.basic", "np") is np
    assert vendored("mindspore.nn.layer.basic", "Parameter") is ms.Parameter
    assert vendored("mindspore.boost.less_batch_normalization", "P") is ops.operations
    assert vendored("mindspore.nn.optim.lamb", "absolute_import").compiler_flag


def test_what_the_front_end_has_is_found_under_every_name_of_the_vendor():
    assert vendored("mindspore.ops.operations._inner_ops", "Tensor") is Tensor
    assert vendor_module("mindspore.nn.layer.padding").Cell is nn.Cell
    assert vendored("mindspore.ops.auto_generate.gen_ops_prim", "ReduceSum") is ops.ReduceSum
    summed = vendored("mindspore._extends.parse.standard_method", "_reduce_sum_keepdims")
    assert isinstance(summed, ops.ReduceSum)
    assert summed(Tensor([[1.0, 2.0]]), 1).shape == (1, 1)


def test_an_object_of_the_vendor_refuses_when_it_is_used():
    mgrid = vendor_module("mindspore.numpy").mgrid
    assert isinstance(mgrid, vendor_module("mindspore.numpy.array_creations").MGridClass)
    for use in (lambda: mgrid[0:5], mgrid, lambda: list(mgrid)):
        with pytest.raises(UnsupportedError, match=r"mindspore\.numpy: mgrid is not emulated"):
            use()
    assert not hasattr(mgrid, "shape")
