"""Trees of O2, GE, single operators, exceptions, TorchAir and tensordump; overflows, short names, hostile trees."""

import os
import struct

import numpy as np
import pytest
from dumpproto import dump_file, messages

import dumpsim
from dumpsim.codecs.mapping import string_hash
from dumpsim.core.errors import UnreadableError

STAMP = 1700000000000000
HEADER = (
    "Input/Output,Index,Data Size,Data Type,Format,Shape,Max Value,Min Value,Avg Value,Count,Nan Count,"
    "Negative Inf Count,Positive Inf Count\n"
)


def operator(directory, name, *, op_name="Default/Add-op1", value=1.0):
    """A file with two inputs and an output, written by google.protobuf."""
    message = messages()["DumpData"](version="2.0", dump_time=STAMP, op_name=op_name)
    payload = []
    for number, entries in enumerate((message.input, message.input, message.output)):
        array = np.float32([value + number, -1])
        entries.add(data_type=1, format=2, size=8, address=0x1000).shape.dim.append(2)
        payload.append(array.tobytes())
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(dump_file(message, *payload))


def opdebug(directory, name, task, stream, status, raw=None):
    """An overflow in the AI Core, in the old layout. [spec ge 3.8]"""
    facts = bytearray(2048)
    facts[256:304] = struct.pack("<6Q", 1, stream, task, 0, 0x1000, 0x2000)
    facts[1024:1048] = struct.pack("<3Q", 0xAB, 0, status)
    message = messages()["DumpData"](version="2.0", dump_time=STAMP, op_name="Node_OpDebug")
    message.output.add(data_type=4, format=2, size=2048).shape.dim.append(2048)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(dump_file(message, bytes(facts) if raw is None else raw))


def test_an_o2_tree(tmp_path):
    for step, iteration, value in ((2, 5, 1.0), (10, 6, 2.0)):
        place = tmp_path / f"{step}/20231114221320/0/kernel_graph0/1/{iteration}"
        operator(place, f"Add.Default_Add-op1.3.2.{STAMP + step}", value=value)
        operator(place, f"Mul.Default_Mul-op2.4.2.{STAMP + step + 1}", op_name="Default/Mul-op2")
    (tmp_path / "acl_dump_0.json").write_text("{}")
    dump = dumpsim.open(tmp_path)
    assert len(dump) == 12
    assert [(e.place.step, e.iteration, e.op_type, e.io, e.slot) for e in dump][:6] == [
        (2, 5, "Add", "input", 0), (2, 5, "Add", "input", 1), (2, 5, "Add", "output", 0),
        (2, 5, "Mul", "input", 0), (2, 5, "Mul", "input", 1), (2, 5, "Mul", "output", 0),
    ]  # fmt: skip
    first = next(iter(dump))
    assert (first.op_name, first.rank, first.place.net, first.graph_id) == ("Default/Add-op1", 0, "kernel_graph0", 1)
    assert (first.name.task_id, first.name.stream_id, first.timestamp) == (3, 2, STAMP + 2)
    assert [e.statistic("max") for e in dump.filter(step=10, op="default/add*", io="output")] == [4.0]
    assert len(dump.filter(iteration=5)) == 6
    inside = dumpsim.open(first.path.parent)
    assert {(e.place.step, e.iteration, e.place.time) for e in inside} == {(2, 5, "20231114221320")}
    single = dumpsim.open(first.path)
    assert [(e.io, e.place.step, e.array().tolist()) for e in single] == [
        ("input", 2, [1, -1]), ("input", 2, [2, -1]), ("output", 2, [3, -1])
    ]  # fmt: skip


def test_an_o2_tree_of_npy_files(tmp_path):
    place = tmp_path / "1/20231114221320/3/kernel_graph0/1/0"
    place.mkdir(parents=True)
    for kind, op in (("Float16", "Default_Add-op1"), ("float16", "Default_Mul-op2")):  # o2_dtype=lower is legal
        np.save(place / f"Op.{op}.3.2.{STAMP}.output.0.NC1HWC0.{kind}.npy", np.float16([1, 2]))
    long = f"Op.{'x' * 260}.3.2.{STAMP + 1}.output.0.ND.Float32.npy"
    np.save(place / "77.npy", np.float32([5]))
    (place / "mapping.csv").write_text(f"77.npy,{long}\n")
    text = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value\n"
    for op, value in (("Default/Mul-op2", 7), ("Default/Add-op1", 6)):  # two operators of one type at one time
        text += f'Op,{op},3,2,{STAMP},output,0,4,float16,"(2,)",{value}\n'
    (place / "statistic.csv").write_text(text)
    found = {e.op_name: e for e in dumpsim.open(tmp_path)}
    assert {name[:15]: (e.dtype, e.format, e.statistic("max")) for name, e in found.items()} == {
        "Default_Add-op1": ("float16", "NC1HWC0", 6.0),
        "Default_Mul-op2": ("float16", "NC1HWC0", 7.0),
        "x" * 15: ("float32", "ND", 5.0),
    }
    assert {e.rank for e in found.values()} == {3}


@pytest.mark.parametrize(
    ("directory", "expected"),
    [
        ("20231114221320/2/graph_1/7/3", {"rank": 2, "net": "graph_1", "graph": 7, "iteration": 3, "step": None}),
        ("20231114221320/2", {"rank": 2, "net": "", "graph": None, "iteration": None, "step": None}),
        ("worldsize4_global_rank3/2024112145738/0/graph_1/1/0",
         {"rank": 3, "net": "graph_1", "graph": 1, "iteration": 0, "step": None}),
        ("extra-info/data-dump/5", {"rank": 5, "net": "", "graph": None, "iteration": None, "step": None}),
    ],
)  # fmt: skip
def test_other_trees(directory, expected, tmp_path):
    operator(tmp_path / directory, f"Add.Default_Add-op1.3.2.{STAMP}")
    rows = list(dumpsim.open(tmp_path).rows(["min"]))
    assert len(rows) == 3
    assert {key: rows[0][key] for key in expected} == expected
    assert rows[2]["min"] == -1.0


def test_exception_files(tmp_path):
    place = tmp_path / "extra-info/data-dump/0"
    operator(place, "Add.Default_Add-op1.3.20231114221320123")
    message = messages()["DumpData"](version="2.0", dump_time=STAMP, dfx_message="what happened")
    message.input.add(size=4, address=1, arg_index=2, input_type=1)
    (place / "exception_info.2.3.20231114221320124").write_bytes(dump_file(message, b"abcd"))
    (place / "Add_host.o").write_bytes(b"\x7fELF")
    *_, info = dumpsim.open(tmp_path)
    assert [e.op_type for e in dumpsim.open(tmp_path)] == ["Add", "Add", "Add", "exception_info"]
    assert (info.name.stream_id, info.name.task_id, info.dtype, info.array().tolist()) == (
        2, 3, "undefined", [97, 98, 99, 100]
    )  # fmt: skip
    assert (info.part.item.arg_index, info.part.file.data.dfx_message) == (2, "what happened")
    assert {e.timestamp for e in dumpsim.open(tmp_path)} == {1700000000123000, 1700000000124000}


def test_statistics_of_ge_are_entries_without_a_tensor(tmp_path):
    place = tmp_path / "20231114221320/0/graph_1/1/0"
    place.mkdir(parents=True)
    text = HEADER + "Input,0,8,DT_FLOAT,ND,2x1,2.5,1,1.75,2,0,0,0\nOutput,0,4,-,ND,-,,,,,,,\n"
    (place / f"Add.Default_Add-op1.3.2.{STAMP}.csv").write_text(text)
    first, second = dumpsim.open(tmp_path)
    assert (first.op_type, first.io, first.dtype, first.shape, first.statistic("avg")) == (
        "Add", "input", "float32", (2, 1), 1.75
    )  # fmt: skip
    assert (second.io, second.dtype, second.path, second.statistic("max")) == ("output", "", None, None)


def test_short_names_of_bin_files(tmp_path):
    long = f"Add.{'x' * 250}.3.2.{STAMP}"
    short = str(string_hash(long.encode()))
    operator(tmp_path, short)
    with pytest.raises(UnreadableError, match="holds no dump"):
        dumpsim.open(tmp_path)
    (tmp_path / "mapping.csv").write_text(f"{short},{long}\n" * 3)
    assert {(e.op_type, e.name.task_id, e.op_name) for e in dumpsim.open(tmp_path)} == {("Add", 3, "Default/Add-op1")}
    assert {e.op_type for e in dumpsim.open(tmp_path / short)} == {"Add"}


def test_a_bin_file_of_any_name_is_known_by_its_content(tmp_path):
    operator(tmp_path, "renamed.bin")
    first, *_ = dumpsim.open(tmp_path / "renamed.bin")
    assert (first.op_name, first.timestamp, first.array().tolist()) == ("Default/Add-op1", STAMP, [1, -1])
    (tmp_path / "notes.txt").write_text("no dump at all")
    with pytest.raises(UnreadableError, match=r"notes.txt: is not a file of a dump; allowed: \*\.npy"):
        dumpsim.open(tmp_path / "notes.txt")


def test_what_a_script_dumped_by_itself(tmp_path):
    place = tmp_path / "rank3" / "step2"
    place.mkdir(parents=True)
    for number, name in ((10, "b_float32_10"), (2, "a_in_bfloat16_2")):
        np.save(place / f"{name}.npy", np.float32([number]))
    np.save(tmp_path / "1_relu.npy", np.float32([1]))
    found = [(e.rank, e.place.step, e.op_name, e.io, e.dtype, e.array().tolist()) for e in dumpsim.open(tmp_path)]
    assert found == [
        (0, None, "relu", "output", "float32", [1]),
        (3, 2, "a_in", "input", "bfloat16", [2]),
        (3, 2, "b", "output", "float32", [10]),
    ]


def test_overflows_in_both_forms(tmp_path):
    place = tmp_path / "1/20231114221320/0/kernel_graph0/1/0"
    opdebug(place, f"Opdebug.Node_OpDebug.9.8.{STAMP + 1}", 3, 2, 0x120)
    operator(place, f"Add.Default_Add-op1.3.2.{STAMP}")
    operator(place, f"Mul.Default_Mul-op2.4.2.{STAMP}")
    opdebug(place, f"Opdebug.Node_OpDebug.4.2.{STAMP + 2}", 77, 2, 0x8)
    dump = dumpsim.open(tmp_path)
    first, second = dump.overflows()
    (row,) = first.rows()
    assert (row["unit"], row["task_id"], row["stream_id"], row["status"]) == ("AI Core", 3, 2, 0x120)
    assert row["meaning"] == "floating-point overflow, float32 or int32 to float16 overflow"
    assert first.operators == (("Add", "Default_Add-op1"),)  # by the ids in the facts
    assert second.operators == (("Mul", "Default_Mul-op2"),)  # by those in the name
    (entry,) = dump.filter(where=lambda e: e.opdebug is not None and e.timestamp == STAMP + 1)
    assert entry.opdebug == first.facts
    assert [o.facts for o in dumpsim.open(entry.path).overflows()] == [first.facts]
    (place / f"Opdebug.Node_OpDebug.9.8.{STAMP + 1}").unlink()
    from dumpsim.codecs.opdebug import to_json

    (place / f"Opdebug.Node_OpDebug.9.8.{STAMP + 1}.output.0.json").write_text(to_json(first.facts, "mindspore"))
    assert [o.facts for o in dumpsim.open(tmp_path).overflows()] == [first.facts, second.facts]
    assert not list(dumpsim.open(tmp_path).filter(iteration=7).overflows())


def test_overflow_files_that_are_none(tmp_path):
    name = f"Opdebug.Node_OpDebug.9.8.{STAMP}"
    (tmp_path / name).write_bytes(dump_file(messages()["DumpData"](version="2.0")))
    with pytest.raises(UnreadableError, match="has 0 outputs"):
        list(dumpsim.open(tmp_path).overflows())
    (tmp_path / name).unlink()
    (tmp_path / f"{name}.output.0.json").write_text("[" * 9000)
    with pytest.raises(UnreadableError, match="is not the JSON of an overflow"):
        list(dumpsim.open(tmp_path).overflows())


def test_links_are_not_followed(tmp_path):
    outside, tree = tmp_path / "outside", tmp_path / "tree"
    name = f"Add.Default_Add-op1.3.2.{STAMP}"
    operator(outside, name)
    np.save(outside / "1_secret.npy", np.float32([1]))
    operator(tree, f"Mul.Default_Mul-op1.3.2.{STAMP}")
    for target in (name, "1_secret.npy"):
        (tree / target).symlink_to(outside / target)
    (tree / "0").symlink_to(outside)
    assert {e.op_type for e in dumpsim.open(tree)} == {"Mul"}
    (outside / "mapping.csv").write_text(f"Mul.Default_Mul-op1.3.2.{STAMP},Sub.x.1.2.{STAMP}\n")
    (tree / "mapping.csv").symlink_to(outside / "mapping.csv")
    assert {e.op_type for e in dumpsim.open(tree)} == {"Mul"}


def test_a_mapping_leads_nowhere_else(tmp_path):
    operator(tmp_path / "tree", "5")
    operator(tmp_path, f"Add.secret.3.2.{STAMP}")
    for line in (f"../Add.secret.3.2.{STAMP},Add.x.3.2.{STAMP}", f"5,../Add.secret.3.2.{STAMP}", "5,/etc/passwd"):
        (tmp_path / "tree" / "mapping.csv").write_text(line + "\n")
        assert list(dumpsim.open(tmp_path / "tree")) == []


def test_a_mapping_of_absurd_size_is_refused(tmp_path):
    operator(tmp_path, f"Add.x.3.2.{STAMP}")
    with (tmp_path / "mapping.csv").open("wb") as file:
        os.truncate(file.fileno(), 1 << 40)  # sparse: nothing on the disk
    with pytest.raises(UnreadableError, match=r"mapping\.csv: is larger than 67108864 bytes"):
        list(dumpsim.open(tmp_path))


def test_errors_in_a_tree_name_file_and_offset(tmp_path):
    operator(tmp_path, f"Add.x.3.2.{STAMP}")
    path = tmp_path / f"Add.x.3.2.{STAMP}"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(UnreadableError, match=rf"{STAMP}: byte \d+: output 0 has 8 bytes, 5 are left"):
        list(dumpsim.open(tmp_path))


def test_an_npy_file_of_any_name_is_one_result(tmp_path):
    np.save(tmp_path / "odd.npy", np.ones(3, np.float32))
    (entry,) = dumpsim.open(tmp_path / "odd.npy")
    assert (entry.op_type, entry.op_name, entry.io, entry.slot, entry.timestamp) == ("", "odd", "output", 0, 0)
    assert (entry.shape, entry.dtype) == ((3,), "float32")


@pytest.mark.parametrize("rows", [False, True])
def test_tensors_come_by_time_and_then_by_name(tmp_path, rows):
    """Whatever their files are called; those that the script dumped itself have no time, and come by number."""
    place = tmp_path / "rank_0" / "Net" / "0" / "0"
    place.mkdir(parents=True)
    for op, stamp in (("Sub.z", 3), ("Mul.a", 10), ("Add.y", 9), ("Add.c", 4), ("Mul.b", 4), ("Abs.d", 4)):
        np.save(place / f"{op}.0.0.{stamp}.output.0.DefaultFormat.npy", np.float32([1]))
    for name in ("10_p", "9_q", "2_r"):
        np.save(place / f"{name}.npy", np.float32([1]))
    order = ["r", "q", "p", "z", "b", "c", "d", "y", "a"]
    if rows:
        head = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value\n"
        lines = [f'Exp,{op},0,0,{stamp},output,0,4,float32,"(1,)",1\n' for op, stamp in (("e", 3), ("f", 4), ("g", 11))]
        (place / "statistic.csv").write_text(head + "".join(lines))
        order = ["r", "q", "p", "e", "z", "b", "c", "d", "f", "y", "a", "g"]
    assert [one.op_name for one in dumpsim.open(tmp_path)] == order
