"""The config that MindSpore passes to ACL, byte for byte. [spec mindspore 5.7]"""

import os
import stat

import pytest

from dumpsim.archive.modeltree import ModelTree
from dumpsim.archive.sink import Sink
from dumpsim.core.match import KernelRules
from dumpsim.dump.acljson import AclJson
from dumpsim.modes.request import DumpRequest, Selection

SOME = Selection(rules=KernelRules.parse(["Add"]))


@pytest.mark.parametrize(
    ("changes", "layers", "text"),
    [
        ({}, ["a"], '{"dump":{"dump_list":[],"dump_mode":"all","dump_op_switch":"on","dump_path":"PATH/7"}}'),
        (
            {"outputs": False}, [],
            '{"dump":{"dump_list":[],"dump_mode":"input","dump_op_switch":"on","dump_path":"PATH/7"}}',
        ),
        (
            {"inputs": False, "selection": SOME}, ["a", "b"],
            '{"dump":{"dump_list":[{"layer":["a","b"]}],"dump_mode":"output","dump_op_switch":"on",'
            '"dump_path":"PATH/7"}}',
        ),
        (
            {"selection": Selection(marked=True)}, [],
            '{"dump":{"dump_list":[{"layer":["NoSetDumpTarget"]}],"dump_mode":"all","dump_op_switch":"on",'
            '"dump_path":"PATH/7"}}',
        ),
        ({"trigger": "overflow"}, ["a"], '{"dump":{"dump_debug":"on","dump_path":"PATH/7"}}'),
        ({"trigger": "failure"}, ["a"], '{"dump":{"dump_scene":"lite_exception"}}'),
    ],
)  # fmt: skip
def test_the_file_of_a_step(tmp_path, changes, layers, text):
    sink, path = Sink(), f"{tmp_path}/dump"
    request = DumpRequest(path=path, **changes)
    writer = AclJson(ModelTree(path=path, device_id=3, step_level=True), request, sink)
    writer.begin()
    file = tmp_path / "dump/acl_dump_3.json"
    mode = {(True, True): "all", (True, False): "input", (False, True): "output"}[request.inputs, request.outputs]
    assert file.read_text() == (
        f'{{"dump":{{"dump_list":[],"dump_mode":"{mode}","dump_op_switch":"on","dump_path":"{path}",'
        '"dump_step":"2147483647"}}'
    )
    writer.step(7, layers)
    assert file.read_text() == text.replace("PATH", path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o400
    steps = [] if request.trigger == "failure" else ["7"]
    assert sorted(os.listdir(path)) == [*steps, "acl_dump_3.json"]
    assert sink.written == {path: (1, len(file.read_bytes()))}
