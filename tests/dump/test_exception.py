"""The exception dump of CANN: which one, where, and what its files hold (decoded with google.protobuf)."""

import os
import re
import stat

import numpy as np
import pytest

from dumpsim.core.clock import VirtualClock
from dumpsim.core.errors import UnsupportedError
from dumpsim.dump.exception import ExceptionDump
from dumpsim.dump.scene import LITE, LITE_OFF, Scene, choose, configured
from tests.dump.machine import ref, task
from tests.dumpproto import messages

X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.arange(4, dtype=np.float16)


def chosen(log=None, **given):
    words = {"exception_dump": "", "scene": LITE, "path": None, **{k: given.pop(k) for k in list(given) if k.islower()}}
    return choose(given, log=log or (lambda *_: None), **words)


def test_the_lite_dump_is_the_default():
    assert chosen() == Scene(kind="lite", root=".")
    assert chosen(exception_dump="2") == Scene(kind="lite", root=".")
    assert chosen(exception_dump="0") is None
    assert chosen(scene=LITE_OFF) is None


def test_priorities(tmp_path):
    dump, work, collect, config = (str(tmp_path / name) for name in ("dump", "work", "collect", "config"))
    paths = {"ASCEND_DUMP_PATH": dump, "ASCEND_WORK_PATH": work}
    assert chosen(**paths).root == dump
    assert chosen(ASCEND_WORK_PATH=work, path=config).root == work
    assert chosen(path=config) == Scene(kind="lite", root=config)
    assert chosen(NPU_COLLECT_PATH=collect, **paths) == Scene(kind="full", root=collect)
    assert chosen(NPU_COLLECT_PATH=collect, ASCEND_DUMP_SCENE="aic_err_brief_dump", **paths) == Scene(
        kind="lite", root=dump
    )
    assert chosen(ASCEND_DUMP_SCENE="aic_err_norm_dump") == Scene(kind="full", root=".")
    assert chosen(exception_dump="1", NPU_COLLECT_PATH=collect) == Scene(kind="full", root=collect)
    assert chosen(exception_dump="1", **paths) == Scene(kind="full", root=dump)
    assert os.path.isdir(dump)  # made where it is missing


@pytest.mark.parametrize(
    ("given", "kind", "place"),
    [
        ({}, "lite", "."), ({"exception_dump": "0"}, None, None), ({"exception_dump": "1"}, "full", "."),
        ({"exception_dump": "1", "path": "P"}, "full", "P"),
        ({"exception_dump": "1", "path": "P", "NPU_COLLECT_PATH": "C"}, "full", "C"),
        ({"exception_dump": "1", "ASCEND_DUMP_SCENE": "aic_err_brief_dump"}, "full", "."),
        ({"exception_dump": "0", "path": "P"}, "lite", "P"),
        ({"scene": LITE_OFF, "path": "P"}, None, None), ({"scene": ""}, None, None),
        ({"scene": LITE_OFF, "ASCEND_DUMP_SCENE": LITE, "path": "P"}, "lite", "."),
        ({"exception_dump": "0", "ASCEND_DUMP_SCENE": "aic_err_norm_dump", "ASCEND_WORK_PATH": "W"}, "full", "W"),
        ({"exception_dump": "0", "NPU_COLLECT_PATH": "C", "ASCEND_DUMP_PATH": "D"}, "full", "C"),
        ({"ASCEND_DUMP_SCENE": "odd", "NPU_COLLECT_PATH": "C"}, "full", "C"),
    ],
)  # fmt: skip
def test_script_environment_and_config_choose_the_scene(tmp_path, given, kind, place):
    """[spec ge 2.4, 2.9]"""
    paths = [name for name in given if name == "path" or name.endswith("PATH")]
    places = {name: str(tmp_path / given[name]) for name in paths}
    found = chosen(**given | places)
    wanted = None if kind is None else Scene(kind=kind, root=place if place == "." else str(tmp_path / place))
    assert found == wanted


def test_a_directory_without_permission_is_told_and_the_next_one_is_used(tmp_path, monkeypatch):
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    said = []
    monkeypatch.setattr(os, "access", lambda path, mode: path != first and mode == os.W_OK | os.X_OK)
    for path, root in ((f"{second}//", second), ("/", "/"), (None, ".")):
        found = chosen(log=lambda *words: said.append(words), ASCEND_DUMP_PATH=first, path=path)
        assert found == Scene(kind="lite", root=root)
    assert said == [("WARNING", "", f"exception dump: {first} cannot be written")] * 3


@pytest.mark.parametrize(
    ("scene", "kind"), [(LITE, "lite"), ("aic_err_brief_dump", "lite"), ("aic_err_norm_dump", "full")]
)
def test_the_scene_of_an_acl_config(tmp_path, scene, kind):
    """[spec ge 2.4]"""
    dump, work, config = (str(tmp_path / name) for name in ("dump", "work", "config"))
    environment = {"ASCEND_DUMP_PATH": dump, "ASCEND_WORK_PATH": work}
    for root in (dump, work, config):
        assert configured(environment, scene=scene, path=config, log=print) == Scene(kind=kind, root=root)
        environment.pop(next(iter(environment), ""), None)
    assert configured({}, scene=scene, path=None, log=print).root == "."


def test_what_cannot_be_used_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    said = []
    found = chosen(
        log=lambda level, function, text: said.append((level, text)),
        ASCEND_DUMP_PATH=str(tmp_path / "file/below"),
        ASCEND_WORK_PATH=str(tmp_path / "work"),
        ASCEND_DUMP_SCENE="watch",
    )
    assert found == Scene(kind="lite", root=str(tmp_path / "work"))
    assert ["ASCEND_DUMP_SCENE" in said[0][1], "cannot be created" in said[1][1]] == [True, True]
    assert {level for level, _ in said} == {"WARNING"}
    with pytest.raises(UnsupportedError, match="core file"):
        chosen(ASCEND_DUMP_SCENE="aic_err_detail_dump")


def dumped(tmp_path, kind, **fields):
    """The file of a kernel that fails, and of its neighbours none."""
    said = []
    tap = ExceptionDump(
        Scene(kind=kind, root=str(tmp_path)), device_id=3, clock=VirtualClock(),
        log=lambda level, function, text: said.append(text),
    )  # fmt: skip
    operands = [ref(X, 0), ref(np.array(True), 1, origin="none"), ref(Y, 2)]
    event = task("Default/fc/MatMul-op0", operands, [ref(Y, 0)], task_id=7, stream_id=2)
    failed = task(
        "Default/fc/MatMul-op0", operands, [ref(Y, 0)], task_id=7, stream_id=2, error="EZ9999", error_code=507015,
        workspaces=(ref(np.zeros(8, np.uint8)),), **fields,
    )  # fmt: skip
    for one in (event, failed):
        assert tap.wants(one)
        tap.before_task(one)
        tap.after_task(one)
    directory = tmp_path / "extra-info/data-dump/3"
    (path,) = directory.iterdir()
    assert tap.written == [str(path)]
    assert any(str(path) in text for text in said)
    assert stat.S_IMODE(path.stat().st_mode) == 0o400
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    return path.name, messages()["DumpData"].FromString(raw[8 : 8 + size]), raw[8 + size :], failed


def test_the_full_dump(tmp_path):
    name, head, payload, _ = dumped(tmp_path, "full")
    assert re.fullmatch(r"MatMul\.Default_fc_MatMul-op0\.7\.20231114221320\d{3}", name)
    assert head.op_name == "Default/fc/MatMul-op0"
    assert [(entry.data_type, list(entry.shape.dim)) for entry in head.input] == [(1, [2, 3]), (2, [4])]
    assert [entry.size for entry in (*head.input, *head.output)] == [24, 8, 8]
    assert [(space.type, space.size) for space in head.space] == [(0, 8)]
    assert payload == X.tobytes() + Y.tobytes() * 2 + bytes(8)


def test_the_lite_dump(tmp_path):
    name, head, payload, event = dumped(tmp_path, "lite")
    assert re.fullmatch(r"exception_info\.2\.7\.20231114221320\d{3}", name)
    assert head.op_name == ""
    tensors = [*head.input, *head.output]
    assert {(entry.data_type, entry.format) for entry in tensors} == {(0, 0)}  # DT_UNDEFINED, FORMAT_NCHW
    assert all(not entry.shape.dim for entry in tensors)
    assert [entry.arg_index for entry in tensors] == [0, 1, 2]
    assert [entry.address for entry in tensors] == [event.operands[0].address, event.operands[2].address,
                                                    event.outputs[0].address]  # fmt: skip
    assert "507015" in head.dfx_message
    assert "kernel_name=Default/fc/MatMul-op0" in head.dfx_message
    assert payload == X.tobytes() + Y.tobytes() * 2 + bytes(8)
    assert [(space.type, space.size) for space in head.space] == [(0, 8)]


class Full:
    def charge(self, nbytes):
        raise OSError(28, "No space left on device")


def test_a_full_disk_does_not_hide_the_error_of_the_device(tmp_path):
    said = []
    tap = ExceptionDump(
        Scene(kind="lite", root=str(tmp_path)), device_id=0, clock=VirtualClock(), disk=Full(),
        log=lambda level, function, text: said.append((level, text)),
    )  # fmt: skip
    tap.after_task(task(operands=[ref(X)], error="EZ9999"))
    assert tap.written == []
    assert said[0][0] == "ERROR"
    assert "the disk is full" in said[0][1]
