"""The engine that computes with the operator table, and how a session uses an engine."""

import ml_dtypes
import numpy as np
import pytest

from dumpsim.core.settings import RunSettings
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.table import find
from dumpsim.runtime.engine.engine import Computed
from dumpsim.runtime.engine.numpy import NumpyEngine
from dumpsim.runtime.session import Session

X = np.array([1, -2, 3], np.float32)


class Negating:
    """An engine of the test's own: it negates what the operator table computes."""

    name = "negating"
    values = True

    def __init__(self):
        self.seen = []

    def compute(self, definition, operands, attrs):
        self.seen.append((definition.name, [type(o) for o in operands], dict(attrs)))
        computed = NumpyEngine().compute(definition, operands, attrs)
        return Computed(results=[-result for result in computed.results], updated=computed.updated)


def operator(kernel, **rest):
    return OpDef(name="Op", operands=("x",), infer=lambda a, _: a[0], kernel=kernel, **rest)


def test_a_session_computes_on_its_engine(net, operators):
    engine = Negating()
    b = net()
    program = b.program(b.op("Scale", b.input("x", (3,)), 2.0, bias=1.0))
    s = Session(RunSettings(chip="910B"), environment={}, find=operators, engine=engine)
    assert s.execute(program, [X])[0].tolist() == (-(X * 2 + 1)).tolist()
    assert s.run_op(find("Add"), [X, X])[0].tolist() == (-2 * X).tolist()
    assert engine.seen == [
        ("Scale", [np.ndarray, float], {"bias": 1.0}),
        ("Add", [np.ndarray, np.ndarray], {}),
    ]


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
def test_halves_arrive_as_float32(kind):
    seen = []
    definition = operator(lambda x, xs: seen.append((x.dtype, xs[0].dtype)) or x)
    x = X.astype(kind)
    NumpyEngine().compute(definition, [x, (x, 1)], {})
    assert seen == [(np.float32, np.float32)]


def test_kernels_of_the_device_take_the_stored_numbers():
    seen = []
    definition = operator(lambda x, device: seen.append((x.dtype, device)) or x, device=True)
    NumpyEngine().compute(definition, [X.astype(np.float16)], {"device": "npu"})
    assert seen == [(np.float16, "npu")]


def test_only_updated_operands_can_be_written():
    def write(x):
        x[...] = 7
        return x

    x = X.copy()
    with pytest.raises(ValueError, match="read-only"):
        NumpyEngine().compute(operator(write), [x], {})
    assert x.flags.writeable
    computed = NumpyEngine().compute(operator(write, updates=(0,)), [x], {})
    assert computed.updated[0] is x
    assert x.tolist() == [7, 7, 7]


def test_updated_halves_are_new_values_and_the_operand_stays():
    def double(x):
        x *= 2
        return x

    x = X.astype(np.float16)
    computed = NumpyEngine().compute(operator(double, updates=(0,)), [x], {})
    assert computed.updated[0].tolist() == (2 * X).tolist()
    assert x.tolist() == X.tolist()


def test_results_are_flattened_and_errors_of_numbers_are_silent():
    definition = operator(lambda x: (x / 0, (x, None)))
    results = NumpyEngine().compute(definition, [X], {}).results
    assert [r.tolist() for r in results] == [[np.inf, -np.inf, np.inf], X.tolist()]
