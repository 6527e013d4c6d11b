"""What reads the tree of an ACL dump: open, convert, msaccucmp, replay, google.protobuf; over-long and odd names."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import dumpsim
from dumpsim.cli.app import app
from dumpsim.core.abstract import TensorType
from dumpsim.core.clock import VirtualClock
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import DeviceError
from dumpsim.core.options import CompileOptions
from dumpsim.core.settings import RunSettings
from dumpsim.dump.service import DumpService, SessionInfo
from dumpsim.graph.graph import Graph, Node, Parameter
from dumpsim.graph.pipeline import compile_graph
from dumpsim.modes.aclfile import acl_profile, load_acl
from dumpsim.ops.table import find
from dumpsim.runtime.session import Session
from tests.dump.aclrun import VALUES, run_acl
from tests.dumpproto import messages

SINH = "net/Sin.1 a\\b"
LONG = "very_long_name_" * 20


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    place = tmp_path_factory.mktemp("acl")
    return run_acl(place, {"dump_mode": "all", "dump_list": [{}]}, runs=2)


def test_open_and_replay(root):
    found = {(e.op_name, e.io, e.slot, e.iteration): e.array() for e in dumpsim.open(root)}
    for step in (0, 1):
        np.testing.assert_allclose(found["keep", "output", 0, step], np.tanh(VALUES), rtol=1e-6)
        assert found["last", "input", 1, step].tobytes() == found["keep", "output", 0, step].tobytes()
    result = CliRunner().invoke(app, ["replay", str(root)])
    assert result.exit_code == 0, result.output
    assert "18 ok" in result.output


def test_convert_and_msaccucmp(root, tmp_path):
    result = CliRunner().invoke(app, ["convert", str(root), "--out", str(tmp_path / "ours"), "--json"])
    assert result.exit_code == 0, result.output
    first = sorted(path for path in root.rglob("0") if path.parent.name == "1")[0]
    result = CliRunner().invoke(app, ["msaccucmp", "convert", "-d", str(first), "-out", str(tmp_path / "theirs")])
    assert result.exit_code == 0, result.output
    (path,) = (tmp_path / "theirs").glob("Tanh.keep.*.output.0.npy")
    np.testing.assert_allclose(np.load(path), np.tanh(VALUES), rtol=1e-6)
    assert len(list((tmp_path / "theirs").iterdir())) == 1 + 2 * 8 + 3  # Data, eight operators of one operand, Add


# settings of a dump, faults of the device, and how many bin files there are
KINDS = {
    "model": ({"dump_mode": "all", "dump_list": [{}]}, (), 10),
    "single operators": ({"dump_op_switch": "on", "dump_list": [], "dump_mode": "all"}, (), 11),
    "overflow": ({"dump_debug": "on"}, ({"kind": "overflow", "op": "op_3", "value": "inf"},), 2),
    "brief": ({"dump_scene": "lite_exception"}, ({"kind": "aicore_error", "op": "op_3"},), 1),
    "exception": ({"dump_scene": "aic_err_norm_dump"}, ({"kind": "aicore_error", "op": "op_3"},), 1),
    "watch": ({"dump_scene": "watcher", "dump_list": [{"watcher_nodes": ["keep"]}]}, (), 9),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_file_is_decoded_by_google(tmp_path, monkeypatch, kind):
    """The header gives the same bytes when google.protobuf writes it again, and the rest of the file is its data."""
    for name in ("ASCEND_DUMP_PATH", "ASCEND_WORK_PATH", "NPU_COLLECT_PATH"):
        monkeypatch.delenv(name, raising=False)
    config, faults, count = KINDS[kind]
    try:
        root = run_acl(tmp_path, config, faults=faults, single=kind == "single operators")
    except DeviceError:
        root = tmp_path / "out"
    files = [path for path in root.rglob("*") if path.is_file()]
    assert len(files) == count
    for path in files:
        raw = path.read_bytes()
        size = int.from_bytes(raw[:8], "little")
        head = messages()["DumpData"].FromString(raw[8 : 8 + size])
        assert head.SerializeToString(deterministic=True) == raw[8 : 8 + size]
        parts = (*head.input, *head.output, *head.buffer, *head.space)
        assert parts
        assert len(raw) == 8 + size + sum(part.size for part in parts)
        assert head.version == "2.0"
        if kind not in ("brief", "exception"):
            assert head.dump_time == int(path.name.rsplit(".", 1)[1])


def test_odd_and_over_long_names(tmp_path):
    kind = TensorType(dtype=dtype("float32"), shape=(8, 8))
    graph = Graph(name="a.b/c d")
    graph.parameters.append(Parameter(name="x", abstract=kind))
    odd = Node(op_type="Sin", operands=[graph.parameters[0]], abstract=kind, full_name=SINH)
    graph.output = Node(op_type="Cos", operands=[odd], abstract=kind, full_name=LONG)
    graph.trail += [odd, graph.output]
    session = Session(RunSettings(quiet=True, manifest=None), environment={})
    config = {"dump": {"dump_path": str(tmp_path), "dump_list": [{"layer": [SINH, LONG]}]}}
    dump, _ = load_acl(json.dumps(config).encode())
    info = SessionInfo(target="Ascend", clock=VirtualClock(), settings=RunSettings(manifest=None))
    service = DumpService(info, acl_profile(), dump.request)
    session.add_tap(service)
    program = compile_graph(graph, session.ids, find, CompileOptions(pipeline="ge"))
    session.compile(program, CompileOptions(pipeline="ge"))
    session.execute(program, [VALUES])
    service.finish()
    (path,) = tmp_path.rglob("Sin.*")
    assert path.name.split(".")[1] == "net_Sin_1_a_b"
    raw = path.read_bytes()
    head = messages()["DumpData"].FromString(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert head.op_name == SINH  # the header has the name as it is
    (mapping,) = tmp_path.rglob("mapping.csv")
    number, _, name = mapping.read_text().strip().partition(",")
    assert name.startswith(f"Cos.{LONG}.")
    assert (mapping.parent / number).is_file()
    assert {entry.op_type for entry in dumpsim.open(tmp_path)} == {"Data", "Sin", "Cos"}  # with what Sin reads
