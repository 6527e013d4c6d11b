"""Dumps of whole graphs (O2, GE): trees, files, the file for ACL; decoded with google.protobuf, not with our codec."""

import csv
import json
import stat
from datetime import UTC, datetime

import ml_dtypes
import numpy as np
import pytest

import dumpsim
from dumpsim.core.errors import BadInputError, DumpConfigError, ScriptValueError
from dumpsim.core.options import CompileOptions
from dumpsim.core.partname import is_ours
from dumpsim.dump.control import DumpControl
from tests.dump.machine import Machine, graph, ref, task
from tests.dumpproto import messages

CONV = "Default/conv-Conv2d/Conv2D-op0"
IMAGE = np.arange(2 * 3 * 4 * 4, dtype=np.float32).reshape(2, 3, 4, 4)
KERNEL = np.arange(20 * 3 * 9, dtype=np.float32).reshape(20, 3, 3, 3) / 8
FLOAT16, FLOAT, BF16 = 2, 1, 27  # [spec ge 3.3]
NCHW, ND, NC1HWC0, FRACTAL_Z = 0, 2, 3, 4
STEP = "20231114221320"  # the virtual clock's start, in UTC


@pytest.fixture
def root(tmp_path):
    return tmp_path / "dump"


def conv(**fields):
    """A convolution with device layouts."""
    return task(
        CONV,
        [ref(IMAGE, 0, device="float16", layout="NC1HWC0"), ref(KERNEL, 1, device="float16", layout="FRACTAL_Z")],
        [ref(IMAGE, 0, device="float16", layout="NC1HWC0")],
        op_type="Conv2D",
        **{"task_id": 7, "stream_id": 2, "model_name": "kernel_graph0", "model_id": 1, **fields},
    )


def files(root):
    """Files of the dump; while it runs there is a claim beside them."""
    found = (path for path in root.rglob("*") if path.is_file() and not is_ours(path.name))
    return sorted(str(path.relative_to(root)) for path in found)


def read(path):
    """Header and payload of a bin file, as google.protobuf has them."""
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    return messages()["DumpData"].FromString(raw[8 : 8 + size]), raw[8 + size :]


def blocks(payload, entries):
    """The payload cut at the sizes of the header."""
    at = 0
    for entry in entries:
        yield payload[at : at + entry.size]
        at += entry.size
    assert at == len(payload)


def one(root, part):
    found = [path for path in root.rglob("*") if path.is_file() and part in path.name]
    assert len(found) == 1, found
    return found[0]


def test_the_trees(root):
    for profile, levels in (("seed/ascend_o2", "0/"), ("seed/ascend_ge", "")):
        base = root / profile[-2:]
        machine = Machine(base, profile)
        machine.compile(graph())
        machine.run(conv())
        machine.service.finish()
        found = files(base)
        stamp = one(base, "Conv2D").name.rsplit(".", 1)[1]
        name = f"Conv2D.Default_conv-Conv2d_Conv2D-op0.7.2.{stamp}"
        expected = [f"{levels}{STEP}/0/kernel_graph0/1/0/{name}"]
        assert found == expected + (["acl_dump_0.json"] if levels else [])
        assert len(stamp) == 16
        assert datetime.fromtimestamp(int(stamp) / 1e6, UTC).strftime("%Y%m%d%H%M%S") == STEP
        assert stat.S_IMODE(one(base, "Conv2D").stat().st_mode) == 0o600
        assert stat.S_IMODE(one(base, "Conv2D").parent.stat().st_mode) == 0o700


def test_a_file_holds_the_operator_as_the_device_has_it(root):
    machine = Machine(root, "seed/ascend_o2")
    event = conv(original_names=("Default/a-op0", "Default/b-op0"))
    machine.run(event)
    path = one(root, "Conv2D")
    head, payload = read(path)
    assert (head.version, head.op_name) == ("2.0", CONV)
    assert head.dump_time == int(path.name.rsplit(".", 1)[1])
    shapes = [tuple(entry.shape.dim) for entry in (*head.input, *head.output)]
    assert shapes == [(2, 1, 4, 4, 16), (9, 2, 16, 16), (2, 1, 4, 4, 16)]
    assert [tuple(entry.original_shape.dim) for entry in head.input] == [IMAGE.shape, KERNEL.shape]
    assert [entry.format for entry in (*head.input, *head.output)] == [NC1HWC0, FRACTAL_Z, NC1HWC0]
    assert {entry.data_type for entry in (*head.input, *head.output)} == {FLOAT16}
    assert [entry.address for entry in head.input] == [operand.address for operand in event.operands]
    original = head.output[0].original_op
    assert (original.name, original.data_type, original.format) == ("Default/b-op0", 1, NCHW)  # 1: GE's float16
    image, kernel, _ = blocks(payload, (*head.input, *head.output))
    laid = np.frombuffer(image, np.float16).reshape(2, 1, 4, 4, 16)
    assert np.array_equal(laid[:, 0, :, :, :3].transpose(0, 3, 1, 2), IMAGE)
    assert not laid[..., 3:].any()
    laid = np.frombuffer(kernel, np.float16).reshape(9, 32, 16)  # h and w, then n and c, padded to 16
    assert np.array_equal(laid[:, :20, :3].reshape(3, 3, 20, 3).transpose(2, 3, 0, 1), KERNEL)


def test_npy_files_hold_what_the_bin_files_hold(root):
    machine = Machine(root, "seed/ascend_o2", file_format="npy", saved_data="full", statistic_category=["max", "count"])
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
    dense = task(
        "Default/fc-Dense/MatMul-op0",
        [ref(matrix, 0, device="float16", layout="FRACTAL_NZ"), ref(matrix, 1)],
        [ref(matrix.astype(ml_dtypes.bfloat16), 0)],
        task_id=65535, stream_id=65535, model_name="m", model_id=1,
    )  # fmt: skip
    machine.run(conv(), dense)
    machine.service.finish()
    directory = root / "0" / STEP / "0/kernel_graph0/1/0"
    names = sorted(path.name for path in directory.iterdir())
    stamp = names[0].split(".")[4]
    head = f"Conv2D.Default_conv-Conv2d_Conv2D-op0.7.2.{stamp}"
    assert names == [
        f"{head}.input.0.NCHW.Float16.npy",
        f"{head}.input.1.NCHW.Float16.npy",
        f"{head}.output.0.NCHW.Float16.npy",
        "statistic.csv",
    ]
    assert np.array_equal(np.load(directory / names[0]), IMAGE.astype(np.float16))
    assert np.array_equal(np.load(directory / names[1]), KERNEL.astype(np.float16))
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o400}
    other = root / "0" / STEP / "0/m/1/0"
    nz = one(other, "input.0")  # a matrix keeps the device's layout [spec mindspore 5.6]
    assert nz.name.endswith(".65535.65535." + nz.name.split(".")[4] + ".input.0.FRACTAL_NZ.Float16.npy")
    assert np.load(nz).shape == (1, 1, 16, 16)
    assert np.load(one(other, "input.1.ND.Float32.npy")).tolist() == matrix.tolist()
    widened = np.load(one(other, "output.0.ND.BFloat16.npy"))
    assert widened.dtype == np.float32
    assert np.array_equal(widened, matrix)
    with open(other / "statistic.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["Task ID"], row["IO"], row["Slot"], row["Data Type"]) for row in rows] == [
        ("65535", "input", "0", "float16"), ("65535", "input", "1", "float32"), ("65535", "output", "0", "bfloat16"),
    ]  # fmt: skip
    assert [row["Max Value"] for row in rows] == ["5", "5", "5"]


def test_packed_and_complex_types(root):
    packed = ref(np.array([0x21, 0xF8], np.uint8), 0, kind="int4", device="int4", shape=(4,))
    number = ref(np.array([1 + 2j], np.complex64), 1)
    machine = Machine(root, "seed/ascend_o2", file_format="npy")
    machine.run(task("Default/Q-op0", [packed, number], [number], model_name="m", model_id=1))
    assert np.load(one(root, "input.0.ND.Int4.npy")).tolist() == [1, 2, -8, -1]
    assert np.load(one(root, "input.1.ND.Complex64.npy")).tolist() == [1 + 2j]


def test_int4_counts_elements(root):
    four = ref(np.array([0x21, 0xF8], np.uint8), 0, kind="int4", device="int4", shape=(4,))
    pairs = ref(np.array([0x21, 0xF8], np.uint8), 1, kind="int4", device="int4", shape=(1, 2))
    machine = Machine(root, "seed/ascend_o2")
    machine.run(task("Default/Q-op0", [four, pairs], [four], model_name="m", model_id=1))
    head, _ = read(one(root, "Default_Q-op0"))
    assert [(list(e.shape.dim), list(e.original_shape.dim), e.size) for e in head.input] == [
        ([4], [4], 2), ([1, 4], [1, 4], 2),
    ]  # fmt: skip
    assert [entry.array().tolist() for entry in dumpsim.open(root).filter(io="input")] == [
        [1, 2, -8, -1], [[1, 2, -8, -1]],
    ]  # fmt: skip


def test_o2_dtype_can_be_lower_case(root):
    machine = Machine(root, "seed/ascend_o2", file_format="npy", settings={"overrides": {"o2_dtype": "lower"}})
    machine.run(conv())
    one(root, "output.0.NCHW.float16.npy")


@pytest.mark.parametrize(("input_output", "expected"), [(0, (2, 1)), (1, (2, 0)), (2, (0, 1))])
def test_input_output(root, input_output, expected):
    machine = Machine(root, "seed/ascend_o2", input_output=input_output)
    machine.run(conv())
    head, _ = read(one(root, "Conv2D"))
    assert (len(head.input), len(head.output)) == expected
    content = json.loads((root / "acl_dump_0.json").read_text())["dump"]
    assert content["dump_mode"] == {0: "all", 1: "input", 2: "output"}[input_output]


def test_what_leaves_no_file(root):
    empty = ref(np.zeros((0, 2), np.float32), 0)
    machine = Machine(root, "seed/ascend_o2")
    ids = {"model_name": "m", "model_id": 1}
    machine.run(
        task("Empty", [empty], [empty], op_type="Empty", **ids),
        *(task(f"n{kind}", [], [ref(IMAGE)], op_type=kind, **ids) for kind in ("NetOutput", "Const", "Send", "Recv")),
        task("s", [ref(IMAGE)], [], op_type="StreamActive", **ids),
        task("Half", [empty, ref(IMAGE, 1)], [empty], op_type="Half", **ids),
    )
    found = [name for name in files(root) if "acl_dump" not in name]
    assert len(found) == 1
    head, payload = read(one(root, "Half"))
    assert [entry.size for entry in head.input] == [0, IMAGE.nbytes]  # the numbers of the tensors stay
    assert len(payload) == IMAGE.nbytes


def test_data_nodes_are_selected_by_no_name(root):
    ids = {"model_name": "m", "model_id": 1}
    data = task("x", [], [ref(IMAGE)], op_type="Data", **ids)
    for name, changes in (("all", {}), ("named", {"dump_mode": 1, "kernels": ["x", "name-regex(.*)"]})):
        machine = Machine(root / name, "seed/ascend_o2", **changes)
        machine.run(data, task("Add", [ref(IMAGE)], [ref(IMAGE)], **ids))
        found = {path.name.split(".")[0] for path in (root / name).rglob("*.*.*.*") if path.is_file()}
        assert found == ({"Data", "Add"} if name == "all" else {"Add"})


def test_attributes_of_an_operator_take_no_slot(root):
    operands = [ref(IMAGE, 0), ref(np.array(True), 1, origin="constant"), ref(KERNEL, 2)]
    machine = Machine(root, "seed/ascend_o2")
    machine.run(task("Op", operands, [ref(IMAGE)], model_name="m", model_id=1))
    head, _ = read(one(root, "Op."))
    assert [tuple(entry.shape.dim) for entry in head.input] == [IMAGE.shape, KERNEL.shape]
    assert [entry.format for entry in head.input] == [NCHW, NCHW]


def test_over_long_names(root):
    name = "Default/" + "x" * 300
    for form, suffix in (("bin", ""), ("npy", ".npy")):
        base = root / form
        machine = Machine(base, "seed/ascend_o2", file_format=form, input_output=2)
        machine.run(task(name, [], [ref(IMAGE)], op_type="Add", task_id=3, stream_id=1, model_name="m", model_id=1))
        machine.service.finish()
        listing = one(base, "mapping.csv")
        assert stat.S_IMODE(listing.stat().st_mode) == (0o600 if form == "bin" else 0o400)
        number, original = listing.read_text().removesuffix("\n").split(",")
        assert original.startswith(f"Add.Default_{'x' * 300}.3.1.")
        assert original.endswith(".output.0.NCHW.Float32.npy") == (form == "npy")
        assert (listing.parent / number).is_file()
        assert int(number.removesuffix(suffix)) == cpp_hash(original.encode()) % (2**31 if suffix else 2**64)


def cpp_hash(data):
    """std::hash of libstdc++, as [spec ge 3.5] gives it."""
    mask, m = 2**64 - 1, 0xC6A4A7935BD1E995
    h = 0xC70F6907 ^ (len(data) * m & mask)
    for at in range(0, len(data) // 8 * 8, 8):
        t = int.from_bytes(data[at : at + 8], "little") * m & mask
        t = (t ^ t >> 47) * m & mask
        h = (h ^ t) * m & mask
    if len(data) % 8:
        h = (h ^ int.from_bytes(data[len(data) // 8 * 8 :], "little")) * m & mask
    h = (h ^ h >> 47) * m & mask
    return h ^ h >> 47


def test_the_hash_of_the_test_is_the_real_one():
    assert cpp_hash(b"abc") == 3663726644998027833  # [spec ge 3.5]
    assert cpp_hash(b"Add.Add_1.3.5.1700000000000000") == 15060200189498114039


# -- the file for ACL --------------------------------------------------------------------------------------------------


def acl(root, **changes):
    machine = Machine(root, "seed/ascend_o2", **changes)
    return machine, lambda: json.loads((root / "acl_dump_0.json").read_text())["dump"]


def test_acl_json_of_the_start_and_of_steps(root):
    machine, content = acl(root, iteration="1")
    start = {"dump_path": str(root), "dump_mode": "all", "dump_op_switch": "on", "dump_list": []}
    assert content() == {**start, "dump_step": "2147483647"}
    machine.run(conv())
    assert content()["dump_step"] == "2147483647"  # step 0 is not asked for
    machine.run(conv())
    assert content() == {**start, "dump_path": f"{root}/1"}
    assert stat.S_IMODE((root / "acl_dump_0.json").stat().st_mode) == 0o400
    assert (root / "1").is_dir()
    assert machine.service.finish().files == 2


def test_acl_json_names_the_selected_operators(root):
    order = ("trans_Cast_0", CONV, "Default/fc/MatMul-op1")
    machine, content = acl(root / "a", dump_mode=1, kernels=["name-regex(Default/.*Mat.*)", "trans_Cast_0", "conv"])
    machine.compile(graph(order=order))
    machine.run(conv())
    assert content()["dump_list"] == [{"layer": ["trans_Cast_0", "Default/fc/MatMul-op1"]}]
    assert [name for name in files(root / "a") if "Conv2D" in name] == []
    assert any("whole graphs know no operator types" in text and "conv" in text for _, text in machine.log)
    machine, content = acl(root / "b", dump_mode=2)
    machine.compile(graph(order=order))
    machine.run(conv())
    assert content()["dump_list"] == [{"layer": ["NoSetDumpTarget"]}]


def test_acl_json_of_debug_modes(root):
    machine, content = acl(root / "a", op_debug_mode=3)
    machine.run(conv())
    assert content() == {"dump_path": f"{root}/a/0", "dump_debug": "on"}
    machine, content = acl(root / "b", op_debug_mode=4)
    machine.run(conv())
    assert content() == {"dump_scene": "lite_exception"}
    assert files(root / "b") == ["acl_dump_0.json"]
    assert machine.service.exception_path == str(root / "b")


# -- overflow ----------------------------------------------------------------------------------------------------------


def overflowing(task_id, **fields):
    return conv(task_id=task_id, overflow=True, overflow_status=0x20, **fields)


def test_overflow_in_bin(root):
    machine = Machine(root, "seed/ascend_o2", op_debug_mode=3, iteration="5", info={"chip": "910A"})
    machine.run(conv(task_id=1), overflowing(8))
    head, record = read(one(root, "Opdebug"))
    assert one(root, "Opdebug").name.startswith("Opdebug.Node_OpDebug.65535.65535.")
    assert (head.op_name, len(head.input)) == ("Node_OpDebug", 0)
    entry = head.output[0]
    assert (entry.data_type, entry.format, list(entry.shape.dim), entry.size) == (4, ND, [2048], 2048)
    words = np.frombuffer(record, "<u8")
    assert (words[32], words[33], words[34]) == (1, 2, 8)  # model, stream and task at 256 [spec ge 3.8]
    assert words[1040 // 8] == 0x20
    operator = one(root, "Conv2D")
    assert operator.name.split(".")[2:4] == ["8", "2"]  # what the record names, so that tools find it
    assert len(read(operator)[0].input) == 2
    assert int(one(root, "Opdebug").name.rsplit(".", 1)[1]) < int(operator.name.rsplit(".", 1)[1])
    assert any("iteration is set to all" in text for _, text in machine.log)


def test_overflow_in_npy_is_limited_by_overflow_number(root):
    machine = Machine(root, "seed/ascend_o2", op_debug_mode=3, file_format="npy", overflow_number=1)
    machine.run(overflowing(3), overflowing(4), conv())
    content = json.loads(one(root, "Opdebug").read_text())
    assert one(root, "Opdebug").name.endswith(".output.0.json")
    assert content["acc_list"]["acc_type"] == "AIC"  # a convolution is the cube unit's
    assert content["acc_list"]["data"]["task_id"] == 3
    assert content["acc_list"]["data"]["status"] == 0x20
    assert {name.split(".")[2] for name in files(root) if "Conv2D" in name} == {"3"}
    old = Machine(root / "old", "seed/ascend_o2", op_debug_mode=3, file_format="npy", info={"chip": "910A"})
    old.run(overflowing(9))
    content = json.loads(one(root / "old", "Opdebug").read_text())
    assert list(content) == ["AI Core", "DHA Atomic Add", "L2 Atomic Add"]
    assert (content["AI Core"]["task_id"], content["AI Core"]["status"]) == (9, 0x20)


def test_overflow_number_has_no_effect_on_bin(root):
    machine = Machine(root, "seed/ascend_o2", op_debug_mode=3, overflow_number=1)
    machine.run(overflowing(3), overflowing(4))
    assert sum("Opdebug" in name for name in files(root)) == 2


def test_files_of_an_overflow_can_carry_the_ids_of_the_debug_task(root):
    settings = {"overrides": {"overflow_ids": "debug"}}
    machine = Machine(root, "seed/ascend_o2", op_debug_mode=3, settings=settings)
    machine.run(overflowing(3))
    assert one(root, "Conv2D").name.split(".")[2:4] == one(root, "Opdebug").name.split(".")[2:4] == ["65535"] * 2


# -- steps, sinks, refusals --------------------------------------------------------------------------------------------


def test_steps_name_the_first_level_and_runs_the_last(root):
    machine = Machine(root, "seed/ascend_o2", initial_iteration=10, iteration="10|12")
    for _ in range(3):
        machine.run(conv())
    assert sorted({name.split("/")[0] for name in files(root) if "Conv2D" in name}) == ["10", "12"]
    control = DumpControl(user_step=7)
    machine = Machine(root / "user", "seed/ascend_o2", control=control)
    machine.run(conv())
    assert one(root / "user", "Conv2D").relative_to(root / "user").parts[0] == "7"


def test_sinks_of_one_step(root):
    machine = Machine(root, "seed/ascend_o2")
    machine.service.refuse_sink(1)
    with pytest.raises(ScriptValueError, match="when using acl dump in data sink mode, sink size must be 1"):
        machine.service.refuse_sink(2)
    Machine(root / "kernels").service.refuse_sink(2)


def test_graphs_of_another_level_are_left_out_and_told_of(root):
    for profile, kept in (("seed/ascend_o2", "Conv2D"), ("seed/ascend_o0", "Add")):
        machine = Machine(root / kept, profile)
        machine.run(conv(), task("Default/Add-op0", [ref(IMAGE)], [ref(IMAGE)]))
        assert {path.name.split(".")[0] for path in (root / kept).rglob("*.*.*.*.*")} == {kept}
        assert "another jit_level" in str(machine.service.finish())


def test_memory_is_used_again(root):
    for profile, changes, reuse in (
        ("seed/ascend_o2", {}, True),
        ("seed/ascend_o0", {"enable": False}, True),
        ("seed/ascend_o0", {}, False),
    ):
        machine = Machine(root / f"{profile[-2:]}{len(changes)}", profile, **changes)
        assert machine.service.compile_options(CompileOptions()).memory_reuse is reuse


def test_a_second_dump_goes_on_where_it_is_told_to(root):
    Machine(root, "seed/ascend_o2").run(conv())
    with pytest.raises(BadInputError, match="--append"):
        Machine(root, "seed/ascend_o2")
    Machine(root, "seed/ascend_o2", settings={"append": True}).run(conv())
    stamps = [path.name.rsplit(".", 1)[1] for path in root.rglob("Conv2D*")]
    assert len(set(stamps)) == 2
    Machine(root, "seed/ascend_o2", info={"device_id": 1}, support_device=[1]).run(conv())
    assert (root / "acl_dump_1.json").is_file()


@pytest.mark.parametrize("value", ["1", "0", ""])
def test_the_full_exception_dump_goes_with_o2(root, value):
    Machine(root, "seed/ascend_o2", info={"exception_dump": value}).run(conv())
    assert list(root.rglob("Conv2D*"))


def test_the_lite_exception_dump_does_not(root):
    with pytest.raises(DumpConfigError, match="exclude each other"):
        Machine(root, "seed/ascend_o2", info={"exception_dump": "2"})
    Machine(root / "o0", "seed/ascend_o0", info={"exception_dump": "2"})


@pytest.mark.parametrize(
    ("profile", "changes", "text"),
    [
        ("seed/ascend_o2", {"saved_data": "statistic"}, "only supported on Ascend when 'file_format' is set to 'npy'"),
        ("seed/ascend_ge", {"saved_data": "full", "file_format": "bin"}, "'file_format' is set to 'npy'"),
        ("seed/ascend_o2", {"file_format": "csv"}, "'file_format' only supports 'bin' or 'npy', but got: csv"),
        ("seed/ascend_ge", {"op_debug_mode": 4}, "GE dump .* has no exception dump"),
        ("seed/ascend_ge", {"iteration": "3-3"}, "E10001: Value .3-3. for parameter .dumpStep. is invalid"),
        ("seed/ascend_ge", {"iteration": "1|"}, "E10001"),
        ("seed/ascend_ge", {"iteration": "4294967296"}, "E10001"),
        ("seed/ascend_ge", {"iteration": "|".join(map(str, range(101)))}, "E10001"),
    ],
)
def test_refusals(root, profile, changes, text):
    with pytest.raises(DumpConfigError, match=text):
        Machine(root, profile, **changes)
    assert not root.exists()


def test_an_e2e_section_is_told_to_be_in_vain(root, tmp_path):
    from dumpsim.modes.configfile import check_all
    from dumpsim.modes.profile import find
    from tests.dump.machine import config

    found = check_all(json.dumps(config(root)).encode(), {}, find("seed", "ascend_o2"))
    assert {finding.where for finding in found if finding.level == "warning"} == {"$.e2e_dump_settings"}
    assert "$.e2e_dump_settings.enable" in {finding.where for finding in found if finding.level == "no effect"}
    assert "$.common_dump_settings.net_name" in {finding.where for finding in found if finding.level == "no effect"}
