"""Life times and offsets in the workspace, checked against the tensors that hand-made kernels use."""

import numpy as np
import pytest

from dumpsim.core.dtype import dtype
from dumpsim.device.space import BLOCK_RULES
from dumpsim.runtime.slot import Slot
from dumpsim.runtime.workspace import Use, arrange

DYNAMIC = BLOCK_RULES["dynamic"]


def slot(index, nbytes=512, kind="activation", base=None):
    return Slot(
        index=index,
        name=f"t{index}",
        kind=kind,
        dtype=dtype("float32"),
        shape=(nbytes // 4,),
        device_dtype=dtype("float32"),
        base=base,
        bound=nbytes // 4,
    )


def use(reads=(), writes=(), **rest):
    return Use(reads=tuple(reads), writes=tuple(writes), **rest)


def chain(count):
    """x -> t1 -> t2 ...: each kernel reads the tensor of the one before."""
    slots = [slot(0, kind="input"), *(slot(index) for index in range(1, count + 1))]
    return slots, [use([slots[at]], [slots[at + 1]]) for at in range(count)]


def test_a_tensor_lives_from_its_kernel_to_its_last_reader_and_results_to_the_end():
    slots, uses = chain(4)
    spans, size = arrange(slots, uses, [slots[4]], DYNAMIC, reuse=True)
    assert [(spans[at].born, spans[at].dead) for at in range(5)] == [(-1, 4), (0, 1), (1, 2), (2, 3), (3, 4)]
    # t3 reuses the memory of t1, which is no longer read, and t4 that of t2
    assert [spans[at].offset for at in range(5)] == [0, 512, 1024, 512, 1024]
    assert size == 3 * 512


def test_without_reuse_every_tensor_has_a_place_of_its_own():
    slots, uses = chain(4)
    spans, size = arrange(slots, uses, [slots[4]], DYNAMIC, reuse=False)
    assert [spans[at].offset for at in range(5)] == [0, 512, 1024, 1536, 2048]
    assert size == 5 * 512


def test_readers_of_a_view_keep_its_base_alive():
    x, y, z = slot(0, kind="input"), slot(1), slot(2)
    view = slot(9, base=y)
    uses = [use([x], [y]), use([y], [view]), use([x], [z]), use([view, z], [])]
    spans, _ = arrange([x, y, z], uses, [], DYNAMIC, reuse=True)
    assert (spans[1].born, spans[1].dead) == (0, 3)
    assert spans[1].offset != spans[2].offset
    assert 9 not in spans


def test_tensors_outside_the_workspace_are_left_alone():
    weight, x, y = slot(7, kind="weight"), slot(0, kind="input"), slot(1)
    spans, size = arrange([x, y], [use([weight, x], [y])], [y, weight], DYNAMIC, reuse=True)
    assert sorted(spans) == [0, 1]
    assert size == 2 * 512


@pytest.mark.parametrize(("engine", "guard"), [("hccl", 512), ("aicore", 0)])
def test_tensors_of_other_streams_live_to_the_end_in_separate_memory(engine, guard):
    slots, uses = chain(4)
    uses[1] = use([slots[1]], [slots[2]], stream=1, engine=engine)
    spans, size = arrange(slots, uses, [slots[4]], DYNAMIC, reuse=True)
    assert spans[1].dead == spans[2].dead == 4
    rest = [spans[at] for at in (0, 3, 4)]
    ends = max(span.offset for span in rest) + 512
    assert [spans[1].offset, spans[2].offset] == [ends + guard, ends + 512 + 3 * guard]
    assert size == ends + 2 * (512 + 2 * guard)


def test_guards_of_a_collective_apply_to_tensors_that_another_stream_reads():
    slots, uses = chain(2)
    for order in ((1, 2), (2, 1)):
        streams = {1: use([slots[0]], [slots[1]], stream=1, engine="hccl"), 2: use([slots[1]], [slots[2]], stream=2)}
        spans, _ = arrange(slots, [streams[at] for at in order], [], DYNAMIC, reuse=True)
        assert spans[1].offset - spans[0].offset >= 512 + 512  # after x and its own guard
        between = abs(spans[2].offset - spans[1].offset)
        assert between >= 512 + 512
    assert uses


def test_random_programs_never_let_two_living_tensors_share_bytes():
    rng = np.random.default_rng(8)
    for _ in range(50):
        slots = [slot(index, 4 * int(rng.integers(1, 600))) for index in range(12)]
        uses = [
            use([slots[n] for n in rng.integers(0, at, 2)] if at else [], [slots[at]], stream=int(rng.random() < 0.1))
            for at in range(12)
        ]
        spans, size = arrange(slots, uses, [slots[int(rng.integers(12))]], DYNAMIC, reuse=True)
        for at, item in enumerate(uses):
            assert all(spans[s.index].born <= at <= spans[s.index].dead for s in (*item.reads, *item.writes))
        for one in slots:
            assert 0 <= spans[one.index].offset <= size - one.nbytes
            for other in slots[: one.index]:
                a, b = spans[one.index], spans[other.index]
                together = a.born <= b.dead and b.born <= a.dead
                overlap = a.offset < b.offset + other.nbytes and b.offset < a.offset + one.nbytes
                assert not (together and overlap)
