"""Numbers of iterations, and which of them are dumped. [spec mindspore 3.3, decisions]"""

import pytest

from dumpsim.core.steps import Steps
from dumpsim.dump.control import DumpControl
from dumpsim.dump.iteration import Iteration, IterationCounter, Moment


def numbers(rule, runs, first=0):
    """Numbers of runs: a capital letter is the graph of a data set."""
    counter, found = IterationCounter(rule, first), []
    for graph in runs:
        dataset = graph.isupper()
        coming = counter.coming(graph, dataset=dataset)
        found.append(counter.begin(graph, dataset=dataset))
        assert (coming, counter.current) == (found[-1], found[-1])
        counter.end(graph, dataset=dataset)
    return found


@pytest.mark.parametrize(
    ("rule", "runs", "first", "expected"),
    [
        ("process", "abab", 0, [0, 1, 2, 3]), ("process", "abab", 5, [5, 6, 7, 8]),
        ("process", "Daab", 0, [0, 0, 1, 2]), ("process", "aDab", 0, [0, 0, 1, 2]), ("process", "Da", 5, [5, 5]),
        ("model", "abaab", 0, [0, 0, 1, 2, 1]), ("model", "aba", 3, [3, 3, 4]),
        ("graph", "aaabbb", 0, [0, 1, 2, 3, 1, 2]), ("graph", "aababbba", 0, [0, 1, 2, 1, 3, 2, 3, 4]),
        ("graph", "aab", 10, [10, 11, 12]),
        ("graph", "Daaa", 0, [0, 0, 1, 2]), ("graph", "Daa", 4, [4, 4, 5]),  # the steps of a data sink begin at 0
        ("graph", "DDaa", 0, [0, 0, 2, 1]), ("graph", "aDa", 0, [0, 1, 0]), ("graph", "aaDa", 0, [0, 1, 2, 0]),
    ],
)  # fmt: skip
def test_the_number_of_each_run(rule, runs, first, expected):
    assert numbers(rule, runs, first) == expected


def test_a_moment_is_that_of_a_first_run_unless_told():
    assert Moment(number=3) == Moment(number=3, run=0, time_ns=0)


def test_a_run_is_dumped_where_its_number_is_selected():
    one = Iteration(IterationCounter("process"), Steps.parse("0|2"), DumpControl(), enabled=True)
    assert (one.capturing, one.moment) == (True, Moment(number=0, run=0, time_ns=0))
    seen = []
    for run in range(4):
        assert one.coming("a", dataset=False) == run
        assert one.begin("a", run=run, time_ns=10 * run, dataset=False) == Moment(number=run, run=run, time_ns=10 * run)
        seen.append(one.capturing)
        one.end("a", dataset=False)
        assert one.moment.time_ns == 10 * run
    assert seen == [True, False, True, False]
    other = Iteration(IterationCounter("process"), Steps.parse("0"), DumpControl(), enabled=False)
    assert other.capturing is False


@pytest.mark.parametrize(
    ("control", "number", "capturing"),
    [
        (DumpControl(), 0, True), (DumpControl(user_step=7), 7, False), (DumpControl(user_step=0), 0, True),
        (DumpControl(dynamic=True), 0, False), (DumpControl(dynamic=True, running=True), 0, True),
        (DumpControl(dynamic=True, running=True, user_step=7), 7, True), (DumpControl(running=True), 0, True),
    ],
)  # fmt: skip
def test_a_script_counts_or_starts_the_steps_itself(control, number, capturing):
    one = Iteration(IterationCounter("graph"), Steps.parse("0"), control, enabled=True)
    assert (one.coming("a", dataset=False), one.moment.number, one.capturing) == (number, number, capturing)
    one.begin("a", run=0, time_ns=1, dataset=False)
    assert (one.moment.number, one.capturing) == (number, capturing)


def test_tasks_after_a_run_belong_to_the_next_number():
    one = Iteration(IterationCounter("graph"), Steps.parse("1"), DumpControl(), enabled=True)
    one.begin("a", run=4, time_ns=5, dataset=False)
    assert not one.capturing
    one.end("a", dataset=False)
    assert (one.moment, one.capturing) == (Moment(number=1, run=4, time_ns=5), True)
