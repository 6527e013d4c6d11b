"""Why a dump is empty, and the command that is proposed after it."""

from types import SimpleNamespace

import pytest

from dumpsim.core.clock import VirtualClock
from dumpsim.core.match import KernelRules
from dumpsim.core.settings import RunSettings
from dumpsim.core.steps import Steps
from dumpsim.dump.control import DumpControl
from dumpsim.dump.info import SessionInfo
from dumpsim.dump.report import following, why_nothing
from dumpsim.dump.summary import Tally
from dumpsim.modes.profile import find
from dumpsim.modes.request import DumpRequest, ModelRule, Selection

RULES = Selection(rules=KernelRules.parse(["Add"]))


def info(**fields):
    return SessionInfo(target="Ascend", clock=VirtualClock(), **fields)


@pytest.mark.parametrize(
    ("changes", "dynamic", "iterations", "ran", "reason"),
    [
        ({}, True, set(), True, "no graph ran between _dump_start and _dump_stop"),
        ({}, True, {1}, True, "no kernel ran"),
        ({"steps": Steps.parse("8-5")}, False, set(), True, "iteration '8-5' matches nothing"),
        ({}, False, set(), False, "no graph ran"),
        ({}, False, set(), True, "no graph ran in an iteration that the config asks for"),
        ({}, False, {0}, True, "no kernel ran"),
        ({"trigger": "overflow"}, False, {0}, True, "no operator overflowed"),
        ({"trigger": "failure", "selection": RULES}, False, {0}, True, "no operator failed"),
        ({"selection": RULES}, False, {0}, True, "kernels matches no operator"),
        ({"selection": Selection(marked=True)}, False, {0}, True, "no operator has the mark of set_dump"),
        (
            {"selection": Selection(rules=RULES.rules, marked=True)}, False, {0}, True, "kernels matches no operator",
        ),
        (
            {"selection": Selection(models=(ModelRule(),)), "dialect": "acl"}, False, {0}, True,
            "dump_list matches no operator",
        ),
    ],
)  # fmt: skip
def test_the_reason_of_an_empty_dump(changes, dynamic, iterations, ran, reason):
    session = info(control=DumpControl(dynamic=dynamic))
    found = why_nothing(DumpRequest(path="/d", **changes), session, Tally(iterations=iterations), ran=ran)
    assert found == f"nothing was dumped: {reason}"


NAN, OVERFLOW = SimpleNamespace(kind="NaN"), SimpleNamespace(kind="overflow")


@pytest.mark.parametrize(
    ("profile", "changes", "tally", "fields", "facts", "command"),
    [
        ("seed/cpu", {}, {"elsewhere": True}, {}, [], ""),
        ("seed/cpu", {}, {}, {}, [], "dumpsim check 'my dump.json' --device cpu"),
        ("2.10/gpu", {}, {}, {}, [], "dumpsim check 'my dump.json' --device gpu --mindspore 2.10"),
        ("seed/ascend_o2", {}, {}, {}, [], "dumpsim check 'my dump.json' --device ascend --jit-level O2"),
        (
            "2.7/ascend_o0", {}, {},
            {"settings": RunSettings(overrides={"op_name": "short", "categories": "max, min"})}, [NAN],
            "dumpsim check 'my dump.json' --device ascend --mindspore 2.7 --set op_name=short "
            "--set 'categories=max, min'",
        ),
        ("seed/ascend_ge", {"dialect": "acl"}, {}, {}, [], "dumpsim check 'my dump.json' --dialect acl"),
        ("seed/ascend_ge", {"dialect": "acl"}, {"tensors": 1}, {}, [], "dumpsim ls /d --summary"),
        ("seed/cpu", {}, {"tensors": 1}, {}, [], "dumpsim ls /d --summary"),
        ("seed/cpu", {}, {"tensors": 1, "rows": 1}, {}, [], "dumpsim ls /d --summary"),
        ("seed/cpu", {}, {"rows": 1}, {}, [], "dumpsim stat /d"),
        ("seed/cpu", {}, {"rows": 1}, {}, [NAN], "dumpsim first /d"),
        ("seed/cpu", {}, {"tensors": 1}, {"saturation": True}, [NAN], "dumpsim first /d"),
        ("seed/ascend_o2", {}, {"tensors": 1}, {}, [OVERFLOW], "dumpsim first /d"),
        ("seed/ascend_o2", {}, {"tensors": 1}, {"saturation": True}, [OVERFLOW], "dumpsim ls /d --summary"),
        ("seed/ascend_o2", {}, {"tensors": 1}, {"saturation": True}, [OVERFLOW, NAN], "dumpsim first /d"),
        ("seed/ascend_o2", {"trigger": "overflow"}, {"tensors": 1}, {}, [OVERFLOW], "dumpsim ls /d --overflow"),
        ("seed/ascend_o0", {"trigger": "overflow"}, {"tensors": 1}, {}, [NAN], "dumpsim stat /d --bad"),
        ("seed/ascend_o0", {"trigger": "overflow"}, {}, {}, [],
         "dumpsim check 'my dump.json' --device ascend"),
    ],
)  # fmt: skip
def test_the_next_command(profile, changes, tally, fields, facts, command):
    request = DumpRequest(path="/d/", file="my dump.json", **changes)
    assert following(request, find(*profile.split("/")), info(**fields), Tally(**tally), facts) == command


def test_a_session_says_only_what_it_is():
    clock = VirtualClock()
    found = SessionInfo(target="CPU", clock=clock)
    assert (found.chip, found.jit_level, found.saturation, found.rank, found.device_id, found.member) == (
        "", "O0", False, 0, 0, 0,
    )  # fmt: skip
    assert (found.settings, found.disk, found.control) == (RunSettings(), None, DumpControl())
    assert DumpControl() == DumpControl(dynamic=False, running=False, user_step=None)
    assert [list(found.late_changes()), list(found.lifetimes()), list(found.layouts())] == [[], [], []]
    assert found.log("WARNING", "", "nobody hears it") is None
