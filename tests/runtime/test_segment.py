"""Plans that are split at their collectives: which kernels, collectives and tensors each segment has."""

from types import SimpleNamespace

from dumpsim.core.dtype import dtype
from dumpsim.runtime.segment import segments, written
from dumpsim.runtime.slot import Slot


class Plan:
    """A plan with kernels of one output each."""

    def __init__(self, inputs=(), weights=()):
        self.calls, self.slots = [], {}
        self.weights = [self.slot(name) for name in weights]
        self.results = []
        for name in inputs:
            self.slot(name)

    def slot(self, name, base=None):
        number = len(self.slots)
        kind = {"kind": "activation", "dtype": dtype("float32"), "device_dtype": dtype("float32")}
        self.slots[name] = Slot(index=number, name=name, shape=(2,), base=base, **kind)
        return self.slots[name]

    def call(self, name, *operands, meets=False, updates=(), outputs=1, base=None):
        arguments = tuple(
            tuple(self.slots[one] for one in operand.split("+")) if "+" in operand else self.slots[operand]
            for operand in operands
        )
        made = tuple(
            self.slot(name if not at else f"{name}.{at}", self.slots[base] if base else None) for at in range(outputs)
        )
        self.calls.append(
            SimpleNamespace(
                name=name,
                definition=SimpleNamespace(engine="hccl" if meets else "aicore", updates=updates),
                arguments=arguments,
                outputs=made,
            )
        )

    def split(self):
        names = {slot.index: name for name, slot in self.slots.items()}
        return [
            (
                *("".join(call.name for call in calls) for calls in (one.kernels, one.taken, one.met)),
                "".join(sorted(names[number] for number in one.needed)),
            )
            for one in segments(self)
        ]


def test_collectives_that_depend_on_each_other_or_on_kernels_lie_in_later_segments():
    plan = Plan(inputs="x")
    plan.call("a", "x")
    plan.call("S", "a", meets=True)
    plan.call("T", "x+a", meets=True)  # does not depend on S, and waits for a
    plan.call("b", "S", "T")
    plan.call("c", "b")
    plan.call("U", "c", meets=True)
    plan.call("V", "U", meets=True)  # no kernel between them
    plan.call("W", "a", meets=True)  # taken as soon as a is complete
    plan.call("X", "x", meets=True)  # complete from the start
    plan.call("d", "V", "a")
    plan.results = [plan.slots["d"], plan.slots["X"]]
    assert plan.split() == [
        ("a", "STWX", "ST", "STUVXabcd"),
        ("bc", "U", "U", "UVXad"),
        ("", "V", "VWX", "VXad"),
        ("d", "", "", "Xd"),
    ]


def test_weights_are_needed_to_the_end_and_are_complete_after_their_last_update():
    plan = Plan(inputs="x", weights="w")
    plan.call("G", "x", meets=True)
    plan.call("u", "w", "G", updates=(0,), base="w")  # its output is the weight's memory
    plan.call("R", "w", meets=True)
    plan.call("v", "R", "x")
    plan.call("B", meets=True, outputs=0)  # a barrier takes nothing
    plan.results = [plan.slots["v"]]
    assert [slot.name for slot in written(plan.calls[1])] == ["u", "w"]
    assert plan.split() == [("", "G", "G", "GRvwx"), ("u", "R", "R", "Rvwx"), ("v", "B", "B", "vw")]


def test_a_plan_without_collectives_is_one_segment():
    plan = Plan(inputs="x")
    plan.call("a", "x", outputs=2)
    plan.call("b", "a", "a.1")
    plan.results = [plan.slots["b"]]
    assert plan.split() == [("ab", "", "", "b")]
    plan = Plan()
    assert plan.split() == []
