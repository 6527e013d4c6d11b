"""A graph of torch.fx through GE's pipeline, the session and the dump, with ATen as its kernels."""

import ml_dtypes
import pytest

import dumpsim
from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype
from dumpsim.core.options import CompileOptions
from dumpsim.core.settings import RunSettings
from dumpsim.graph.graph import Graph, Node, Parameter
from dumpsim.graph.pipeline import compile_graph
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime.session import Session
from tests.dump.machine import Machine

torch = pytest.importorskip("torch", reason="needs the extra torch")

from torch import fx, nn  # noqa: E402
from torch.fx.passes.shape_prop import ShapeProp  # noqa: E402

from dumpsim.runtime.engine.table import engine  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

aten = torch.ops.aten


def linear(module):
    return "MatMul", aten.linear.default, ("weight", "bias"), {}


def layer_norm(module):
    def kernel(x, weight, bias, *, shape, epsilon):
        return aten.layer_norm.default(x, shape, weight, bias, epsilon)

    return "LayerNorm", kernel, ("weight", "bias"), {"shape": module.normalized_shape, "epsilon": module.eps}


def gelu(module):
    return "GeLU", aten.gelu.default, (), {}


OPERATORS = {nn.Linear: linear, nn.LayerNorm: layer_norm, nn.GELU: gelu}


class Holder:
    """A parameter of torch as the runtime sees one."""

    def __init__(self, array):
        self._array = array


def array_of(tensor):
    """The bits of a tensor as numpy has them."""
    tensor = tensor.detach().clone()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def captured(module, example):
    """The graph of a module; each node carries the function that computes it."""
    traced = fx.symbolic_trace(module)
    ShapeProp(traced).propagate(example)
    kind = dtype(str(example.dtype).removeprefix("torch."))
    graph, values = Graph(name="net"), {}
    for node in traced.graph.nodes:
        if node.op == "output":
            graph.output = values[node.args[0]]
            continue
        abstract = TensorType(dtype=kind, shape=tuple(node.meta["tensor_meta"].shape))
        if node.op == "placeholder":
            values[node] = Parameter(name=node.name, abstract=abstract)
            graph.parameters.append(values[node])
            continue
        part = traced.get_submodule(node.target)
        op_type, kernel, weights, attrs = OPERATORS[type(part)](part)
        operands = [values[node.args[0]]]
        for name in weights:
            array = array_of(getattr(part, name))
            weight = Parameter(
                name=f"{node.target}.{name}",
                abstract=TensorType(dtype=kind, shape=array.shape),
                is_weight=True,
                storage=Holder(array),
            )
            graph.parameters.append(weight)
            operands.append(weight)
        definition = OpDef(name=op_type, operands=("x", *weights), infer=lambda a, _, out=abstract: out, kernel=kernel)
        made = Node(
            op_type=op_type,
            operands=operands,
            abstract=abstract,
            attrs=attrs,
            full_name=node.name,
            definition=definition,
        )
        graph.trail.append(made)
        values[node] = made
    return graph


def unknown(op_type):
    raise AssertionError(f"the node of {op_type} carries its definition")


@pytest.fixture(params=["float32", "bfloat16", "float16"])
def network(request):
    torch.manual_seed(1)
    kind = getattr(torch, request.param)
    module = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 8)).to(kind).eval()
    return module, torch.randn(4, 16).to(kind)


def test_session_and_dump_see_what_eager_torch_computes(network, tmp_path):
    module, x = network
    session = Session(RunSettings(chip="910B"), environment={}, engine=engine("torch"))
    machine = Machine(tmp_path / "dump", "seed/ascend_ge", clock=session.clock)
    session.add_tap(machine.service)
    options = CompileOptions(pipeline="ge")
    program = compile_graph(captured(module, x), session.ids, unknown, options)
    session.compile(program, options)
    (result,) = session.execute(program, [array_of(x)])
    summary = machine.service.finish()

    with torch.no_grad():
        eager = [x]
        for part in module:
            eager.append(part(eager[-1]))
    assert result.tobytes() == array_of(eager[-1]).tobytes()

    assert (summary.failed, summary.skipped) == (False, ())
    dumped = {(entry.op_type, entry.io, entry.slot): entry for entry in dumpsim.open(tmp_path / "dump")}
    assert {op_type for op_type, _, _ in dumped} == {"Data", "MatMulV2", "LayerNorm", "Gelu"}
    inner = {"LayerNorm": 2, "Gelu": 3}
    for op_type, at in inner.items():
        for io, tensor in (("input", eager[at - 1]), ("output", eager[at])):
            entry = dumped[op_type, io, 0]
            assert entry.format == "ND"
            assert entry.dtype == str(x.dtype).removeprefix("torch.")
            values = array_of(tensor)
            assert entry.array().astype(values.dtype).tobytes() == values.tobytes()  # bfloat16 is read as float32
