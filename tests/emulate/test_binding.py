"""CPUs of processes on a machine that is made up: eight CPUs, six of them ours, on two nodes."""

import os

import pytest

from dumpsim.core.errors import BadInputError
from dumpsim.emulate import binding
from dumpsim.emulate.binding import SCHEDULER, parse_binding

MINE = {0, 1, 2, 4, 5, 7}


@pytest.fixture
def machine(monkeypatch, tmp_path):
    for node, cpus in ((0, "0-3\n"), (1, "4-7\n"), (2, "\n"), (3, "6\n")):
        (tmp_path / f"node{node}").mkdir()
        (tmp_path / f"node{node}" / "cpulist").write_text(cpus)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0: set(MINE)}[pid])  # 0: this process
    monkeypatch.setattr(binding, "_NODES", tmp_path)
    return tmp_path


CORE, NUMA = "--bind_core", "--bind_numa"
BOUND = [
    (CORE, "False", 2, {}), (NUMA, "false", 2, {}),
    (CORE, "True", 2, {0: (0, 1, 2), 1: (4, 5, 7)}), (CORE, "TRUE", 4, {0: (0,), 1: (1,), 2: (2,), 3: (4,)}),
    (CORE, "true", 6, {5: (7,)}), (NUMA, "True", 1, {0: (0, 1, 2)}),
    (NUMA, "True", 2, {0: (0, 1, 2), 1: (4, 5, 7)}), (NUMA, "True", 4, {1: (0, 1, 2), 2: (4, 5, 7)}),
    (CORE, '{"device1": ["0-2", "4, 7"], "scheduler": ["5"]}', 2, {0: (), 1: (0, 1, 2, 4, 7), SCHEDULER: (5,)}),
    (CORE, '{"device10": ["7,1,1"]}', 2, {10: (1, 7)}), (CORE, '{"device0": []}', 2, {0: ()}),
    (CORE, '{"device0": [4]}', 2, {0: (4,)}), (NUMA, '{"device0": ["1"], "device1": ["0-1"]}', 2,
                                              {0: (4, 5, 7), 1: (0, 1, 2, 4, 5, 7)}),
]  # fmt: skip


@pytest.mark.parametrize(("option", "text", "workers", "found"), BOUND)
def test_processes_have_the_cpus_that_were_asked_for(machine, option, text, workers, found):
    bound, why = parse_binding(text, option, workers)
    assert ({place: bound.cpus(place) for place in found}, why) == (found, "")
    if text.lower() == "true":
        assert bound.cpus(workers) == ()


def test_more_workers_than_cpus_are_not_bound(machine):
    bound, why = parse_binding("True", CORE, 7)
    assert (bound.cpus(0), why) == ((), "--bind_core binds nothing: 6 CPUs for 7 workers")


def test_a_machine_without_nodes_is_one(machine, monkeypatch, tmp_path):
    monkeypatch.setattr(binding, "_NODES", tmp_path / "none")
    for text in ("True", '{"device1": ["0"]}'):
        assert parse_binding(text, NUMA, 2)[0].cpus(1) == tuple(sorted(MINE))
    with pytest.raises(BadInputError, match="this machine has no 1 to bind to; allowed: 0 "):
        parse_binding('{"device1": ["1"]}', NUMA, 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("maybe", "'maybe' is not a value of it; allowed: True, False"),
        ("[1]", r"'\[1\]' is not a value of it"),
        ('{"device": ["0"]}', "'device' cannot be bound; allowed: deviceN, scheduler"),
        ('{"device0x": ["0"]}', "'device0x' cannot be bound"),
        ('{"device0": "0"}', "device0: '0' is not a list of numbers"),
        ('{"device0": ["0-"]}', r"device0: \['0-'\] is not a list of numbers"),
        ('{"device0": ["-1"]}', r"device0: \['-1'\] is not a list of numbers"),
        ('{"device0": ["2-4"]}', "device0: this machine has no 3 to bind to; allowed: 0, 1, 2, 4, 5, 7"),
        ('{"device0": ["0-99999999999"]}', "device0: this machine has no 3 to bind to"),
    ],
)
def test_what_cannot_be_bound_is_refused(machine, text, said):
    with pytest.raises(BadInputError, match=f"^--bind_core: {said}"):
        parse_binding(text, CORE, 2)
