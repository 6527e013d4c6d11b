"""Which graph a record names, and where its tensors go."""

from types import SimpleNamespace

import pytest

from dumpsim.archive.modeltree import ModelTree
from dumpsim.archive.tree import Tree
from dumpsim.core.events import NO_GRAPH
from dumpsim.dump.iteration import Moment
from dumpsim.dump.location import ModelLocation, RankLocation

EVENT = SimpleNamespace(graph_id=3, root_graph_id=1, model_name="net", model_id=5, time_ns=10**18 + 7 * 10**9)


@pytest.mark.parametrize(("root_graphs", "graph_id"), [(False, 3), (True, 1)])
def test_graphs_of_a_rank_are_its_own_or_their_roots(root_graphs, graph_id):
    location = RankLocation(Tree(path="/d", net_name="Net", rank=2), root_graphs=root_graphs)
    assert location.graph_id(EVENT) == graph_id
    assert location.directory(EVENT, Moment(number=4, run=0)) == f"/d/rank_2/Net/{graph_id}/4"
    assert (location.root, location.owner) == ("/d/rank_2", "rank_2")


@pytest.mark.parametrize("step_level", [False, True])
def test_models_have_a_time_that_stays_unless_each_step_sets_its_own(step_level):
    location = ModelLocation(ModelTree(path="/d", device_id=6, step_level=step_level))
    assert location.graph_id(EVENT) == 3
    assert location.owner == "device_6"
    first = location.directory(EVENT, Moment(number=0, run=0))
    later = SimpleNamespace(**vars(EVENT) | {"time_ns": EVENT.time_ns + 60 * 10**9})
    second = location.directory(later, Moment(number=1, run=1))
    single = location.directory(SimpleNamespace(**vars(later) | {"graph_id": NO_GRAPH}), Moment(number=1, run=1))
    times = [next(part for part in path.split("/") if len(part) == 14) for path in (first, second, single)]
    assert times[1] == times[2]
    assert int(times[1]) - int(times[0]) == (100 if step_level else 0)
    assert first.endswith("/6/net/5/0")
    assert second.endswith("/6/net/5/1")
    assert single.endswith("/6")
