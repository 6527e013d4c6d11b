"""Networks built by hand, on operators of the tests' own: the runtime without front end and tables."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from dumpsim.core.abstract import NoneType, ScalarType, StringType, TensorType, TupleType, TypeType
from dumpsim.core.dtype import DType, dtype, from_numpy
from dumpsim.core.errors import UnsupportedError
from dumpsim.core.events import TaskEvent
from dumpsim.core.irdoc import IrDoc
from dumpsim.core.settings import RunSettings
from dumpsim.graph.compilation import Compilation, Draft
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, topological
from dumpsim.graph.pipeline import PASSES, PIPELINES, run
from dumpsim.graph.program import KernelGraph, Program, Run
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime.ids import Ids
from dumpsim.runtime.session import Session

FLOAT32 = dtype("float32")


def _same(abstracts, attrs):
    return TensorType(dtype=abstracts[0].dtype, shape=abstracts[0].shape)


def _split(abstracts, attrs):
    kind, (rows, *rest) = abstracts[0].dtype, abstracts[0].shape
    return TupleType(items=tuple(TensorType(dtype=kind, shape=(n, *rest)) for n in (1, rows - 1)))


def _momentum(variable, accumulation, rate, gradient, momentum):
    accumulation[...] = accumulation * momentum + gradient
    variable[...] = variable - accumulation * rate
    return variable


def _op(name, kernel, operands=("x", "y"), infer=_same, **rest):
    return OpDef(name=name, operands=operands, infer=infer, kernel=kernel, **rest)


OPS = {
    op.name: op
    for op in (
        _op("Add", lambda x, y: x + y),
        _op("Mul", lambda x, y: x * y),
        _op("ReLU", lambda x: np.maximum(x, 0), ("x",)),
        _op("Neg", lambda x: -x, ("x",)),
        _op("AddN", lambda xs: sum(xs[1:], xs[0]), ("xs",), lambda a, _: _same(a[0].items, None)),
        _op("Less", lambda x, y: np.less(x, y), infer=lambda a, _: TensorType(dtype=dtype("bool"), shape=())),
        _op("Split", lambda x: (x[:1], x[1:]), ("x",), _split),
        _op("MatMul", lambda x, y: x @ y, formats={"in": {0: "FRACTAL_NZ", 1: "FRACTAL_NZ"}, "out": {0: "FRACTAL_NZ"}}),
        _op(
            "Conv2D",
            lambda x, w: np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0]),
            formats={"in": {0: "NC1HWC0", 1: "FRACTAL_Z"}, "out": {0: "NC1HWC0"}},
        ),
        _op("Reshape", lambda x, shape: x.reshape(shape), ("x", "shape"), view=True, alias={0: 0}),
        _op(
            "ApplyMomentum",
            _momentum,
            ("variable", "accumulation", "learning_rate", "gradient", "momentum"),
            updates=(0, 1),
            alias={0: 0},
            side_effect="mem",
        ),
        _op("Scale", lambda x, factor, *, bias=0.0: x * factor + bias, ("x", "factor"), attrs={"bias": 0.0}),
        _op("Random", lambda x, *, counter: np.full_like(x, counter), ("x",), random=True),
        _op("Same", lambda x, anything: x, ("x", "anything")),
        _op("Wrong", lambda x: x[:1], ("x",)),
    )
}


def find(op_type):
    """The tests' own operators."""
    if op_type not in OPS:
        raise UnsupportedError(f"operator {op_type!r} is not emulated")
    return OPS[op_type]


class Holder:
    """A front end's Parameter, as the runtime sees it."""

    def __init__(self, array):
        self._array = array


@dataclass
class Net:
    """A kernel graph under construction."""

    graph_id: int = 0
    is_root: bool = True
    root_graph_id: int | None = None
    graph: Graph = field(default_factory=Graph)
    order: list[Node] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def input(self, name, shape, kind="float32"):
        parameter = Parameter(name=name, abstract=TensorType(dtype=dtype(kind), shape=shape))
        self.graph.parameters.append(parameter)
        return parameter

    def weight(self, name, array, holder=None):
        array = np.asarray(array)
        parameter = Parameter(
            name=name,
            abstract=TensorType(dtype=from_numpy(array.dtype), shape=array.shape),
            is_weight=True,
            storage=Holder(array) if holder is None else holder,
        )
        self.graph.parameters.append(parameter)
        return parameter

    def constant(self, value):
        if isinstance(value, np.ndarray):
            abstract: Any = TensorType(dtype=from_numpy(value.dtype), shape=value.shape)
        elif isinstance(value, tuple):
            abstract = TupleType(items=tuple(self.constant(v).abstract for v in value), value=value)
        elif value is None:
            abstract = NoneType()
        elif isinstance(value, str):
            abstract = StringType(value=value)
        elif isinstance(value, DType):
            abstract = TypeType(value=value)
        else:
            name = {bool: "bool", int: "int64", float: "float32"}[type(value)]
            abstract = ScalarType(dtype=dtype(name), value=value)
        return Constant(value=value, abstract=abstract)

    def op(self, op_type, *operands, shape=None, kind=None, items=None, kernel=True, **attrs):
        operands = [o if isinstance(o, (Node, Parameter, Constant)) else self.constant(o) for o in operands]
        first = operands[0].abstract
        if items is not None:
            abstract: Any = TupleType(items=tuple(TensorType(dtype=FLOAT32, shape=s) for s in items))
        elif op_type == "MakeTuple":
            abstract = TupleType(items=tuple(o.abstract for o in operands))
        elif op_type == "TupleGetItem":
            abstract = first.items[operands[1].value]
        else:
            model = first if isinstance(first, TensorType) else first.items[0]
            abstract = TensorType(
                dtype=dtype(kind) if kind else model.dtype, shape=model.shape if shape is None else shape
            )
        number = self.counts.get(op_type, 0)
        self.counts[op_type] = number + 1
        node = Node(
            op_type=op_type,
            operands=operands,
            abstract=abstract,
            attrs=attrs,
            full_name=f"Default/{op_type}-op{number}",
        )
        if kernel and op_type in OPS and not OPS[op_type].view:
            self.order.append(node)
        return node

    def kernel_graph(self, output):
        self.graph.output = output
        self.graph.graph_id, self.graph.name = self.graph_id, f"kernel_graph{self.graph_id}"
        return KernelGraph(
            graph=self.graph,
            graph_id=self.graph_id,
            order=tuple(self.order),
            doc=IrDoc(name=f"kernel_graph{self.graph_id}", graph_id=self.graph_id, params=(), nodes=()),
            is_root=self.is_root,
            is_own=self.is_root,
            root_graph_id=self.graph_id if self.root_graph_id is None else self.root_graph_id,
        )

    def program(self, output):
        kernel_graph = self.kernel_graph(output)
        inputs = kernel_graph.arguments
        results = len(kernel_graph.results)
        return Program(
            kernel_graphs=(kernel_graph,),
            steps=(
                Run(
                    graph=0,
                    arguments=tuple(range(len(inputs))),
                    results=tuple(range(len(inputs), len(inputs) + results)),
                ),
            ),
            inputs=inputs,
            outputs=tuple(range(len(inputs), len(inputs) + results)),
            slots=len(inputs) + results,
            name="net",
        )


@dataclass
class Recorder:
    """A tap that records events, with values decoded to host arrays immediately."""

    interested: bool = True
    asked: int = 0
    log: list[Any] = field(default_factory=list)

    def wants(self, event):
        self.asked += 1
        if isinstance(event, TaskEvent):
            assert event.operands == ()
            assert event.outputs == ()
        return self.interested

    def graph_compiled(self, event):
        self.log.append(("graph", event, {}))

    def run_begin(self, event):
        self.log.append(("begin", event, {}))

    def run_end(self, event):
        self.log.append(("end", event, {ref.name: value(ref) for refs in event.parameters.values() for ref in refs}))

    def before_task(self, event):
        self.log.append(("before", event, {("in", r.slot): value(r) for r in event.operands}))

    def after_task(self, event):
        values = {("in", r.slot): value(r) for r in event.operands}
        self.log.append(("after", event, values | {("out", r.slot): value(r) for r in event.outputs}))

    def of(self, kind):
        return [entry[1:] for entry in self.log if entry[0] == kind]


def value(ref):
    """The tensor behind a reference in host layout, a copy; packed types as bytes."""
    raw = ref.read()
    assert raw.nbytes == ref.nbytes
    if ref.device_dtype.bits < 8:
        return raw.copy()
    array = raw.copy().view(ref.device_dtype.numpy)
    if ref.device_format == "DefaultFormat":
        return array.reshape(ref.device_shape)
    from dumpsim.tensor.layout import to_host

    return to_host(array, ref.device_format, ref.shape, groups=ref.groups)


@pytest.fixture(scope="session")
def net():
    return Net


@pytest.fixture(scope="session")
def operators():
    return find


@pytest.fixture
def holder():
    return Holder


@pytest.fixture
def recorder():
    return Recorder


DONE = {"order-kernels", "document", "save-kernel-graphs"}  # passes whose work is done in a graph built by hand


def compiled(kernel_graph, options, find=find, numbers=None):
    """A kernel graph after the passes of its pipeline that follow the numbering of graphs."""
    names = PIPELINES[options.pipeline]
    later = [PASSES[name] for name in names[names.index("number-graphs") + 1 :] if name not in DONE]
    graph, kernels = kernel_graph.graph, {id(node) for node in kernel_graph.order}
    order = topological([*kernel_graph.order, graph.output])  # with the views, which have no tasks here
    order = tuple(node for node in order if id(node) in kernels or _is_view(node))
    state = Compilation(
        captured=graph, numbers=Ids() if numbers is None else numbers, find=find, options=options,
        drafts=[Draft(graph=graph, order=order)],
    )  # fmt: skip
    (made,) = run(state, later).program().kernel_graphs
    return replace(
        kernel_graph,
        order=tuple(node for node in made.order if not _is_view(node)),
        launches=made.launches,
        model_name=made.model_name,
        model_id=made.model_id,
    )


def _is_view(node):
    return node.op_type in OPS and OPS[node.op_type].view


class Machine(Session):
    """A session that compiles hand-built programs by the pipeline of its options."""

    def compile(self, program, options=None):
        options = self.options() if options is None else options
        done = self.__dict__.setdefault("prepared", {})
        if id(program) not in done:
            graphs = tuple(compiled(graph, options, self._find, self.ids) for graph in program.kernel_graphs)
            done[id(program)] = (program, replace(program, kernel_graphs=graphs))
        return super().compile(done[id(program)][1], options)

    def release(self, program):
        super().release(self.prepared.pop(id(program))[1])


@pytest.fixture(scope="session")
def compile_graph():
    return compiled


@pytest.fixture(scope="session")
def machine():
    return Machine


@pytest.fixture
def session():
    def make(chip="910B", **settings):
        environment = settings.pop("environment", {})
        return Machine(RunSettings(chip=chip, **settings), environment=environment, find=find)

    return make
