"""ls, show and stat on bin files, in this process."""

import json
import struct

import numpy as np
import pytest
from dumpproto import dump_file, messages

from dumpsim.cli import main

STAMP = 1700000000000000


def command(monkeypatch, capsys, *arguments):
    """Exit code and output."""
    monkeypatch.setattr("sys.argv", ["dumpsim", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code or 0, capsys.readouterr()


@pytest.fixture
def tree(tmp_path):
    """One step of O2: a convolution's input in blocks, a type without values, an overflow."""
    place = tmp_path / "4/20231114221320/0/kernel_graph0/1/4"
    place.mkdir(parents=True)
    x = np.arange(2 * 16 * 3, dtype=np.float16).reshape(2, 16, 1, 3)
    x[0, 3] = np.nan
    message = messages()["DumpData"](version="2.0", dump_time=STAMP, op_name="Default/Conv2D-op1")
    item = message.input.add(data_type=2, format=3, size=x.nbytes, address=1)
    item.shape.dim.extend([2, 1, 1, 3, 16])
    item.original_shape.dim.extend([2, 16, 1, 3])
    message.output.add(data_type=13, format=2, size=4, address=1).shape.dim.append(4)
    blocks = np.ascontiguousarray(x.reshape(2, 1, 16, 1, 3).transpose(0, 1, 3, 4, 2)).tobytes()
    (place / f"Conv2D.Default_Conv2D-op1.3.2.{STAMP}").write_bytes(dump_file(message, blocks, b"text"))
    facts = bytearray(2048)
    facts[256:304] = struct.pack("<6Q", 1, 2, 3, 0, 0, 0)
    facts[1040:1048] = struct.pack("<Q", 0x20)
    message = messages()["DumpData"](version="2.0", dump_time=STAMP, op_name="Node_OpDebug")
    message.output.add(data_type=4, format=2, size=2048, address=1).shape.dim.append(2048)
    (place / f"Opdebug.Node_OpDebug.9.2.{STAMP + 1}").write_bytes(dump_file(message, bytes(facts)))
    return tmp_path


def rows(result):
    code, (out, _) = result
    assert code == 0
    return [json.loads(line) for line in out.splitlines()]


def test_ls(tree, monkeypatch, capsys):
    found = rows(command(monkeypatch, capsys, "ls", tree, "--json"))
    assert [(row["step"], row["op_type"], row["io"], row["dtype"], row["shape"], row["format"]) for row in found] == [
        (4, "Conv2D", "input", "float16", [2, 16, 1, 3], "NC1HWC0"),
        (4, "Conv2D", "output", "string", [4], "ND"),
        (4, "Opdebug", "output", "uint8", [2048], "ND"),
    ]
    code, (out, _) = command(monkeypatch, capsys, "ls", tree, "--paths", "--type", "conv2d")
    assert (code, out.count("\n")) == (0, 1)
    assert rows(command(monkeypatch, capsys, "ls", tree, "--json", "--step", "4")) == found
    assert command(monkeypatch, capsys, "ls", tree, "--step", "5")[0] == 1


def test_ls_tells_of_overflows(tree, monkeypatch, capsys):
    (row,) = rows(command(monkeypatch, capsys, "ls", tree, "--overflow", "--json"))
    assert (row["unit"], row["task_id"], row["stream_id"], row["status"]) == ("AI Core", 3, 2, 32)
    assert (row["meaning"], row["operators"]) == ("floating-point overflow", ["Conv2D Default_Conv2D-op1"])


def test_stat_measures_the_hosts_values(tree, monkeypatch, capsys):
    conv, text, _ = rows(command(monkeypatch, capsys, "stat", tree, "--json", "--columns", "nan,count,max"))
    assert (conv["nan"], conv["count"]) == (3, 96)
    assert (text["nan"], text["count"], text["max"]) == (None, None, None)
    assert command(monkeypatch, capsys, "stat", tree, "--bad")[0] == 1


def test_show(tree, monkeypatch, capsys):
    conv, text, overflow = rows(command(monkeypatch, capsys, "show", tree, "--json", "--values", "2"))
    assert (conv["shape"], conv["device_shape"], conv["values"]) == ([2, 16, 1, 3], [2, 1, 1, 3, 16], [0.0, 1.0])
    assert "values" not in text
    assert overflow["overflow"]["AI Core"]["status"] == 32
    code, (out, _) = command(monkeypatch, capsys, "show", tree)
    assert code == 0
    assert "(2, 1, 1, 3, 16) on the device" in out
    assert "AI Core: model_id 1, stream_id 2, task_id 3" in out


def test_a_damaged_file_is_named_with_the_offset(tree, monkeypatch, capsys):
    path = next(tree.rglob("Conv2D*"))
    path.write_bytes(path.read_bytes()[:-1])
    code, (_, text) = command(monkeypatch, capsys, "ls", tree)
    assert code == 3
    assert f"{path}: byte " in text
