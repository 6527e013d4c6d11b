"""Small graphs as IR text: parameters, operators and their shapes, rendered as a dump has them."""

from dumpsim.codecs.irtext import render
from dumpsim.codecs.irvalue import Text
from dumpsim.core.abstract import MonadType, ScalarType, TensorType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.core.irdoc import ConstRef, IrDoc, IrNode, IrParam, KernelIo, NodeRef, ParamRef

__all__ = ["BOOL", "MONAD", "SmallGraph", "number", "numbers", "of", "place"]

F32, I64, BOOL = dtype("float32"), dtype("int64"), dtype("bool")

MONAD = ConstRef(value="U", abstract=MonadType())


def of(*shape):
    """Return the type of a tensor."""
    return TensorType(dtype=F32, shape=shape)


def number(value, kind=I64):
    return ConstRef(value=value, abstract=ScalarType(dtype=kind, value=value))


def numbers(*values):
    items = tuple(ScalarType(dtype=I64, value=value) for value in values)
    return ConstRef(value=values, abstract=TupleType(items=items, value=values, counted=True))


class SmallGraph:
    """A graph that is built operator by operator; their names are ``Default/TYPE-opN``, N counting all of them."""

    def __init__(self):
        self.params, self.nodes, self.types = [], [], []

    def param(self, name, *shape):
        number = len(self.params)
        device = KernelIo(dtype="Float32", format="DefaultFormat", shape=shape)
        self.params.append(
            IrParam(name=name, label=name, use_label=name, abstract=of(*shape), device=device, is_weight=True)
        )
        return ParamRef(index=number)

    def node(self, op_type, operands, output, strategy="", mark="in_strategy"):
        index = len(self.nodes)
        types = tuple(
            self.types[one.index] if isinstance(one, NodeRef)
            else self.params[one.index].abstract if isinstance(one, ParamRef) else one.abstract
            for one in operands
        )  # fmt: skip
        self.types.append(output)
        self.nodes.append(
            IrNode(
                index=index, name=f"CNode_{index}", op_type=op_type, prim_func=False, operands=tuple(operands),
                operand_types=types, output=output, full_name=f"Default/{op_type}-op{index}",
                primitive_attrs=((mark, Text(strategy)),) if strategy and mark else (),
                strategy=strategy if not mark else "",
            )
        )  # fmt: skip
        return NodeRef(index=index)

    def text(self, graph_id=0):
        doc = IrDoc(
            name=f"kernel_graph{graph_id}", graph_id=graph_id, params=tuple(self.params), nodes=tuple(self.nodes)
        )
        return render(doc)


def place(root, text, *, rank=0, graph=0):
    folder = root / f"rank_{rank}" / "graphs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"ms_output_trace_code_graph_{graph}.ir").write_text(text)
