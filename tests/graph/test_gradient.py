"""The backward walk and the nodes that it creates, on hand-made graphs."""

import numpy as np
import pytest

from dumpsim.core.abstract import TensorType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import UnsupportedError
from dumpsim.graph.builder import NodeMaker, constant
from dumpsim.graph.gradient import needing, reverse
from dumpsim.graph.gradient_builder import Parts
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, topological
from dumpsim.graph.mindspore.gradient_nodes import NodeBuilder
from dumpsim.ops.table import find


def parameter(*shape, kind="float32"):
    return Parameter(name="x", abstract=TensorType(dtype=dtype(kind), shape=shape))


class Scene:
    """Makes forward nodes with scopes, and keeps what the gradient makes."""

    def __init__(self):
        self.forward, self.backward, self.scope = [], [], "Default"
        self.maker = NodeMaker(find, self.place)
        self.builder = NodeBuilder(find, self.backward.append, {})

    def place(self, node):
        node.scope = self.scope
        self.forward.append(node)

    def emit(self, op_type, *operands, scope="Default", **attrs):
        self.scope = scope
        return self.maker.emit(op_type, *operands, **attrs)

    def gradients(self, output, wanted, sens=None):
        if sens is None:
            sens = constant(np.ones(output.abstract.shape, np.float32))
        return reverse(output, sens, wanted, self.builder)

    def value(self, symbol, **given):
        """What a symbol is, with the values of parameters."""
        values = dict(given)

        def of(value):
            if isinstance(value, Constant):
                return value.value
            if isinstance(value, Parameter):
                return values[value.name]
            if value.op_type == "MakeTuple":
                return tuple(of(o) for o in value.operands)
            if value.op_type == "TupleGetItem":
                return of(value.operands[0])[of(value.operands[1])]
            if value.op_type == "Depend":
                return of(value.operands[0])
            return find(value.op_type).kernel(*[of(o) for o in value.operands], **value.attrs)

        return of(symbol)


@pytest.fixture
def scene():
    return Scene()


def test_gradient_of_a_product(scene):
    x = parameter(3)
    y = scene.emit("Mul", x, x)

    (found,) = scene.gradients(y, [x])

    np.testing.assert_array_equal(scene.value(found, x=np.array([1.0, 2, 3], np.float32)), [2, 4, 6])


def test_scopes_name_the_forward_operator(scene):
    x = parameter(3)
    y = scene.emit("Tanh", x, scope="Default/act-Tanh")

    scene.gradients(y, [x])

    assert [(n.op_type, n.scope) for n in scene.backward] == [("TanhGrad", "Gradients/Default/act-Tanh/Grad_Tanh")]


def test_several_gradients_are_one_sum_in_the_scope_of_the_value_in_the_order_of_its_users(scene):
    x = parameter(3)
    middle = scene.emit("Exp", x, scope="Default/middle")
    first, second, third = (scene.emit(name, middle, scope=f"Default/{name}") for name in ("Tanh", "Sigmoid", "ReLU"))
    output = scene.emit("Add", scene.emit("Add", first, second), third)

    scene.gradients(output, [x])

    (total,) = [node for node in scene.backward if node.op_type == "AddN"]
    assert total.scope == "Gradients/Default/middle"
    bundle = total.operands[0]
    assert [operand.op_type for operand in bundle.operands] == ["TanhGrad", "SigmoidGrad", "ReluGrad"]


def test_products_with_the_ones_of_the_seed_make_no_node(scene):
    x, w = parameter(3), parameter(3)
    y = scene.emit("Mul", x, w)

    found = scene.gradients(y, [x, w])

    assert found == [w, x]
    assert scene.backward == []


def test_the_walk_only_visits_nodes_of_wanted_values(scene):
    x, y = parameter(3), parameter(3)
    left, right = scene.emit("Exp", x), scene.emit("Tanh", y)
    output = scene.emit("Mul", left, right)

    scene.gradients(output, [x])

    assert "TanhGrad" not in [node.op_type for node in scene.backward]
    assert needing(topological([output]), [x]) == {id(x), id(left), id(output)}


def test_values_that_the_output_does_not_use_have_no_gradient(scene):
    x, y = parameter(3), parameter(3)
    output = scene.emit("Exp", x)

    assert scene.gradients(output, [y]) == [None]


def test_outputs_of_a_tuple_are_seeded_one_by_one(scene):
    x = parameter(2)
    items = [scene.emit("Exp", x), scene.emit("Tanh", x)]
    output = scene.maker.emit("MakeTuple", *items)
    assert isinstance(output.abstract, TupleType)
    seed = constant(np.ones(2, np.float32))

    (found,) = scene.gradients(output, [x], Parts(abstract=output.abstract, items=(seed, None)))

    start = np.array([0.5, 1.5], np.float32)
    np.testing.assert_allclose(scene.value(found, x=start), np.exp(start), rtol=1e-6)


def test_stop_gradient_ends_the_walk(scene):
    x = parameter(2)
    stopped = scene.emit("StopGradient", x)
    output = scene.emit("Mul", x, stopped)

    assert scene.gradients(output, [x]) == [stopped]


def test_comparisons_pass_no_gradient_on(scene):
    x, y = parameter(2), parameter(2)
    chosen = scene.emit("Select", scene.emit("Greater", x, y), x, y)

    of_x, of_y = scene.gradients(chosen, [x, y])

    start = {"x": np.array([1.0, 4], np.float32)}
    assert all(isinstance(found, Node) for found in (of_x, of_y))
    np.testing.assert_array_equal(scene.value(of_x, **start) + scene.value(of_y, **start), [1, 1])


def test_operator_without_rule_is_named(scene):
    x = parameter(2, 3)
    output = scene.emit("GeLUGrad", x, x, x)

    with pytest.raises(UnsupportedError, match="'GeLUGrad' has no gradient"):
        scene.gradients(output, [x])


def test_the_second_gradient_of_a_loop_is_named(scene):
    x = parameter(2)
    kind = TupleType(items=(x.abstract,))
    loop = Node(op_type="Unwind", operands=[x, x], abstract=kind, blocks=(Graph(),))
    output = Node(op_type="TupleGetItem", operands=[loop, constant(0)], abstract=x.abstract)

    with pytest.raises(UnsupportedError, match="gradient of the gradient of a loop"):
        scene.gradients(output, [x])
