"""Overflow dump at O0 and O1: which outputs are tested, and the vendor's quirks."""

import hashlib

import numpy as np
import pytest

from dumpsim.dump.overflowrecord import layout_of, record_of
from tests.dump.machine import Machine, ref, task

BAD = np.array([np.inf], np.float32)
WHOLE = np.array([1, 2], np.int32)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "dump"


def found(machine, *tasks):
    machine.run(*tasks)
    return {name.split("/")[-1].split(".")[0] for name in machine.names()}


def operator(name, *outputs, **fields):
    return task(f"Default/{name}-op0", [], [ref(array, slot) for slot, array in enumerate(outputs)], **fields)


@pytest.mark.parametrize(("profile", "expected"), [("seed/ascend_o0", {"A", "B"}), ("2.10/ascend_o0", {"A"})])
def test_the_second_output_that_is_not_tested_ends_the_test_of_its_operator(root, profile, expected):
    machine = Machine(root, profile, op_debug_mode=3)
    assert found(machine, operator("A", WHOLE, BAD), operator("B", WHOLE, BAD), operator("C", WHOLE)) == expected
    assert sum("not supported by AllFinite" in text for _, text in machine.log) == 1  # once a type


def test_useless_outputs_are_not_tested(root):
    norm = operator("Norm", WHOLE.astype(np.float32), BAD, op_type="BatchNorm")
    assert found(Machine(root / "a", op_debug_mode=3), norm) == set()
    kept = Machine(root / "b", op_debug_mode=3, env={"MINDSPORE_DUMP_IGNORE_USELESS_OUTPUT": "0"})
    assert found(kept, norm) == {"BatchNorm"}


def test_what_passes_through_counts_and_what_saturates_does_not(root):
    machine = Machine(root, op_debug_mode=3)
    largest = np.array([65504], np.float16)
    assert found(machine, operator("A", BAD), operator("B", largest), operator("C", BAD.astype(np.float64))) == {"A"}


def test_the_number_of_overflows_is_that_of_the_process(root):
    machine = Machine(root, op_debug_mode=3, overflow_number=2)
    for _ in range(3):
        machine.run(operator("A", BAD))
    assert {name.split("/")[2] for name in machine.names()} == {"0", "1"}


def test_the_iteration_filter_applies_and_kernels_do_not(root):
    machine = Machine(root, op_debug_mode=3, iteration="1", dump_mode=1, kernels=["Exp"])
    for _ in range(3):
        machine.run(operator("A", BAD))
    assert {name.split("/")[2] for name in machine.names()} == {"1"}


def test_a_chip_that_saturates_is_told_to_show_nothing(root):
    machine = Machine(root, op_debug_mode=3, info={"saturation": True})
    assert any("saturates" in text for level, text in machine.log if level == "WARNING")
    assert "saturates" in str(machine.service.finish())
    quiet = Machine(root / "o2", "seed/ascend_o2", op_debug_mode=3, info={"saturation": True})
    assert not any("saturates" in text for _, text in quiet.log)


def test_the_digest_of_int4_with_its_defect(root):
    packed = ref(np.array([0x21, 0x43], np.uint8), 0, kind="int4", device="int4", shape=(4,))
    digests = []
    for bugs in ("false", "true"):
        settings = {"overrides": {"bug_compat": bugs}}
        machine = Machine(root / bugs, saved_data="statistic", statistic_category=["md5"], settings=settings)
        machine.run(task(outputs=[packed]))
        machine.service.finish()
        digests.append(machine.find("statistic.csv").read_text().splitlines()[1].rsplit(",", 1)[1])
    assert digests == [hashlib.md5(bytes(values)).hexdigest() for values in ([1, 2, 3, 4], [1, 2])]


@pytest.mark.parametrize(
    ("op_type", "unit"), [("MatMul", 0), ("MatMulV2", 0), ("Conv2D", 0), ("Add", 1), ("aMatMul", 1)]
)
@pytest.mark.parametrize(("status", "shown"), [(0, 0x20), (0x110, 0x110)])
def test_the_record_of_the_device(op_type, unit, status, shown):
    """[spec mindspore 5.2]: little-endian words at their places; 0x20 is the overflow of floating point."""
    event = task("Default/x-op0", op_type=op_type, task_id=3, stream_id=2, model_id=5, overflow_status=status)
    old = np.frombuffer(record_of(event, "old"), "<u8")
    assert old.size == 256
    words = {at: int(old[at // 8]) for at in range(0, 2048, 8) if old[at // 8]}
    assert words == {256: 5, 264: 2, 272: 3, 1040: shown}
    new = record_of(event, "new")
    head = np.frombuffer(new[:24], "<u4").tolist()
    assert (head[0], head[2], head[3]) == (0x5A5A5A5A, 1, unit)
    data = np.frombuffer(new[24 : 24 + head[5]], "<u8").tolist()
    assert data[:3] == [5, 2, 3]
    assert data[4:6] == [65535, 65535]
    assert data[10] == shown
    assert len(new) == 2048


@pytest.mark.parametrize(
    ("word", "chip", "layout"),
    [("chip", "910A", "old"), ("chip", "310P", "old"), ("chip", "910B", "new"), ("chip", "910_93", "new"),
     ("chip", "", "new"), ("old", "910B", "old"), ("new", "910A", "new")],
)  # fmt: skip
def test_the_layout_of_the_record(word, chip, layout):
    """[spec mindspore 5.2]: the new one is that of later hardware."""
    assert layout_of(word, chip) == layout
