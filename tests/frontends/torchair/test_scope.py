"""``torchair.scope.data_dump``: which nodes of a captured graph are marked."""

import pytest

from dumpsim.core.errors import UnsupportedError

torch = pytest.importorskip("torch", reason="needs the extra torch")

from torch._dynamo.backends.common import aot_autograd  # noqa: E402

from dumpsim.frontends.torchair import scope  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


def marked(function):
    """Names of the nodes of each captured graph, and those that are marked."""
    graphs = []

    def compiler(module, inputs):
        attributes = scope.attributes_of(module.graph)
        assert {value for found in attributes.values() for value in found.items()} <= {
            ("torchair_enable_data_dump", "True")
        }
        names = [node.name for node in module.graph.nodes if node.op == "call_function"]
        graphs.append((names, [node.name for node in attributes]))
        module.recompile()
        return module

    torch._dynamo.reset()
    with torch.no_grad():
        result = torch.compile(function, backend=aot_autograd(fw_compiler=compiler))(torch.ones(2), torch.ones(2))
    return graphs, result


def test_operators_of_the_block_are_marked():
    def function(a, b):
        c = a - b
        with scope.data_dump():
            d = (c - b) * 2
        return d + c

    graphs, result = marked(function)
    assert graphs == [(["sub", "sub_1", "mul", "add"], ["sub_1", "mul"])]
    assert result.tolist() == [-2, -2]


def test_a_graph_break_in_the_block_is_an_error():
    def function(a, b):
        with scope.data_dump():
            c = a - b
            torch._dynamo.graph_break()
            d = c * 2
        return d - b

    with pytest.raises(
        RuntimeError, match=r"After you call the torch.ops.air.scope_enter operator, there is no paired"
    ):
        marked(function)


def test_other_scopes_are_refused_by_name():
    with pytest.raises(UnsupportedError, match="super_kernel"):
        _ = scope.super_kernel
    with pytest.raises(AttributeError, match="did you mean 'data_dump'"):
        _ = scope.datadump
