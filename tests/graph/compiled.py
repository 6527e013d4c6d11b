"""Captured graphs through the passes on func graphs, for tests of what follows."""

from dumpsim.graph.graph import Graph
from dumpsim.graph.mindspore.closures import lift_closures
from dumpsim.graph.mindspore.cut import cut
from dumpsim.graph.mindspore.enforce import enforce_order
from dumpsim.graph.mindspore.funcform import number_functions
from dumpsim.graph.mindspore.functions import made_functions
from dumpsim.graph.mindspore.handout import hand_out_gradients
from dumpsim.graph.mindspore.loads import merge_loads
from dumpsim.graph.mindspore.monads import add_monads
from dumpsim.ops.table import find


def functions_of(graph):
    """Return the functions of a captured graph in the front end's final form, with side effects in order."""
    form = made_functions(graph)
    add_monads(form, find)
    hand_out_gradients(form)
    for function in form.functions:
        merge_loads(function)
    number_functions(form)
    lift_closures(form)
    for function in form.functions:
        enforce_order(function)
    return form


def root_of(graph, *, woven_only=False):
    """The network's own function as a graph; `woven_only`: after the monads are added."""
    if woven_only:
        form = made_functions(graph)
        add_monads(form, find)
    else:
        form = functions_of(graph)
    return Graph(name=graph.name, parameters=graph.parameters, output=form.root.output, trail=form.root.trail)


def pieces_of(graph):
    """What a captured graph is cut into."""
    form = made_functions(graph)
    add_monads(form, find)
    hand_out_gradients(form)
    number_functions(form)
    lift_closures(form)
    return cut(form)
