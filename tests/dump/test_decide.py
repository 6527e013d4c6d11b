"""Which operators leave files, and what a request for operators of models chooses."""

import hashlib
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from dumpsim.core.events import GraphEvent
from dumpsim.dump.decide import choose_parameters, leaves_files
from dumpsim.dump.measure import host_cells
from dumpsim.dump.modelchoice import ModelChoice
from dumpsim.dump.selection import KernelChoice
from dumpsim.dump.summary import human_size
from dumpsim.modes.profile import find
from dumpsim.modes.request import Blocked, DumpRequest, ModelRule, Selection
from tests.dump.machine import ref, task


def event(op_type="Add", name="a", outputs=(1,), model="m", number=1):
    return SimpleNamespace(op_type=op_type, full_name=name, outputs=outputs, model_name=model, model_id=number,
                           original_names=())  # fmt: skip


@pytest.mark.parametrize(("op_type", "outputs", "everything", "models", "left"), [
    ("Add", (1,), False, None, True), ("Add", (), False, None, False), ("Const", (1,), True, None, False),
    ("Data", (1,), False, None, False), ("Data", (1,), True, None, True), ("Data", (1,), False, ("m",), True),
    ("Send", (), True, None, False),
])  # fmt: skip
def test_operators_that_leave_files(op_type, outputs, everything, models, left):
    request = SimpleNamespace(selection=SimpleNamespace(everything=everything, models=models))
    assert leaves_files(SimpleNamespace(skip_tables="ge"), request, event(op_type, outputs=outputs)) is left


@pytest.mark.parametrize(
    ("kind", "outputs", "names"),
    [("none", True, []), ("weights", True, ["w"]), ("all", True, ["w", "x"]), ("weights", False, []),
     ("all", False, [])],
)  # fmt: skip
def test_the_inputs_of_a_graph_with_a_file(kind, outputs, names):
    """Parameters count as outputs; inputs without a name have none. [spec mindspore 3.10]"""
    profile = find("seed", "gpu", {"parameters": kind})
    weight = replace(ref(np.ones(2), name="w"), is_weight=True)
    given, nameless = replace(weight, name="x", is_weight=False), replace(weight, name="")
    found = choose_parameters(DumpRequest(path="/d", outputs=outputs), profile, (weight, given, nameless))
    assert ([one.name for one in found.wanted], found.skipped) == (names, ())


def loaded(order, *rules, **fields):
    choice = ModelChoice(rules)
    graph = GraphEvent(doc=None, graph_id=0, root_graph_id=0, is_root=True, execution_order=tuple(order),
                       model_name="m", model_id=1, **fields)  # fmt: skip
    return choice, choice.loaded(graph)


def test_a_range_that_goes_wrong_is_named():
    choice, warnings = loaded("abcd", ModelRule(ranges=(("c", "b"), ("a", "b"))))
    text = "opname_range c to b of m is out of order or starts again: nothing after that is dumped"
    assert warnings == (text,)
    assert [name for name in "abcd" if choice.selects(event(name=name))] == ["a", "b"]
    assert not choice.selects(event(name="a", number=2))  # of another model
    assert loaded("abcd", ModelRule(model="other", ranges=(("c", "b"),)))[1] == ()


EVENTS = {  # state -> the next one after the first operator of a range, the last one, another one [spec ge 2.6]
    "init": ("start", "error", "init"), "start": ("start", "stop", "start"), "stop": ("error", "stop", "init"),
    "error": ("error", "error", "error"),
}  # fmt: skip


@pytest.mark.parametrize("length", range(1, 6))
def test_ranges_follow_the_automaton_of_ge(length):
    for names in product("beo", repeat=length):
        state, wanted = "init", []
        for at, name in enumerate(names):
            state = EVENTS[state]["beo".index(name)]
            if state in ("start", "stop"):
                wanted.append(at)
            if state == "error":
                break
        choice, warnings = loaded(names, ModelRule(ranges=(("b", "e"),)))
        assert bool(warnings) is (state == "error")
        chosen = {name for name in names if choice.selects(event(name=name))}
        assert chosen == {names[at] for at in wanted}


def test_a_range_of_one_operator():
    for names, wanted, good in (("abc", "b", True), ("bb", "b", False), ("bab", "b", True), ("ac", "", True)):
        choice, warnings = loaded(names, ModelRule(ranges=(("b", "b"),)))
        assert {name for name in names if choice.selects(event(name=name))} == set(wanted)
        assert (warnings == ()) is good


def test_other_rules_hold_for_models_that_are_loaded_later():
    choice, _ = loaded("ab", ModelRule(names=("a",)))
    choice.replace([ModelRule(names=("b",))])
    assert [name for name in "ab" if choice.selects(event(name=name))] == ["b"]
    choice.replace([ModelRule(model="n")])
    assert not choice.selects(event())
    assert choice.selects(event(model="n"))
    assert ModelRule().whole
    assert not ModelRule(names=()).whole
    assert not ModelRule(ranges=(("a", "b"),)).whole


def test_an_input_of_a_model_is_selected_by_its_readers():
    choice, _ = loaded(["conv"], ModelRule(names=("conv",)), readers={"data": ("conv",), "label": ("loss",)})
    assert [name for name in ("data", "label", "conv") if choice.selects(event(name=name))] == ["data", "conv"]
    fused = SimpleNamespace(**vars(event(name="fused")) | {"original_names": ("x", "conv")})
    assert choice.selects(fused)


def test_blocked_slots_of_all_rules_are_joined():
    one = Blocked(name="Add", by_type=True, inputs=frozenset({0}), outputs=frozenset({1}))
    other = replace(one, name="a", by_type=False, inputs=frozenset({2}))
    choice, _ = loaded("ab", ModelRule(blocked=(one,)), ModelRule(model="m", blocked=(other,)))
    assert choice.blocked(event()) == (frozenset({0, 2}), frozenset({1}))
    assert choice.blocked(event(name="b")) == (frozenset({0}), frozenset({1}))
    assert choice.blocked(event(op_type="a", name="Add")) == (frozenset(), frozenset())


def test_names_that_no_model_has_are_told():
    choice, _ = loaded(["conv", "relu"], ModelRule(names=("conv", "relo", "old"), ranges=(("conv", "end"),)),
                       originals={"conv": ("old",)})  # fmt: skip
    assert list(choice.unused()) == [
        "no loaded model has an operator 'relo' (did you mean 'relu'?)", "no loaded model has an operator 'end'",
    ]  # fmt: skip
    assert list(choice.names.missing(["old"], fused=False)) == ["'old' was fused into 'conv': use that name"]


@pytest.mark.parametrize(("values", "nan", "infinite"), [
    ([1, 2], False, False), ([np.nan, 1], True, False), ([np.inf, 1], False, True), ([-np.inf, 1], False, True),
    ([np.inf, -np.inf], False, True),
])  # fmt: skip
def test_odd_numbers_are_seen(values, nan, infinite):
    found = host_cells(np.float32(values), ("max", "count"))
    assert (found.nan, found.infinite) == (nan, infinite)
    assert host_cells(np.float32(values), ("md5",)).nan is None


def test_sizes_as_people_say_them():
    assert [human_size(n) for n in (0, 999, 1000, 999_949, 10**6, 10**9, 10**12, 5 * 10**16)] == [
        "0 B", "999 B", "1.0 kB", "999.9 kB", "1.0 MB", "1.0 GB", "1.0 TB", "50000.0 TB",
    ]  # fmt: skip


@pytest.mark.parametrize(("size", "whole"), [(20480, True), (20481, False), (40960, False)])
def test_sha1_of_a_large_tensor_is_that_of_its_slices(size, whole):
    values = np.arange(size, dtype=np.int16)
    (found,) = host_cells(values, ("sha1",)).cells
    slices = [values[at : at + 20480] for at in range(0, size, 20480)]
    digests = "".join(hashlib.sha1(part.tobytes()).hexdigest() for part in slices)
    assert found == (digests if whole else hashlib.sha1(digests.encode()).hexdigest())
    assert host_cells(values, ("md5",)).cells == (hashlib.md5(values.tobytes()).hexdigest(),)


def test_other_rules_are_for_models_that_are_loaded_later():
    first, second = (Selection(models=(ModelRule(names=(name,)),)) for name in "ab")
    choice = KernelChoice(first)
    assert choice.selection is first

    def chosen(number):
        event = GraphEvent(doc=None, graph_id=0, root_graph_id=0, is_root=True, execution_order=("a", "b"),
                           model_name=f"m{number}", model_id=number)  # fmt: skip
        choice.loaded(event)
        return [name for name in "ab" if task(name, op_type="Add", model_name=f"m{number}", model_id=number) in choice]

    assert chosen(1) == ["a"]
    choice.reselect(second)
    assert choice.selection is second
    assert chosen(2) == ["b"]
