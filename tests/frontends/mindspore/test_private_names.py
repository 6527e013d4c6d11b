"""The private names that dump scripts touch work, and missing attributes say that the emulation lacks them."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import VARIABLE, RunSettings
from dumpsim.emulate import environment
from dumpsim.frontends.mindspore import Parameter, Tensor, _checkparam, nn, ops
from dumpsim.frontends.mindspore._c_expression import MSContext, TensorPy, security
from dumpsim.frontends.mindspore.common.api import _cell_graph_executor
from dumpsim.frontends.mindspore.context import get_jit_config
from dumpsim.frontends.mindspore.ops._primitive_cache import _get_cache_prim
from dumpsim.frontends.mindspore.ops.operations import nn_ops
from dumpsim.frontends.mindspore.ops.primitive import _run_op
from dumpsim.ops.table import names


def test_they_import_as_dump_scripts_import_them():
    script = """
    from mindspore._c_expression import MSContext, TensorPy, Tensor as CTensor
    from mindspore._c_expression import security
    from mindspore._c_expression.security import enable_security
    from mindspore._extends.parse import compile_config
    from mindspore._extends.parse.compile_config import CHECK_BPROP
    from mindspore.ops._primitive_cache import _get_cache_prim
    from mindspore.ops.primitive import _run_op
    from mindspore.ops.operations import nn_ops, TensorAdd
    from mindspore.ops.operations.nn_ops import Softmax, LayerNorm
    from mindspore.context import get_jit_config
    from mindspore.common.api import _cell_graph_executor
    from mindspore.common.np_dtype import bfloat16
    from mindspore import _checkparam as validator
    import mindspore
    print(enable_security(), security.enable_security(), isinstance(mindspore.Tensor([1.0]), (TensorPy, CTensor)))
    print(repr(CHECK_BPROP), mindspore.graph.api._cell_graph_executor is _cell_graph_executor)
    """
    env = environment(RunSettings(manifest=None, quiet=True))
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, env=env)
    assert done.stdout == "False False True\n'' True\n", done.stderr


@pytest.mark.parametrize(("device", "chip", "soc"), [("ascend", None, "ascend910b"), ("cpu", None, "")])
def test_the_chip_is_named(monkeypatch, device, chip, soc):
    monkeypatch.setenv(VARIABLE, RunSettings(device=device, chip=chip).to_text())
    assert MSContext.get_instance().get_ascend_soc_version() == soc


def test_settings_by_number():
    from dumpsim.frontends.mindspore._c_expression import ms_ctx_param

    context = MSContext.get_instance()
    context.set_param(ms_ctx_param.max_call_depth, 77)
    assert context.get_param(ms_ctx_param.max_call_depth) == ms.get_context("max_call_depth") == 77
    with pytest.raises(AttributeError, match=r"MSContext\.load_plugin_error is not emulated"):
        context.load_plugin_error  # noqa: B018


def test_primitives_are_made_and_run_by_the_vendors_helpers():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]], ms.float32)
    assert _get_cache_prim(ops.ReduceSum)(True)(x, 1).asnumpy().tolist() == [[3.0], [7.0]]
    assert _run_op(ops.Add(), "Add", (x, x)).asnumpy().tolist() == [[2.0, 4.0], [6.0, 8.0]]
    assert ops.operations.TensorAdd is ops.Add
    assert security.enable_security() is False
    assert TensorPy is Tensor


def test_every_primitive_is_in_every_module_of_operations():
    for name in names():
        assert getattr(nn_ops, name) is getattr(ops.operations, name), name


def test_the_jit_config_is_read_back():
    assert get_jit_config() == {}
    ms.set_context(jit_config={"jit_level": "O0"})
    assert get_jit_config() == {"jit_level": "O0"}


def test_the_executor_of_graphs_compiles_and_runs():
    ms.set_context(mode=ms.GRAPH_MODE)
    net = nn.ReLU()
    x = Tensor([-1.0, 2.0], ms.float32)
    phase, is_new = _cell_graph_executor.compile(net, x, phase="train")
    assert (phase, is_new) == (f"train.{net.create_time}.{id(net)}.{net.arguments_key}", True)
    assert _cell_graph_executor.compile(net, x, phase="train") == (phase, False)
    assert _cell_graph_executor.has_compiled(phase)
    assert _cell_graph_executor(net, x, phase="train").asnumpy().tolist() == [0.0, 2.0]
    with pytest.raises(KeyError, match=r"predict\.\d+\.\d+\.\d+ graph is not exist"):
        _cell_graph_executor(net, x)
    _cell_graph_executor.del_net_res(net, {phase})
    assert not _cell_graph_executor.has_compiled(phase)
    assert not hasattr(_cell_graph_executor, "get_optimize_graph_proto")
    with pytest.raises(AttributeError, match=r"_cell_graph_executor\.export is not emulated"):
        _cell_graph_executor.export()


def c(name, *args):
    return lambda: getattr(_checkparam, name)(*args)


# [observed 2.10]
TEXTS = [
    (c("check_int", 1, 2, 5, "n", "Net"), "For 'Net', the 'n' must be int and must > 2, but got '1' with type 'int'."),
    (c("check_int", 1, 2, 1), "The input value must be int and must = 2, but got '1' with type 'int'."),
    (c("check_int", 1.5, 2, 6, "n", "Net"), "For 'Net', the 'n' must be int, but got 'float'"),
    (
        c("check_int", True, 2, 6, "n", "Net"),
        "For 'Net', the 'n' must be int and must >= 2, but got 'True' with type 'bool'.",
    ),
    (
        c("check_non_negative_int", -1, "n", "Net"),
        "For 'Net', the 'n' must be int and must >= 0, but got '-1' with type 'int'.",
    ),
    (c("check_is_int", 1.0, "n", "Net"), "For 'Net', the type of 'n' must be 'int', but got 'float'."),
    (
        c("check_positive_float", -1.0, "n", "Net"),
        "For 'Net', the 'n' must be float and must > 0, but got '-1.0' with type 'float'.",
    ),
    (
        c("check_int_range", 5, 0, 3, 8, "n", "Net"),
        "For 'Net', the 'n' must be in range of [0, 3), but got 5 with type 'int'.",
    ),
    (c("check_int_range", 2.0, 0, 3, 7, "n", "Net"), "For 'Net', the 'n' must be 'int',  but got 'float'."),
    (
        c("check_float_range", 5.0, 0.0, 1.0, 10),
        "The input value must be in range of [0.0, 1.0], but got 5.0 with type 'float'.",
    ),
    (c("check_bool", 1, "n", "Net"), "For 'Net', the 'n' must be a bool, but got int."),
    (c("check_string", "a", ["b", "c"]), "The 'parameter' must be str and must be in '['b', 'c']', but got 'a'."),
    (
        c("check_value_type", "n", 1, (str, list), "Net"),
        "For 'Net', the type of 'n' should be one of '['str', 'list']', but got type 'int'.",
    ),
    (
        c("check_value_type", "n", True, int, "Net"),
        "For 'Net', the type of 'n' should be 'int', but got type 'bool'.",
    ),
    (c("check", "n", 1, "m", [2, 3], 11, "Net"), "For 'Net', the 'n' should be in m: [2, 3], but got 1."),
    (c("check_isinstance", "n", 1, str), "The parameter 'n' must be isinstance of <class 'str'>, but got 1."),
    (
        c("check_positive_int_sequence", [1, 0], "n", "Net"),
        "For 'Net', the 'n[1]' must be int and must > 0, but got '0' with type 'int'.",
    ),
]


@pytest.mark.parametrize(("call", "text"), TEXTS, ids=lambda value: value[:50] if isinstance(value, str) else "")
def test_the_vendors_checks_have_its_texts(call, text):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert str(caught.value) == text


def test_the_vendors_checks_return_the_value():
    assert _checkparam.check_int(3, 2, _checkparam.GT, "n") == 3
    assert _checkparam.check_value_type("n", None, [int, type(None)], "Net") is None
    assert _checkparam.twice(3) == (3, 3)
    assert np.dtype(ms.common.np_dtype.bfloat16).itemsize == 2


def test_a_missing_attribute_names_the_emulation():
    x = Tensor([1.0])
    for owner, name, text in (
        (
            x,
            "register_hook",
            r"object has no attribute 'register_hook': mindspore\.Tensor\.register_hook is not",
        ),
        (Parameter(x, name="p"), "sinc", r"mindspore\.Parameter\.sinc is not emulated \[DS-API-001\]"),
        (nn.ReLU(), "offload", r"The 'ReLU' object has no attribute 'offload': mindspore\.nn\.Cell\.offload is not"),
    ):
        assert not hasattr(owner, name)
        with pytest.raises(AttributeError, match=text):
            getattr(owner, name)
    assert not hasattr(x, "nonsense")
    with pytest.raises(AttributeError, match=r"^'Tensor' object has no attribute 'nonsense'$"):
        x.nonsense  # noqa: B018
    assert np.asarray(x.asnumpy()).tolist() == [1.0]


SET = [
    (
        {"aoe_tune_mode": "foo"},
        "ValueError",
        "the argument 'aoe_tune_mode' must be in ['online', 'offline'], but got foo.",
    ),
    ({"aoe_tune_mode": 1}, "TypeError", "The parameter 'aoe_tune_mode' must be <class 'str'>, but got <class 'int'>"),
    ({"aoe_config": {"job_type": "3"}}, "ValueError", "argument job_type must be one of ['1', '2'], but got 3."),
    (
        {"aoe_config": {"foo": "3"}},
        "ValueError",
        "the key of argument 'aoe_config' must be one of {'job_type': ['1', '2']}, but got foo.",
    ),
    ({"aoe_config": "x"}, "TypeError", "The parameter 'aoe_config' must be <class 'dict'>, but got <class 'str'>"),
    ({"support_binary": 1}, "TypeError", "The attribute 'support_binary' should be a bool, but got <class 'int'>."),
    (
        {"disable_format_transform": 1},
        "TypeError",
        "The parameter 'disable_format_transform' must be <class 'bool'>, but got <class 'int'>",
    ),
]


@pytest.mark.parametrize(("settings", "error", "text"), SET, ids=lambda value: str(value)[:40])
def test_set_context_checks_the_keywords_of_2_10(settings, error, text):
    with pytest.raises((TypeError, ValueError)) as caught:
        ms.set_context(**settings)
    assert error in [base.__name__ for base in type(caught.value).__mro__]
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"), [("aoe_tune_mode", "online"), ("aoe_config", {"job_type": "2"}), ("support_binary", True)]
)
def test_set_context_keeps_the_keywords_of_2_10_and_says_that_they_are_idle(key, value, capsys):
    assert ms.get_context(key) == {"aoe_tune_mode": "", "aoe_config": {}, "support_binary": False}[key]
    ms.set_context(**{key: value})
    assert ms.get_context(key) == value
    assert f"the emulation does nothing for '{key}'" in capsys.readouterr().err


def test_a_format_is_transformed_on_gpus_only(capsys, monkeypatch):
    ms.set_context(disable_format_transform=True)
    assert "only supports devices in '['GPU']', but got 'Ascend', ignore it." in capsys.readouterr().err
    assert ms.get_context("disable_format_transform") is False
    monkeypatch.setenv(VARIABLE, RunSettings(device="gpu").to_text())
    ms.set_context(disable_format_transform=True)
    assert ms.get_context("disable_format_transform") is True


@pytest.mark.parametrize("key", ["enable_sparse", "auto_tune_mode"])
def test_keywords_that_2_10_dropped_give_its_warning(key, capsys):
    ms.set_context(**{key: 1})
    assert f"'{key}' parameter is deprecated, and will be removed in the next version." in capsys.readouterr().err
    with pytest.raises(ValueError, match=f"the argument {key} is not recognized"):
        ms.get_context(key)


def test_results_are_deterministic_once(monkeypatch):
    with pytest.raises(TypeError, match="must be <class 'bool'>, but got <class 'int'>"):
        ms.set_deterministic(1)
    ms.set_deterministic(True)
    assert ms.get_context("deterministic") == "ON"
    with pytest.raises(RuntimeError, match=r"The 'mindspore.set_deterministic' can not be set repeatedly\."):
        ms.set_deterministic(False)
    ms.runtime.launch_blocking()


X = np.arange(6, dtype=np.float32).reshape(2, 3)
MAPPED = [
    (ops.add, (0, 1), 0, (X, np.ones((3, 2), np.float32)), X + 1),
    (ops.add, (0, None), 1, (X, X[0]), (X + X[0]).T),
    (lambda a, b: (a.sum(), ops.matmul(a, b)), (1, None), (0, 0), (X, np.eye(2, dtype=np.float32)), (X.sum(0), X.T)),
    (ops.ReduceSum(), (0, None), 0, (X, 0), X.sum(1)),
    (lambda pair: pair[0] * pair[1], 0, 0, ((X, X),), X * X),
    (ops.vmap(ops.square), -1, -1, (X,), X * X),
]


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
@pytest.mark.parametrize("row", range(len(MAPPED)))
def test_vmap_gives_the_values_of_a_loop(mode, row):
    function, in_axes, out_axes, given, expected = MAPPED[row]
    ms.set_context(mode=mode)

    class Net(nn.Cell):
        def construct(self, *args):
            return ops.vmap(function, in_axes, out_axes)(*args)

    def tensors(value):
        return (
            tuple(map(tensors, value))
            if isinstance(value, tuple)
            else Tensor(value)
            if hasattr(value, "ndim")
            else value
        )

    result = Net()(*map(tensors, given))
    many = expected if isinstance(expected, tuple) else (expected,)
    for found, right in zip(result if isinstance(expected, tuple) else (result,), many, strict=True):
        np.testing.assert_allclose(found.asnumpy(), right, rtol=1e-6)


def test_vmap_refuses_sizes_that_differ():
    with pytest.raises(RuntimeError, match=r"in the scope of 'vmap' should be equal, but got 2 and 3\."):
        ops.vmap(ops.add)(Tensor(X), Tensor(X.T))


@pytest.mark.parametrize(
    ("in_axes", "text"),
    [
        (None, "cannot be a single None"),
        ((None, None), "cannot be all None"),
        ((0,), "must be equal to the number of arguments of 'fn': 2, but got size: 1."),
        ((0, 5), "The axis: 5 in 'in_axes' is out of bounds for array of dimension [-2,2)."),
        ("a", "The axis in vmap`s 'in_axes' can only be of type Int or None"),
    ],
)
def test_vmap_refuses_axes_with_the_vendors_text(in_axes, text):
    with pytest.raises(RuntimeError) as caught:
        ops.vmap(ops.add, in_axes)(Tensor(X), Tensor(X))
    assert text in str(caught.value)


def test_the_gradient_of_vmap():
    x = Tensor(X)
    gradient = ms.grad(lambda t: ops.vmap(ops.square)(t).sum())(x)
    np.testing.assert_allclose(gradient.asnumpy(), 2 * X)


@pytest.mark.parametrize("function", ["_set_init_iter", "_dump_step"])
@pytest.mark.parametrize("step", [True, "1", 1.0, None])
def test_steps_of_the_dump_are_integers(function, step):
    from dumpsim.frontends.mindspore import _c_expression

    with pytest.raises(TypeError, match=f"{function}: the step is of type {type(step).__name__}; allowed: int"):
        getattr(_c_expression, function)(step)


@pytest.mark.parametrize("steps", [[True], [1.5], [-1], ["a"], [0, None]])
def test_steps_of_tensordump_are_numbers_from_0(steps):
    from dumpsim.frontends.mindspore._c_expression import _tensordump_set_step

    with pytest.raises(TypeError, match="_tensordump_set_step"):
        _tensordump_set_step(steps)
