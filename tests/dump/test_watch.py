"""Watch mode on the runtime of whole graphs, with a fault plan that writes out of bounds, and ``dumpsim watchdiff``."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from dumpsim.analysis.watchdiff import watchdiff
from dumpsim.cli.app import app
from dumpsim.codecs.dumpdata import decode, header
from dumpsim.core.events import GraphEvent, NodeOutputs, TaskEvent
from dumpsim.dump.watch import WatchTrigger
from dumpsim.modes.request import Watch
from tests.dump.aclrun import run_acl
from tests.dump.machine import ref
from tests.dumpproto import messages


@pytest.fixture
def run(tmp_path):
    def run(entries, *, faults=(), length=6, runs=1):
        config = {"dump_scene": "watcher", "dump_list": entries}
        return run_acl(tmp_path, config, faults=faults, length=length, runs=runs)

    return run


def names(root):
    """Raw names of the operators that have files, from their headers, in the order of time."""
    found = []
    for path in sorted(root.rglob("*.*.*.*.*"), key=lambda path: path.name.rsplit(".", 1)[1]):
        raw = path.read_bytes()
        head = messages()["DumpData"].FromString(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
        assert not head.input
        assert len(raw) == 8 + int.from_bytes(raw[:8], "little") + sum(out.size for out in head.output)
        found.append((path.name.split(".")[0], head.op_name, tuple(map(int, path.name.split(".")[2:4]))))
    return found


def test_what_is_read_after_which_operator(run):
    found = names(run([{"layer": ["op_1", "op_3"], "watcher_nodes": ["keep", "short"]}]))
    assert [name for _, name, _ in found] == [
        "keep", "short", "op_1_To_keep", "op_1_To_short", "op_3_To_keep", "op_3_To_short",
    ]  # fmt: skip
    types = {name: op_type for op_type, name, _ in found}
    assert types["op_1_To_keep"] == "Tanh"  # that of the watched operator
    assert types["op_1_To_short"] == "Sin"
    ids = {name: number for _, name, number in found}
    assert ids["op_1_To_keep"] == ids["op_1_To_short"] != ids["keep"]  # those of the operator that has run


def test_the_first_attribute_is_an_empty_object_of_json(run):
    """The real msaccucmp reads it as a description of FFTS+ threads, and fails on any other text. [observed 26.2.0]"""
    paths = list(run([{"layer": ["op_1"], "watcher_nodes": ["keep"]}]).rglob("*_To_*"))
    assert paths
    for path in paths:
        raw = path.read_bytes()
        head = messages()["DumpData"].FromString(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
        assert json.loads(head.attr[0].value) == {}


def test_without_a_layer_every_operator_is_one(run):
    found = Counter(name.partition("_To_")[2] for _, name, _ in names(run([{"watcher_nodes": ["keep"]}])))
    assert found == {"": 1, "keep": 8}  # 9 operators, without the watched one


def test_a_name_in_both_lists_has_its_own_file_only(run):
    found = [name for _, name, _ in names(run([{"layer": ["keep", "op_1"], "watcher_nodes": ["keep", "op_1"]}]))]
    assert found == ["keep", "op_1"]


def test_unknown_and_fused_names_are_told(run, capsys):
    found = names(run([{"layer": ["opp_1"], "watcher_nodes": ["kep"]}]))
    assert found == []
    told = capsys.readouterr().err
    assert "no loaded model has an operator 'kep' (did you mean 'keep'?)" in told
    assert "'opp_1' (did you mean 'op_1'?)" in told


def test_entries_of_the_list_add_up(run):
    entries = [{"layer": ["op_1"], "watcher_nodes": ["keep"]}, {"layer": ["op_2"], "watcher_nodes": ["keep", "short"]}]
    found = [name for _, name, _ in names(run(entries))]
    assert sorted(found) == ["keep", "op_1_To_keep", "op_2_To_keep", "op_2_To_short", "short"]


@pytest.mark.parametrize("offset", [0, 100])
def test_an_injected_overwrite_is_found_in_a_long_graph(run, offset):
    fault = {"kind": "stomp", "after": "op_123", "target": "keep", "offset": offset, "nbytes": 24}
    root = run([{"watcher_nodes": ["keep"]}], faults=[fault], length=200)
    (change,) = watchdiff(root).changes
    assert (change.after, change.before) == ("op_123", "op_122")
    assert (change.first, change.last, change.changed, change.nbytes) == (offset, offset + 23, 24, 256)
    assert (change.alive, change.owners, change.verdict) == (True, (), "trampled")
    shown = CliRunner().invoke(app, ["watchdiff", str(root)])
    assert shown.exit_code == 1
    assert "keep output 0: changed after op_123 (unchanged after op_122)" in shown.output
    assert f"bytes {offset} to {offset + 23} of 256" in shown.output
    assert "TRAMPLED" in shown.output


def test_a_sound_run_shows_no_change(run):
    found = watchdiff(run([{"watcher_nodes": ["keep"]}], length=20))
    assert (found.changes, found.watched, found.reads, found.trampled) == ((), 1, 22, False)


def test_legal_reuse_is_told_from_trampling(run):
    root = run([{"watcher_nodes": ["short", "keep"]}], length=200, runs=2)
    found = watchdiff(root)
    assert {change.node for change in found.changes} == {"short"}
    assert len(found.changes) == 2  # one an iteration
    for change in found.changes:
        assert (change.alive, change.verdict) == (False, "reused")
        assert change.owners
        assert change.owners[0].startswith("op_")
    shown = CliRunner().invoke(app, ["watchdiff", str(root)])
    assert shown.exit_code == 0
    assert "legal reuse" in shown.output
    lines = CliRunner().invoke(app, ["watchdiff", str(root), "--json"]).output.splitlines()
    assert [json.loads(line)["verdict"] for line in lines] == ["reused", "reused"]


def test_a_dump_of_a_real_device_does_not_say_whether_it_was_legal(run, tmp_path):
    root = run([{"layer": ["op_3"], "watcher_nodes": ["short"]}])
    for path in root.rglob("*_To_*"):
        raw = path.read_bytes()
        size = int.from_bytes(raw[:8], "little")
        data = decode(raw[8 : 8 + size])
        path.write_bytes(
            header(type(data)(**{**{f: getattr(data, f) for f in data.__slots__}, "attrs": ()})) + raw[8 + size :]
        )
    (change,) = watchdiff(root).changes
    assert (change.alive, change.verdict) == (None, "unknown")


def test_a_tree_without_watch_files_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    result = CliRunner().invoke(app, ["watchdiff", str(tmp_path / "empty")])
    assert result.exit_code != 0
    assert CliRunner().invoke(app, ["watchdiff", str(tmp_path / "missing")]).exit_code != 0


def event(name, op_type="Add"):
    return TaskEvent(op_type=op_type, full_name=name, graph_id=0, root_graph_id=0, operands=(), outputs=())


def test_nothing_is_read_after_collectives_and_data():
    watch = WatchTrigger(None, [Watch(layers=None, nodes=("c",))])
    assert [watch.concerns(event("a", kind)) for kind in ("Add", "HcomAllReduce", "Data")] == [True, False, False]
    named = WatchTrigger(None, [Watch(layers=("a",), nodes=("c",))])
    assert [named.concerns(event(name)) for name in ("a", "b", "c")] == [True, False, True]
    assert not named.concerns(event("a", "HcomAllReduce"))


def test_graphs_of_open_shapes_are_skipped_with_a_warning():
    watch = WatchTrigger(None, [Watch(layers=None, nodes=("c",))])
    model = GraphEvent(doc=None, graph_id=0, root_graph_id=0, is_root=True, execution_order=("c",),
                       model_name="graph_1", model_id=1, static=False)  # fmt: skip
    assert watch.loaded(model) == ("watch mode has no effect on graph_1: its shapes are known only at run time",)


def test_a_fused_operator_is_watched_by_its_own_name():
    watch = WatchTrigger(None, [Watch(layers=None, nodes=("a",))])
    watch.loaded(
        GraphEvent(
            doc=None,
            graph_id=0,
            root_graph_id=0,
            is_root=True,
            execution_order=("ab",),
            model_name="graph_1",
            model_id=1,
            originals={"ab": ("a", "b")},
        )
    )
    assert list(watch.unused()) == ["'a' was fused into 'ab': use that name"]


class Recorded:
    """What a watch asks to be dumped."""

    def __init__(self):
        self.calls = []

    def watched(self, event, moment, name, attrs):
        places = [ref.address for ref in event.outputs]
        self.calls.append((event.op_type, event.operands, places, moment, name, dict(attrs)))


def at(address, nbytes=8, written=False):
    return replace(ref(np.zeros(nbytes, np.uint8)), address=address, written=written)


def test_what_is_said_of_a_read():
    """Whether the operator is meant to write there: in place, or by an output; bytes beside each other are apart."""
    capture = Recorded()
    watch = WatchTrigger(capture, [Watch(layers=("a",), nodes=("c", "none")), Watch(layers=None, nodes=("c", "b"))])
    outputs = (at(0), at(8), at(16), at(24), at(32, 16), at(64))
    found = NodeOutputs(
        op_type="Mul", full_name="c", outputs=outputs, ran=False, alive=(True, True, True, True, True, False),
        owners=((), ("x:0", "y:1"), (), (), (), ()),
    )  # fmt: skip
    one = TaskEvent(
        op_type="Add", full_name="a", graph_id=0, root_graph_id=0,
        operands=(at(8, written=True), at(16), at(64, written=True)),
        outputs=(at(32, 1), at(40, 8)), outputs_of={"c": found, "none": None, "b": None}.get, original_names=("o",),
    )  # fmt: skip
    watch.before(one, "now")
    watch.after(replace(one, error="EZ9999"), "now")
    watch.after(replace(one, outputs_of=None), "now")
    assert capture.calls == []
    watch.after(one, "now")
    ((op_type, operands, places, moment, name, attrs),) = capture.calls
    assert (op_type, operands, places, moment, name) == ("Mul", (), [0, 8, 16, 24, 32, 64], "now", "a_To_c")
    assert attrs == {
        "dumpsim": "{}", "dumpsim.ran": "0", "dumpsim.alive": "1,1,1,1,1,0", "dumpsim.owners": ";x:0,y:1;;;;",
        "dumpsim.written": "0,1,0,0,1,0",
    }  # fmt: skip


def test_a_watched_operator_is_read_after_itself():
    capture = Recorded()
    watch = WatchTrigger(capture, [Watch(layers=("a",), nodes=("c", "d"))])
    watch.after(replace(event("c"), outputs=(at(8),), outputs_of={}.get), "now")
    assert capture.calls == [("Add", (), [8], "now", "c", {})]
    watch.after(replace(event("b"), outputs_of={}.get), "now")
    assert len(capture.calls) == 1
