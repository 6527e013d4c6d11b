"""Nodes that sharding inserts: redistribution, forward communication, mirrors and virtual operators.

Types are inferred later; `text` has what the vendor prints in addition to the attributes of the operator.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import NoneType
from dumpsim.core.cutting import Strategy
from dumpsim.graph.builder import constant
from dumpsim.graph.graph import Constant, Node, Parameter, Value, text_of
from dumpsim.graph.nodetext import NodeText
from dumpsim.graph.parallel.group import group_name, hashed, ranks_text
from dumpsim.graph.parallel.settings import Settings
from dumpsim.graph.parallel.transfer import Cut, Exchange, Join, Reshape, Transfer, group_of, shape_after
from dumpsim.graph.parallel.virtual import GATHER, VIRTUAL

__all__ = ["Inserter", "beside_control", "instance_hash", "is_communication", "rename_replaced"]

_KEPT = {"keep_value_node_input": True}
_ENFORCED = {"order_enforce_skip": True}
_COMMUNICATION = re.compile(r"forward_op_\d+|\d+(AllReduce|ReduceScatter)\d+")  # the second after a lookup
_BACKWARD = {"side_effect_backprop_mem": True}


def instance_hash(full_name: str, index: int) -> int:
    """Return the number in the instance name of an inserted node: a hash of the adjacent node's name. [observed 2.10]

    Examples
    --------
    >>> instance_hash("Default/MatMul-op0", 0)
    13647664438919552339
    """
    return hashed(f"{full_name}_{index}")


def beside_control(node: Node) -> Node:
    """Return an operator that gives the scope for nodes inserted for a control node."""
    text = node.text
    mine = NodeText(call_scope=text.call_scope, block_scope=text.block_scope) if text is not None else NodeText()
    return Node(op_type=node.op_type, operands=[], abstract=NoneType(), scope=node.scope, text=mine)


def rename_replaced(node: Node, full_name: str, strategy: Strategy) -> None:
    """Name an operator as the one by which the vendor replaces it. [observed 2.10: Squeeze]"""
    text = text_of(node)
    text.variable, text.instance_name = "", f"redistribution_op_{instance_hash(full_name, 0)}"
    text.attrs.clear()
    text.node_attrs["in_strategy"] = strategy


def is_communication(node: Node) -> bool:
    """Whether a node belongs to the communication after an operator, which combines the ranks' results."""
    return _COMMUNICATION.fullmatch((node.text.instance_name or "") if node.text is not None else "") is not None


def _count(step: Transfer) -> int:
    """Return the number of named operators of a step."""
    return 3 if isinstance(step, Join) and step.axis else 1


class Inserter:
    """Creates nodes for one rank.

    Parameters
    ----------
    settings : Settings
    made : list of Node
        The program, to which the nodes are appended.

    Attributes
    ----------
    groups : dict of str to tuple of int
        The communication groups in use.
    """

    def __init__(self, settings: Settings, made: list[Node]) -> None:
        self._settings = settings
        self._made = made
        self.groups: dict[str, tuple[int, ...]] = {}

    def node(
        self, op_type: str, operands: Sequence[Any], beside: Node, instance: str | None = None, **about: Any
    ) -> Node:
        """Create a node in the scope of another; `about`: ``attrs`` of the kernel, ``shown`` by the text only."""
        place = beside.text
        text = NodeText(instance_name=instance, attrs=dict(about.get("shown", {})), given=tuple(about.get("attrs", ())))
        if place is not None:
            text.call_scope, text.block_scope = place.call_scope, place.block_scope
            text.primal = {name: place.primal[name] for name in place.primal if name == "micro"}
        values = [value if isinstance(value, (Node, Parameter, Constant)) else constant(value) for value in operands]
        made = Node(
            op_type=op_type,
            operands=values,
            abstract=NoneType(),
            attrs=dict(about.get("attrs", {})),
            scope=beside.scope,
            definition=VIRTUAL.get(op_type),
            text=text,
        )
        self._made.append(made)
        return made

    def take_back(self, node: Node) -> None:
        """Remove the last node of the program."""
        assert self._made[-1] is node
        self._made.pop()

    def put(self, node: Node) -> None:
        """Append a node to the program."""
        self._made.append(node)

    def group(self, ranks: Sequence[int]) -> dict[str, Any]:
        """Return the attribute that names a group."""
        name = group_name(ranks, self._settings.device_num, self._settings.target)
        self.groups.setdefault(name, tuple(ranks))
        return {"group": name}

    def _shown(self, ranks: Sequence[int]) -> dict[str, Any]:
        return {"group_ranks": ranks_text(ranks, self._settings.device_num)}

    # -- redistribution

    def redistribute(
        self,
        value: Value,
        steps: Sequence[Transfer],
        shape: tuple[int, ...],
        beside: Node,
        source: str,
        *,
        replaced: bool,
    ) -> Value:
        """Insert the operators of a redistribution of parts of `shape`, and return the last value.

        Parameters
        ----------
        beside : Node
            The consumer, whose scope they get.
        source : str
            Full name of the operator that computes the value, or of the replaced Reshape.
        replaced : bool
            Whether they replace the script's Reshape; then they are numbered from the last one.
        """
        number, turn = 0, 1
        if replaced:
            number, turn = sum(_count(step) for step in steps) - 1, -1

        def put(op_type: str, operands: Sequence[Any], **about: Any) -> Node:
            nonlocal number
            name = f"redistribution_op_{instance_hash(source, number)}"
            number += turn
            if not replaced:
                name += f"{op_type}_"
                about["shown"] = {**about.get("shown", {}), **_KEPT}
            return self.node(op_type, operands, beside, name, **about)

        for step in steps:
            after = shape_after(step, shape)
            match step:
                case Reshape(shape=target):
                    value = put("Reshape", [value, target])
                case Cut(axis=axis, index=index):
                    begin = tuple(index * n if at == axis else 0 for at, n in enumerate(after))
                    end = tuple(first + n for first, n in zip(begin, after, strict=True))
                    value = put("StridedSlice", [value, begin, end, (1,) * len(after), 0, 0, 0, 0, 0])
                case Join(axis=axis, count=count):
                    value = self._gathered(value, step, put)
                    if axis:
                        split = put("Split", [value, 0, count])
                        items = [self.node("TupleGetItem", [split, at], beside) for at in range(count)]
                        value = put("Concat", [self.node("MakeTuple", items, beside), axis])
                case Exchange(cut=cut, joined=joined, count=count):
                    ranks = group_of(step, self._settings.rank)
                    value = put(
                        "AlltoAll",
                        [value],
                        attrs={
                            **self.group(ranks),
                            "split_count": count,
                            "split_dim": cut,
                            "concat_dim": joined,
                            "rank_size": count,
                        },
                        shown=self._shown(ranks),
                    )
            shape = after
        return value

    def _gathered(self, value: Value, step: Join, put: Any) -> Node:
        ranks = group_of(step, self._settings.rank)
        node: Node = put(
            "AllGather",
            [value],
            attrs={**self.group(ranks), "rank_size": step.count},
            shown=self._shown(ranks),
        )
        return node

    def all_gather(self, value: Value, ranks: Sequence[int], beside: Node, instance: str) -> Node:
        """Insert an AllGather, which concatenates the parts of a group of ranks along axis 0."""
        attrs = {**self.group(ranks), "rank_size": len(ranks)}
        return self.node("AllGather", [value], beside, instance, attrs=attrs, shown=self._shown(ranks))

    # -- forward communication

    def reduced(
        self,
        node: Node,
        kind: str,
        ranks: Sequence[int],
        name: str,
        dtype: Any,
        instance: str | None = None,
        beside: Node | None = None,
    ) -> Node:
        """Insert the communication after an operator whose result is distributed over several ranks.

        Parameters
        ----------
        kind : str
            ``sum``, ``max``, ``min``, ``prod``, ``mean`` or ``scatter``.
        name : str
            Full name of the operator.
        dtype : numpy dtype
        instance : str, optional
            Instance name, with ``{}`` for the name of the operator.
        beside : Node, optional
            The operator, if `node` is one of its results.
        """
        beside = beside or node
        shown = self._shown(ranks) if instance is None else {}
        if instance is None:
            instance = f"forward_op_{instance_hash(name, int(kind == 'mean'))}"  # numbered from the last node
        instance = instance.format("ReduceScatter" if kind == "scatter" else "AllReduce")
        if kind == "scatter":
            attrs = {"op": "sum", **self.group(ranks), "rank_size": len(ranks)}
            return self.node("ReduceScatter", [node], beside, instance, attrs=attrs, shown=shown)
        attrs = {"op": "sum" if kind == "mean" else kind, **self.group(ranks)}
        found = self.node("AllReduce", [node], beside, instance, attrs=attrs, shown=shown)
        if kind == "mean":
            count = np.array(len(ranks), dtype)
            found = self.node("RealDiv", [found, count], beside, f"forward_op_{instance_hash(name, 0)}")
        return found

    # -- training

    def mirror(self, value: Value, ranks: Sequence[int], weight: str, beside: Node, into: Value | None = None) -> Node:
        """Insert the operator whose gradient sums the ranks' gradients of a weight, or those accumulated in `into`."""
        attrs = {
            **self.group(ranks),
            "fusion": 1,
            "mirror_user_id": weight,
            "dev_num": len(ranks),
            "mean_flag": self._settings.gradients_mean,
        }
        shown = {**_ENFORCED, **self._shown(ranks), **_KEPT}
        if into is None:
            return self.node("_MirrorOperator", [value], beside, "_MirrorOperator", attrs=attrs, shown=shown)
        attrs["_shards"] = self._settings.enable_parallel_optimizer
        name, shown = "_MirrorMicroStepOperator", {**shown, **_BACKWARD}
        return self._unscoped(self.node(name, [value, into], beside, name, attrs=attrs, shown=shown))

    def assign_add(self, value: Value, into: Value, beside: Node) -> Node:
        """Insert the operator whose gradient is added to that of the previous parts of the batch."""
        name, attrs = "_VirtualAssignAdd", {"group": "", "fusion": 1}
        shown = {**_ENFORCED, **_BACKWARD}
        return self._unscoped(self.node(name, [value, into], beside, name, attrs=attrs, shown=shown))

    @staticmethod
    def _unscoped(node: Node) -> Node:
        """Set the scope of a node that follows a Load to the Load's. [observed 2.10]"""
        node.scope = "Default"
        return node

    def part_end(self, value: Value, beside: Node) -> Node:
        """Insert the marker of a part's loss."""
        return self.node("_VirtualPipelineEnd", [value], beside, "end_node")

    def optimizer_gather(
        self, value: Value, ranks: Sequence[int], weight: str, beside: Node, into: Value | None = None
    ) -> Node:
        """Insert the gathering of a weight that the parallel optimizer cut; gradients are accumulated in `into`."""
        attrs = {**self.group(ranks), "rank_size": len(ranks), "_mean": self._settings.gradients_mean}
        shown = {**self._shown(ranks), "mirror_user_id": weight}
        name = "parallel_optimizer_allgather_not_recompute"
        operands = [value] if into is None else [value, into]
        return self.node(GATHER, operands, beside, name, attrs=attrs, shown=shown)

    def virtual_div(self, value: Value, divisor: int, beside: Node, name: str) -> Node:
        """Insert the operator whose gradient is divided by the number of copies of the loss."""
        return self.node(
            "_VirtualDiv",
            [value],
            beside,
            str(instance_hash(name, 0)),
            attrs={"divisor": divisor},
            shown={**_KEPT, **_ENFORCED},
        )

    def virtual_output(self, value: Value, beside: Node, row: tuple[int, ...], *, is_item: bool) -> Node:
        """Insert the marker of a result; `is_item`: whether it is one of several. [observed 2.10]"""
        shown = {**_ENFORCED, **(_KEPT if is_item else {}), "in_strategy": (row,)}
        return self.node("_VirtualOutput", [value], beside, "_VirtualOutput", shown=shown)
