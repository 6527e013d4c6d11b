"""Graphs and programs as short lines of text, for tests that compare the whole."""

import numpy as np

from dumpsim.core.abstract import MonadType
from dumpsim.graph.graph import Constant, Node
from dumpsim.graph.program import Branch, Keep, Loop, Move, Repeat, Restore, Run


def lines_of(graph):
    """Return a line for each node, then the graph's result: ``%0 = Exp(x)``; values of other graphs are ``^Exp``."""
    nodes = graph.nodes() if isinstance(graph.output, Node) else []
    names = {id(node): f"%{n}" for n, node in enumerate(nodes)}
    names |= {id(parameter): parameter.name or f"in{n}" for n, parameter in enumerate(graph.parameters)}

    def name(value):
        if id(value) in names:
            return names[id(value)]
        if isinstance(value, Constant):
            return _constant(value)
        return f"^{value.op_type}" if isinstance(value, Node) else f"^{value.name}"

    return [f"{names[id(node)]} = {node.op_type}({', '.join(map(name, node.operands))})" for node in nodes]


def _constant(value):
    if isinstance(value.abstract, MonadType):
        return "U"
    return str(np.asarray(value.value).tolist()) if not isinstance(value.value, str | None) else repr(value.value)


def steps_of(steps):
    """Return steps as text: ``0(1) -> 2`` runs graph 0 on slot 1, ``3 = 2`` moves; blocks are in brackets."""
    return "; ".join(map(_step, steps))


def _step(step):
    match step:
        case Run():
            return f"{step.graph}({_numbers(step.arguments)}) -> {_numbers(step.results)}"
        case Move():
            return f"{step.target} = {_constant(step.source) if isinstance(step.source, Constant) else step.source}"
        case Branch():
            return f"if {step.condition} [{steps_of(step.then)}] else [{steps_of(step.otherwise)}]"
        case Loop():
            counted = f" counted {_numbers(step.counted)}" if step.counted else ""
            return f"while [{steps_of(step.head)}] {step.condition}{counted} [{steps_of(step.body)}]"
        case Keep():
            return f"keep {step.stack} ({_numbers(step.sources)})"
        case Restore():
            return f"restore {step.stack} ({_numbers(step.targets)})"
        case Repeat():
            return f"repeat {step.counter} [{steps_of(step.body)}]"


def _numbers(slots):
    return ",".join(str(_constant(n) if isinstance(n, Constant) else n) for n in slots)


__all__ = ["lines_of", "steps_of"]
