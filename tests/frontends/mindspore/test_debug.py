"""TensorDump and Print, in graphs and op by op: files, names, texts.

[spec mindspore 9] [spec observed 3]
"""

import json
import re
import stat
from pathlib import Path

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import VARIABLE, RunSettings
from dumpsim.frontends.mindspore import Tensor, _c_expression, context, nn, ops
from dumpsim.runtime.session import Session

X = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32)


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path):
    """A working directory, and a device for each test."""
    for name in (VARIABLE, "MINDSPORE_DUMP_CONFIG", "MS_DUMP_SLICE_SIZE", "MS_DUMP_WAIT_TIME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def machine(mode=ms.GRAPH_MODE, target="Ascend", **settings):
    session = Session(RunSettings(quiet=True, **settings))
    Session.use(session)
    context.set_context(mode=mode, device_target=target)
    session.configure(target=target)
    return session


def files(place):
    return sorted(p.relative_to(place).as_posix() for p in place.rglob("*.npy"))


class Net(nn.Cell):
    """MindSpore's own sample of TensorDump."""

    def __init__(self, name=""):
        super().__init__()
        self.dump = ops.TensorDump()
        self.prefix = name

    def construct(self, x):
        x += 1.0
        self.dump(self.prefix + "add", x)
        x /= 2.0
        self.dump(self.prefix + "div", x)
        x *= 5.0
        self.dump(self.prefix + "mul", x)
        return x


@pytest.mark.parametrize(
    ("release", "names"),
    [
        ("seed", ["0_add.npy", "1_div.npy", "2_mul.npy", "3_add.npy", "4_div.npy", "5_mul.npy"]),
        (
            "2.10",
            [
                f"{name}_float32_{n}.npy"
                for n, name in [(0, "add"), (3, "add"), (1, "div"), (4, "div"), (2, "mul"), (5, "mul")]
            ],
        ),
    ],
)
def test_a_graph_saves_in_the_order_of_the_script(place, release, names):
    machine(mindspore=release)
    net = Net()
    out = net(Tensor(X))
    net(Tensor(out.asnumpy()))
    assert files(place) == sorted(names)
    saved = {name: np.load(place / name) for name in names}
    by_id = [saved[n] for n in sorted(names, key=lambda n: int(re.search(r"\d+", n.replace("float32", ""))[0]))]
    second = (X + 1) / 2 * 5
    for ours, expected in zip(
        by_id, [X + 1, (X + 1) / 2, second, second + 1, (second + 1) / 2, (second + 1) / 2 * 5], strict=True
    ):
        np.testing.assert_array_equal(ours, expected)
    assert {stat.S_IMODE((place / name).stat().st_mode) for name in names} == {0o400}


def test_a_gradient_saves_each_tensor_once(place):
    machine()
    ms.grad(Net())(Tensor(X))
    assert files(place) == ["0_add.npy", "1_div.npy", "2_mul.npy"]


class Hooked(nn.Cell):
    """Saves the gradient of a product's operand."""

    def __init__(self, mode):
        super().__init__()
        self.dump = ops.DumpGradient()
        self.mode = mode

    def construct(self, x):
        y = self.dump("d/g.npy", x * 3, self.mode)
        return y * y


class Gradient(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.grad = ops.GradOperation()

    def construct(self, x):
        return self.grad(self.net)(x)


@pytest.mark.parametrize("mode", ["in", "out", "any word"])
@pytest.mark.parametrize("way", ["pynative", "jit", "graph"])
def test_a_gradient_is_saved_on_its_way_back(place, way, mode):
    machine(ms.GRAPH_MODE if way == "graph" else ms.PYNATIVE_MODE)
    net = Hooked(mode)
    grad = {"pynative": ms.grad(net), "jit": ms.grad(ms.jit(net.construct)), "graph": Gradient(net)}[way]
    np.testing.assert_array_equal(net(Tensor(X)).asnumpy(), 9 * X * X)
    assert files(place) == []  # nothing is saved without a gradient
    np.testing.assert_array_equal(grad(Tensor(X)).asnumpy(), 18 * X)
    assert files(place) == ["d/0_g.npy"]
    np.testing.assert_array_equal(np.load(place / "d" / "0_g.npy"), 6 * X)


def test_the_dump_of_a_gradient_needs_a_device_that_has_one(place):
    machine(target="CPU", mindspore="2.10")
    net = Hooked("out")
    np.testing.assert_array_equal(net(Tensor(X)).asnumpy(), 9 * X * X)
    with pytest.raises(RuntimeError, match=r"Unsupported op \[TensorDump\] on CPU"):
        Gradient(net)(Tensor(X))
    machine(ms.PYNATIVE_MODE)
    with pytest.raises(TypeError, match="the type of 'file' should be 'str', but got type 'int'"):
        ms.grad(lambda x: ops.DumpGradient()(3, x, "out") * 2)(Tensor(X))


def test_tensors_and_gradients_are_saved_by_one_count(place):
    class Both(nn.Cell):
        def __init__(self):
            super().__init__()
            self.gradient = ops.DumpGradient()
            self.weight = ms.Parameter(Tensor(np.full((2, 4), 2, np.float32)), name="w")

        def construct(self, x):
            y = self.gradient("dy", x * self.weight, "out")
            ops.tensordump("y", y)
            ops.tensordump("y", y)
            ops.tensordump("w", self.weight)
            return ops.depend(y, ops.tensordump("last", y * 2)) * 3

    machine()
    Gradient(Both())(Tensor(X))
    saved = sorted((name.partition("_") for name in files(place)), key=lambda parts: int(parts[0]))
    assert [int(number) for number, _, _ in saved] == [0, 1, 2, 3, 4]
    names = [name for _, _, name in saved]
    assert [name for name in names if name != "dy.npy"] == ["y.npy", "y.npy", "w.npy", "last.npy"]
    values = {name: np.load(place / f"{number}_{name}") for number, _, name in saved}
    np.testing.assert_array_equal(values["w.npy"], np.full((2, 4), 2, np.float32))
    np.testing.assert_array_equal(values["dy.npy"], np.full((2, 4), 3, np.float32))
    np.testing.assert_array_equal(values["last.npy"], 4 * X)


def test_documented_restrictions_give_warnings(place, capsys):
    class Flow(nn.Cell):
        def construct(self, x):
            y = x + 1
            ops.tensordump("y", y, "in")
            if x.sum() > 0:
                ops.tensordump("flow", y)
            return y

    machine()
    Flow()(Tensor(X))
    warned = capsys.readouterr().err
    assert "the parallel mode is stand_alone, which allows mode 'out' only" in warned
    assert "'flow' is saved inside control flow" in warned
    assert files(place) == ["0_y.npy", "1_flow.npy"]


def test_a_graph_on_another_device_is_refused(place):
    machine(target="CPU")
    with pytest.raises(RuntimeError, match=r"Unsupported op \[TensorDump\] on CPU, Please confirm"):
        Net()(Tensor(X))
    assert files(place) == []


@pytest.mark.parametrize("target", ["Ascend", "GPU", "CPU"])
@pytest.mark.parametrize("generation", ["A", "B", "C"])
def test_pynative_works_on_every_device(place, target, generation):
    machine(ms.PYNATIVE_MODE, target, overrides={"tensordump": generation})
    for file in ("a", "a", "d1/d2/c", "q.npy.npy", "q.txt", "dirx/", str(place / "abs" / "e.npy")):
        ops.tensordump(file, Tensor(X))
    by_number = ["0_a.npy", "1_a.npy", "d1/d2/2_c.npy", "3_q.npy.npy", "4_q.txt.npy", "dirx/5_.npy", "abs/6_e.npy"]
    by_name = [
        "a_float32_0.npy", "a_float32_1.npy", "d1/d2/c_float32_2.npy", "q.npy_float32_3.npy", "q.txt_float32_4.npy",
        "dirx/_float32_5.npy", "abs/e_float32_6.npy",
    ]  # fmt: skip
    assert files(place) == sorted(by_number if generation == "A" else by_name)
    assert stat.S_IMODE((place / "d1" / "d2").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        ("bool_", "|b1"),
        *((f"int{bits}", f"{'|' if bits == 8 else '<'}i{bits // 8}") for bits in (8, 16, 32, 64)),
        *((f"uint{bits}", f"{'|' if bits == 8 else '<'}u{bits // 8}") for bits in (8, 16, 32, 64)),
        *((f"float{bits}", f"<f{bits // 8}") for bits in (16, 32, 64)),
        ("bfloat16", "<f4"),
        ("complex64", "<c8"),
        ("complex128", "<c16"),
    ],
)
def test_number_types(place, kind, stored):
    machine(ms.PYNATIVE_MODE, "CPU", mindspore="2.10")
    ops.TensorDump()("t", Tensor([1, 0, 1], getattr(ms, kind)))
    (name,) = files(place)
    assert name == f"t_{kind.rstrip('_')}_0.npy"
    assert np.load(place / name).dtype.str == stored
    assert np.load(place / name).tolist() == [1, 0, 1]


def test_empty_and_scalar_tensors(place):
    machine(ms.PYNATIVE_MODE)
    ops.tensordump("empty", Tensor(np.zeros((0, 2), np.float32)))
    ops.tensordump("scalar", Tensor(2.5, ms.float32))
    assert (place / "0_empty.npy").stat().st_size == 128
    assert np.load(place / "0_empty.npy").shape == (0, 2)
    assert np.load(place / "1_scalar.npy") == 2.5


def test_steps_and_placeholders(place):
    machine(ms.PYNATIVE_MODE, overrides={"tensordump": "B"})
    x = Tensor(X)
    _c_expression._tensordump_set_step([1])
    ops.tensordump("{rank}/{step}/a", x)
    ops.tensordump("<tensordump-update-step>", x)
    ops.tensordump("{rank}/{step}/a", x)
    ops.tensordump("<tensordump-update-step>", x)
    ops.tensordump("{rank}/{step}/a", x)
    _c_expression._tensordump_set_step([])
    ops.tensordump("{rank}/{step}/a", x)
    assert files(place) == ["rank0/step1/a_float32_0.npy", "rank0/step2/a_float32_1.npy"]


@pytest.mark.parametrize("call", [ops.tensordump, lambda *args: ops.TensorDump()(*args)])
def test_python_and_graphs_count_steps_separately(place, call):
    """Release 2.7: updating the step changes the names that calls in Python give; graphs count their own steps."""

    class Net(nn.Cell):
        def construct(self, x):
            call("{step}_graph", x)
            return x + 1

    machine(ms.PYNATIVE_MODE, mindspore="2.7")
    x = Tensor(X)
    call("{step}_python", x)
    call("<tensordump-update-step>", x)
    call("{step}_python", x)
    ms.set_context(mode=ms.GRAPH_MODE)
    Net()(x)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    _c_expression._tensordump_set_step([2])
    call("{step}_python", x)
    call("<tensordump-update-step>", x)
    call("{step}_python", x)
    assert files(place) == [
        "step0_graph_float32_2.npy",
        "step0_python_float32_0.npy",
        "step1_python_float32_1.npy",
        "step2_python_float32_3.npy",
    ]


@pytest.mark.parametrize(("calls", "written", "refused"), [
    (["u", "s"], ["step0_s_float32_0.npy"], 0),
    ([[0], "a", "u", "b"], ["step0_a_float32_0.npy"], 0),
    (["a", [0], "b", "u", "c"], ["step0_a_float32_0.npy", "step0_b_float32_1.npy"], 0),
    ([[1], "a", "u", "b", "u", "c"], [], 1),
    (["u", "u", "u", [3], "a", [0], "b", [1], "c", [2], "d"], [], 1),
    ([[0, 1, 2], "a", "u", "b"], ["step0_a_float32_0.npy", "step0_b_float32_1.npy"], 0),
    (["u", [1], "a", "u", "b", [2], "c", [0], "d"], [], 2),
])  # fmt: skip
def test_names_and_steps_of_release_2_10(place, capsys, calls, written, refused):
    """Files and errors of 2.10 for these calls in PYNATIVE; "u" updates the step, a list sets the steps."""
    machine(ms.PYNATIVE_MODE, mindspore="2.10")
    for what in calls:
        if isinstance(what, list):
            _c_expression._tensordump_set_step(what)
        else:
            ops.tensordump("<tensordump-update-step>" if what == "u" else f"{{step}}_{what}", Tensor(X))
    assert files(place) == written
    assert capsys.readouterr().err.count("open  file failed, the args of 'file' is invalid") == refused


def test_generation_a_has_no_steps(place):
    machine(ms.PYNATIVE_MODE)
    with pytest.raises(NotImplementedError, match="tensordump=B"):
        _c_expression._tensordump_set_step([1])


@pytest.mark.parametrize(
    ("release", "args", "error", "text"),
    [
        (
            "seed",
            (1, Tensor(X)),
            TypeError,
            "Parameter file_name should only be build_in str type but got: <class 'int'>",
        ),
        ("seed", ("a", X), TypeError, "Parameter tensor should only be Tensor type, but got: <class 'numpy.ndarray'>"),
        (
            "seed",
            ("a", Tensor(X), 1),
            TypeError,
            "Parameter mode should only be build_in str type, but got: <class 'int'>",
        ),
        ("seed", ("a", Tensor(X), "foo"), ValueError, "Parameter mode should in ['out', 'in', 'all'], but got foo"),
        ("2.10", ("a", Tensor(X), "foo"), ValueError, "Parameter mode should in ['out', 'in'], but got foo"),
        ("2.10", ("a", Tensor(X), "all"), ValueError, "Argument [mode] has been not supported value of 'all'."),
        ("2.10", ("", Tensor(X)), ValueError, "For 'TensorDump', the input argument[file] cannot be an empty string."),
    ],
)
def test_wrong_arguments_get_the_vendors_texts(place, release, args, error, text):
    machine(ms.PYNATIVE_MODE, mindspore=release)
    with pytest.raises(error) as raised:
        ops.tensordump(*args)
    assert str(raised.value).startswith(text)
    assert files(place) == []


def test_the_primitive_checks_its_mode_and_operands(place):
    machine(ms.PYNATIVE_MODE, mindspore="2.10")
    with pytest.raises(ValueError, match=re.escape("one of ['in', 'out'], but got: all")):
        ops.TensorDump(input_output="all")
    with pytest.raises(TypeError, match="the type of 'file' should be 'str', but got type 'int'"):
        ops.TensorDump()(1, Tensor(X))
    with pytest.raises(TypeError, match="the type of 'input_x' should be 'Tensor', but got type 'int'"):
        ops.TensorDump()("a", 1)


def test_a_name_that_is_too_long(place, capfd):
    machine(ms.PYNATIVE_MODE)
    with pytest.raises(OSError, match="name is too long"):
        ops.tensordump("a" * 300, Tensor(X))
    machine(ms.PYNATIVE_MODE, mindspore="2.10")
    ops.tensordump("a" * 300, Tensor(X))
    assert "[ERROR]" in capfd.readouterr().err


class Printing(nn.Cell):
    """Prints operands of every kind."""

    def __init__(self):
        super().__init__()
        self.p = ops.Print()

    def construct(self, x, b, h, i):
        self.p("Print Tensor x and y:", x)
        self.p(b, h, i)
        self.p("scalar", x.sum(), (1, 2, "a"), 3, 2.5, True)
        return x + x


PRINTED = """Print Tensor x and y:
Tensor(shape=[2, 3], dtype=Float32, value=
[[ 0.00000000e+00  1.00000000e+00  2.00000000e+00]
 [ 3.00000000e+00  4.00000000e+00  5.00000000e+00]])
Tensor(shape=[2], dtype=Bool, value=[ True False])
Tensor(shape=[2, 2], dtype=Float16, value=
[[ 1.0000e+00  2.0000e+00]
 [ 3.0000e+00  4.5000e+00]])
Tensor(shape=[2], dtype=Int32, value=[  1 -20])
scalar
15
1
2
a
3
2.5
1
"""  # printed by MindSpore 2.10


def test_a_graph_prints_as_mindspore(capsys):
    machine(target="CPU", mindspore="2.10")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    half = np.array([[1, 2], [3, 4.5]], np.float16)
    Printing()(Tensor(x), Tensor([True, False]), Tensor(half), Tensor(np.array([1, -20], np.int32)))
    assert capsys.readouterr().out == PRINTED


class Odd(nn.Cell):
    """Prints what is no tensor."""

    def construct(self, x):
        ops.print_(None, ms.int32, (None, "b"))
        return x


@pytest.mark.parametrize(
    ("mode", "text"), [(ms.GRAPH_MODE, "None\nInt32\nNone\nb\n"), (ms.PYNATIVE_MODE, "None\nInt32\n(None, 'b')\n")]
)
def test_print_takes_what_is_no_tensor(capsys, mode, text):
    machine(mode, target="CPU", mindspore="2.10")
    Odd()(Tensor([1.0]))
    assert capsys.readouterr().out == text  # printed by MindSpore 2.10


def test_the_file_of_print(place, capsys):
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    machine()
    (place / "print.data").write_bytes(b"taken")
    context.set_context(print_file_path=str(place / "print.data"))
    path = context.get_context("print_file_path")
    assert re.fullmatch(rf"{re.escape(str(place))}/print\.data\.\d+", path)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    half = np.array([[1, 2], [3, 4.5]], np.float16)
    for _ in range(2):
        Printing()(Tensor(x), Tensor([True, False]), Tensor(half), Tensor(np.array([1, -20], np.int32)))
    assert capsys.readouterr().out == ""
    found = ms.parse_print(path)
    assert len(found) == 26
    assert found[0] == "Print Tensor x and y:"
    np.testing.assert_array_equal(found[1].asnumpy(), x)
    assert found[3].dtype == ms.float16
    shown = [item if isinstance(item, str) else item.asnumpy().tolist() for item in found[5:12]]
    assert shown == ["scalar", 15, 1, 2, "a", 3, 2.5]

    # google.protobuf writes the same bytes from the schema of the specification
    file = descriptor_pb2.FileDescriptorProto(name="print_test.proto", package="t", syntax="proto2")
    tensor = file.message_type.add(name="TensorProto")
    value, printed = file.message_type.add(name="Value"), file.message_type.add(name="Print")
    kinds = descriptor_pb2.FieldDescriptorProto
    for owner, name, number, kind, label, type_name in (
        (tensor, "dims", 1, kinds.TYPE_INT64, kinds.LABEL_REPEATED, None),
        (tensor, "tensor_type", 2, kinds.TYPE_STRING, kinds.LABEL_REQUIRED, None),
        (tensor, "tensor_content", 3, kinds.TYPE_BYTES, kinds.LABEL_REQUIRED, None),
        (value, "desc", 1, kinds.TYPE_BYTES, kinds.LABEL_OPTIONAL, None),
        (value, "tensor", 2, kinds.TYPE_MESSAGE, kinds.LABEL_OPTIONAL, ".t.TensorProto"),
        (printed, "value", 1, kinds.TYPE_MESSAGE, kinds.LABEL_REPEATED, ".t.Value"),
    ):
        owner.field.add(name=name, number=number, type=kind, label=label, type_name=type_name)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Print"))()
    data = Path(path).read_bytes()
    message.ParseFromString(data)
    assert message.SerializeToString() == data
    assert [list(v.tensor.dims) for v in message.value[1:5]] == [[2, 3], [2], [2, 2], [2]]
    assert [v.tensor.tensor_type for v in message.value[1:5]] == ["Float32", "Bool", "Float16", "Int32"]
    assert message.value[1].tensor.tensor_content == x.tobytes()


def test_parse_print_refuses_other_files(place):
    with pytest.raises(FileNotFoundError):
        ms.parse_print(str(place / "none"))
    for content, text in ((b"", "may be empty"), (b"\xff" * 9, "Failed to read the print file")):
        (place / "bad").write_bytes(content)
        with pytest.raises(ValueError, match=text):
            ms.parse_print(str(place / "bad"))
    machine()
    with pytest.raises(OSError, match="should be file path, but got directory"):
        context.set_context(print_file_path=str(place))


def test_a_dumped_tensordump_carries_its_file_in_its_name(place, monkeypatch):
    config = {
        "common_dump_settings": {
            "op_debug_mode": 0, "dump_mode": 0, "path": str(place / "dump"), "net_name": "Net", "iteration": "all",
            "saved_data": "tensor", "input_output": 0, "kernels": [], "support_device": [0],
        },
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
    }  # fmt: skip
    (place / "config.json").write_text(json.dumps(config))
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(place / "config.json"))
    machine(manifest=None)
    Net()(Tensor(X))
    names = sorted(p.name.split(".")[1] for p in (place / "dump").rglob("TensorDump.*.npy"))
    assert names
    assert {name.split("|")[0] for name in names} == {"add", "div", "mul"}
    assert all("|Default_" in name for name in names)
    assert len(list(place.glob("*.npy"))) == 3
