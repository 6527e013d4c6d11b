"""Operands whose memory is already freed, compared with a search through the later operators for readers."""

import random
from types import SimpleNamespace

import pytest

from dumpsim.core.dtype import dtype
from dumpsim.runtime.freed import freed
from dumpsim.runtime.slot import Slot


def slot(index, kind="activation", base=None, **rest):
    number = dtype("float32")
    return Slot(
        index=index, name=str(index), kind=kind, dtype=number, shape=(2,), device_dtype=number, base=base, **rest
    )


def call(*operands):
    return SimpleNamespace(arguments=operands)


def flat(operands):
    return [one for operand in operands for one in (flat(operand) if isinstance(operand, tuple) else [operand])]


def searched(calls, results):
    """The rule in words: a view that is a result is no use of its memory; without a use that is left, it is freed."""
    for at, now in enumerate(calls):
        found = set()
        for one in flat(now.arguments):
            users = [
                o for later in calls[at:] for o in flat(later.arguments) if o.root is one.root and o not in results
            ]
            is_view = one.transparent and one.root.kind == "activation"
            if is_view and one in results and one.root not in results and not users:
                found.add(one)
        yield found


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed):
    draw = random.Random(seed)
    slots = [slot(at, draw.choice(["activation", "activation", "activation", "weight", "input"])) for at in range(4)]
    for at in range(4, 10):
        base = draw.choice(slots)
        slots.append(slot(at, base.kind, base, transparent=draw.random() < 0.8))
    results = draw.sample(slots, draw.randint(1, 6))
    calls = [call(*draw.choices(slots, k=2), tuple(draw.choices(slots, k=draw.randint(0, 2)))) for _ in range(8)]
    assert list(freed(calls, results)) == list(searched(calls, results))


def test_readers_of_a_reshaped_result():
    """[observed 2.10]: the operand of Reshape is freed after its last use, and those of a result do not count."""
    made = slot(0)
    view = slot(1, base=made, transparent=True)
    assert list(freed([call(made), call(view), call(view)], [view])) == [set(), {view}, {view}]
    assert list(freed([call(view), call(made), call(view)], [view])) == [set(), set(), {view}]
    assert list(freed([call(made), call(view)], [])) == [set(), set()]
    assert list(freed([call(made), call(view)], [view, made])) == [set(), set()]
