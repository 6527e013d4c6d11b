"""Streams of kernels, and the events between them."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype
from dumpsim.graph.ge.streams import schedule
from dumpsim.graph.graph import Node, Parameter
from dumpsim.ops.table import find

TYPE = TensorType(dtype=dtype("float32"), shape=(2,))
NEG = find("Neg")


def kernel(name, *operands, engine="aicore", **attrs):
    definition = replace(NEG, engine=engine)
    return Node(
        op_type="Neg", operands=list(operands), abstract=TYPE, full_name=name, definition=definition, attrs=attrs
    )


def shown(launches):
    found = []
    for launch in launches:
        what = "" if launch.record is None and launch.wait is None else f" {launch.record} {launch.wait}"
        found.append(f"{launch.stream}: {launch.node.full_name}{what}")
    return found


X = Parameter(name="x", abstract=TYPE)


def test_one_stream_needs_no_schedule():
    a = kernel("a", X)
    assert schedule([a, kernel("b", a)], find, engines=True) == ()


def test_a_collective_runs_apart_between_two_events():
    a = kernel("a", X)
    b = kernel("b", a, engine="hccl")
    c = kernel("c", a)
    d = kernel("d", b, c)
    assert shown(schedule([a, b, c, d], find, engines=False)) == [
        "0: a",
        "0: a 0 None",
        "1: b None 0",
        "1: b",
        "1: b 1 None",
        "0: c",
        "0: d None 1",
        "0: d",
    ]


def test_groups_take_streams_in_order_and_the_ai_cpu_comes_last():
    world = kernel("world", X, engine="hccl", group="hccl_world_group")
    second = kernel("second", X, engine="hccl", group="2-5004544844489628105")
    first = kernel("first", X, engine="hccl", group="2-6301172352641561019")
    host = kernel("host", X, engine="aicpu")
    launches = schedule([host, second, world, first], find, engines=True)
    assert shown(launches) == ["4: host", "2: second", "1: world", "3: first"]
    assert {launch.stream for launch in schedule([host, world], find, engines=False)} == {0, 1}


graphs = st.lists(st.tuples(st.sampled_from(["aicore", "hccl", "aicpu"]), st.lists(st.integers(0, 30), max_size=3)))


@settings(max_examples=60, deadline=None)
@given(steps=graphs)
def test_every_order_that_events_allow_respects_the_data(steps):
    nodes = []
    for number, (engine, picks) in enumerate(steps):
        operands = [nodes[pick % len(nodes)] for pick in picks] if nodes else [X]
        nodes.append(kernel(f"n{number}", *operands, engine=engine))
    launches = schedule(nodes, find, engines=True)
    # run the streams in the worst order: always the last stream that can go on
    queues = {}
    for launch in launches:
        queues.setdefault(launch.stream, []).append(launch)
    recorded, done = set(), set()
    while any(queues.values()):
        ready = [s for s, q in queues.items() if q and (q[0].wait is None or q[0].wait in recorded)]
        assert ready, "deadlock"
        launch = queues[max(ready)].pop(0)
        if launch.record is not None:
            recorded.add(launch.record)
        elif launch.wait is None:
            assert all(id(o) in done for o in launch.node.operands if isinstance(o, Node))
            done.add(id(launch.node))
    assert not launches or len(done) == len(nodes)


@settings(max_examples=60, deadline=None)
@given(steps=graphs)
def test_each_wait_is_for_a_kernel_that_is_not_known_to_have_run(steps):
    """In sets: what must have run before each kernel, by its stream and its waits."""
    nodes = []
    for number, (engine, picks) in enumerate(steps):
        operands = [nodes[pick % len(nodes)] for pick in picks] if nodes else [X]
        nodes.append(kernel(f"n{number}", *operands, engine=engine))
    streams = [{"aicore": 0, "hccl": 1, "aicpu": 2}[engine] for engine, _ in steps]
    ran, expected = {}, []
    for at, node in enumerate(nodes):
        before = [other for other in range(at) if streams[other] == streams[at]]
        known = ran[before[-1]] if before else set()
        needed = {nodes.index(value) for value in node.operands if isinstance(value, Node)}
        missing = {streams[other]: other for other in sorted(needed - known) if streams[other] != streams[at]}
        ran[at] = known.union({at}, *(ran[other] for other in missing.values()))
        expected += [(node.full_name, nodes[other].full_name) for _, other in sorted(missing.items())]
    launches = schedule(nodes, find, engines=True)
    events = {launch.record: launch.node.full_name for launch in launches if launch.record is not None}
    found = [(launch.node.full_name, events[launch.wait]) for launch in launches if launch.wait is not None]
    assert found == expected
    assert sorted(events) == list(range(len(events)))
    assert set(events.values()) == {name for _, name in expected}
    assert bool(launches) == any(streams)


def test_what_a_wait_implies_is_not_waited_for_again():
    """An event stands for all that its stream had done and waited for."""
    a, b = kernel("a", X), kernel("b", X)
    c = kernel("c", a, engine="hccl")
    d = kernel("d", b, c, engine="hccl")
    e = kernel("e", d, a, b)
    f = kernel("f", c)
    host = kernel("host", e, a, d, engine="aicpu")
    assert shown(schedule([a, b, c, d, e, f, host], find, engines=True)) == [
        "0: a",
        "0: a 0 None",
        "0: b",
        "0: b 1 None",
        "1: c None 0",
        "1: c",
        "1: d None 1",
        "1: d",
        "1: d 2 None",
        "0: e None 2",
        "0: e",
        "0: e 3 None",
        "0: f",  # it has waited for d, which runs after c
        "2: host None 3",
        "2: host None 2",
        "2: host",
    ]


def test_the_last_of_several_kernels_of_a_stream_is_waited_for():
    a, b = kernel("a", X), kernel("b", X)
    c = kernel("c", b, a, engine="hccl")
    assert shown(schedule([a, b, c], find, engines=False)) == ["0: a", "0: b", "0: b 0 None", "1: c None 0", "1: c"]


def test_values_between_kernels_pass_needs_on():
    """A kernel needs what its operands come from, through tuples and tokens, each once."""
    a = kernel("a", X, engine="hccl")
    bundle = Node(op_type="MakeTuple", operands=[a, a], abstract=TYPE)
    token = Node(op_type="UpdateState", operands=[bundle, X], abstract=TYPE)
    item = Node(op_type="TupleGetItem", operands=[bundle], abstract=TYPE)
    b = kernel("b", item, token)
    assert shown(schedule([a, b], find, engines=False)) == ["1: a", "1: a 0 None", "0: b None 0", "0: b"]


def test_kernels_of_the_ai_cpu_have_a_stream_of_their_own_in_whole_graphs_only():
    host, dev = kernel("host", X, engine="aicpu"), kernel("dev", X)
    assert shown(schedule([host, dev], find, engines=True)) == ["2: host", "0: dev"]
    assert schedule([host, dev], find, engines=False) == ()


def test_a_number_type_without_units_runs_on_the_stream_of_the_ai_cpu():
    wide = kernel("wide", X)
    wide.abstract = TensorType(dtype=dtype("float64"), shape=(2,))
    after = kernel("after", wide)
    plain = kernel("plain", X)
    assert shown(schedule([plain, wide], find, engines=True)) == ["0: plain", "2: wide"]
    assert shown(schedule([wide, plain, after], find, engines=True)) == ["2: wide", "0: plain", "2: after"]
    assert schedule([wide, plain, after], find, engines=False) == ()
