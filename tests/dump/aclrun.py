"""A small network through GE's pipeline and the session, under a dump that an ACL config sets."""

import json

import numpy as np

from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype
from dumpsim.core.options import CompileOptions
from dumpsim.core.settings import RunSettings
from dumpsim.device.faults import make_plan
from dumpsim.frontends.acl.dump import finalize_dump, set_dump
from dumpsim.graph.graph import Graph, Node, Parameter
from dumpsim.graph.pipeline import compile_graph
from dumpsim.ops.table import find
from dumpsim.runtime.session import Session
from dumpsim.world.context import RankContext, use

SHAPE = (8, 8)
VALUES = np.linspace(0.1, 1, 64, dtype=np.float32).reshape(SHAPE)


def network(length=6):
    """A chain of operators whose first result, ``keep``, is needed at the end; ``short`` is needed once."""
    kind = TensorType(dtype=dtype("float32"), shape=SHAPE)
    graph = Graph(name="net")
    x = Parameter(name="x", abstract=kind)
    graph.parameters.append(x)

    def node(name, op_type, *operands):
        made = Node(op_type=op_type, operands=list(operands), abstract=kind, full_name=name)
        graph.trail.append(made)
        return made

    keep = node("keep", "Tanh", x)
    value = node("short", "Sin", keep)
    for number in range(length):
        value = node(f"op_{number}", ("Cos", "Sin")[number % 2], value)
    graph.output = node("last", "Add", value, keep)
    return graph


def run_acl(root, config, *, faults=(), length=6, runs=1, chip="910B", inputs=VALUES, single=False):
    """Run the network under a config below ``root``; the dump goes to ``out`` unless the config says otherwise."""
    (root / "out").mkdir(exist_ok=True)
    (root / "acl.json").write_text(json.dumps({"dump": {"dump_path": str(root / "out"), **config}}))
    session = Session(RunSettings(chip=chip, quiet=True, manifest=None), environment={})
    with use(RankContext.from_environment()):
        Session.use(session)
        set_dump(root / "acl.json")
        if faults:
            session.inject(make_plan(faults))
        try:
            if single:
                session.run_op(find("Sin"), [inputs])
            program = compile_graph(network(length), session.ids, find, CompileOptions(pipeline="ge"))
            session.compile(program, CompileOptions(pipeline="ge"))
            for _ in range(runs):
                session.execute(program, [inputs])
        finally:
            finalize_dump()
    return root / "out"
