"""API dump of torch against what the real troubleshooter 1.0.17 wrote for the same nets."""

import copy
import importlib.util
import json
import math
import os
import pickle
import sys
from functools import cache
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from dumpsim import migrator  # noqa: E402
from dumpsim.codecs.apidump import read_info, read_stack  # noqa: E402
from dumpsim.frontends.apidump.pytorch.session import Session  # noqa: E402
from dumpsim.frontends.apidump.selection import Request  # noqa: E402

pytestmark = pytest.mark.torch
FIXTURES = Path(__file__).parents[3] / "fixtures" / "apidump"


@cache
def load(name):
    """A module of the fixtures, which may import torch."""
    spec = importlib.util.spec_from_file_location(f"apidump_{name}", FIXTURES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@cache
def recorded():
    return json.loads((FIXTURES / "recorded.json").read_text())


def same_machine():
    """Whether torch computes with the kernels of the recording, so that numbers are equal to the last bit."""
    truth = recorded()
    here = torch.__version__.split("+")[0], torch.backends.cpu.get_cpu_capability()
    return here == (truth["torch"], truth["capability"])


@pytest.fixture(autouse=True)
def one_thread():
    """As in the recording."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


CASES = {case[0]: case[1:] for case in load("cases").cases()}


def dump(key, directory, *, exact):
    """The case, run under dumpsim."""
    net_name, backward, kwargs, program = CASES[key]
    nets = load("nets")
    net, inputs = nets.build(net_name)
    request = Request.checked(
        **{"mode": "all", "scope": None, "dump_type": "all", "filter_data": True, "filter_stack": True, **kwargs}
    )
    with Session(net, directory, retain_backward=backward, exact=exact) as session:
        for command in program:
            if command == "[":
                session.start(request)
            elif command == "]":
                session.stop()
            else:
                nets.run_step(net, inputs, backward)
    return Path(directory) / "rank0", session


def truth(key):
    """What the real package wrote: files with permissions, lines, stacks."""
    texts = recorded()["texts"]
    case = recorded()["dumps"][key]
    return (
        sorted(texts[n] for n in case["files"]),
        [texts[n] for n in case["lines"]],
        [(texts[k], [texts[f] for f in frames]) for k, frames in case["stacks"]],
    )


def close(one, other):
    one, other = json.loads(one), json.loads(other)
    assert one[:5] == other[:5]
    for a, b in zip(one[5], other[5], strict=True):
        assert a == b or (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-5)


@pytest.mark.parametrize("key", CASES)
def test_compat_is_the_real_tool(key, tmp_path):
    rank, _ = dump(key, tmp_path / "dump", exact=True)
    files, lines, stacks = truth(key)
    assert sorted(f"{p.relative_to(rank)} {p.stat().st_mode & 0o777:o}" for p in rank.rglob("*")) == files
    ours = (rank / "torch_api_dump_info.pkl").read_text().splitlines()
    assert [json.loads(line)[0] for line in ours] == [json.loads(line)[0] for line in lines]
    if same_machine():
        assert ours == lines
    else:
        for one, other in zip(ours, lines, strict=True):
            close(one, other)
    found = read_stack(rank / "torch_api_dump_stack.json")
    assert list(found) == [k for k, _ in stacks]
    for name, frames in stacks:
        if frames:
            own = [f.replace(f"{FIXTURES}{os.sep}", "") for f in found[name]]
            inner = sum(f.startswith("File nets.py") for f in frames)
            assert frames[:inner] == own[:inner]  # what is outside is the recorder or pytest


@pytest.mark.parametrize("key", [key for key in CASES if key.endswith(("backward/plain", "/steps"))])
def test_default_has_the_names_of_the_real_tool(key, tmp_path):
    rank, session = dump(key, tmp_path / "dump", exact=False)
    _, lines, stacks = truth(key)
    wanted = [json.loads(line) for line in lines]
    ours = list(read_info(rank / "torch_api_dump_info.pkl"))
    if key.startswith("mlp/api_list"):  # the real one cuts `LAYER_head_d` to `LAYER_he`, and misses it
        assert "LAYER_head_d_forward_input" in [r.name for r in ours]
        return
    assert [r.name for r in ours] == [w[0] for w in wanted]
    assert [(r.dtype, list(r.shape)) for r in ours] == [(w[3], w[4]) for w in wanted]
    assert list(read_stack(rank / "torch_api_dump_stack.json")) == [k for k, _ in stacks]
    for record, truth_line in zip(ours, wanted, strict=True):
        if "backward" in record.name or "_forward_output" in record.name:
            high, low, mean = truth_line[5]
            if not math.isnan(high):
                assert math.isclose(record.max, high, rel_tol=1e-4, abs_tol=1e-4)
                assert math.isclose(record.min, low, rel_tol=1e-4, abs_tol=1e-4)
                assert math.isclose(record.mean, mean, rel_tol=1e-4, abs_tol=1e-4)
    assert set(session.skipped) <= {"keyword argument", "tensor in a dict"}


class Tool:
    """dumpsim, as scripts.py calls it."""

    def __init__(self, directory, compat="1.0.17"):
        self._directory = directory
        self._compat = compat
        self.start = migrator.api_dump_start
        self.stop = migrator.api_dump_stop

    def init(self, net, directory, backward):
        self.dump = migrator.api_dump_init(
            net, self._directory / directory, retain_backward=backward, compat=self._compat
        )


@pytest.mark.parametrize("name", load("scripts").SCRIPTS)
@pytest.mark.filterwarnings("ignore:.*upsample", "ignore:Detected call of `lr_scheduler.step", "ignore:dropout1d")
def test_defects_that_show_are_those_of_the_real_tool(name, tmp_path):
    texts = recorded()["texts"]
    case = recorded()["dumps"][f"scripts/{name}"]
    torch.manual_seed(7)
    tool = Tool(tmp_path)
    try:
        load("scripts").SCRIPTS[name](tool)
    finally:
        tool.dump.close()
    assert not tool.dump.skipped
    found = sorted(tmp_path.rglob("*"))
    assert [f"{p.relative_to(tmp_path)} {p.stat().st_mode & 0o777:o}" for p in found] == [
        texts[n] for n in case["files"]
    ]
    for path, numbers in case["lines"]:
        ours = (tmp_path / texts[path]).read_text().splitlines()
        lines = [texts[n] for n in numbers]
        assert [json.loads(line)[0] for line in ours] == [json.loads(line)[0] for line in lines]
        if same_machine():
            assert ours == lines
        else:
            for one, other in zip(ours, lines, strict=True):
                close(one, other)
    for path, numbers in case["stacks"]:
        assert list(read_stack(tmp_path / texts[path])) == [texts[n] for n in numbers]


@pytest.mark.parametrize("name", ["functions_of_the_user", "operands_of_several_words", "operators", "operands"])
def test_default_has_the_names_of_the_real_tool_in_scripts(name, tmp_path):
    texts = recorded()["texts"]
    tool = Tool(tmp_path, compat=None)
    try:
        load("scripts").SCRIPTS[name](tool)
    finally:
        tool.dump.close()
    for path, numbers in recorded()["dumps"][f"scripts/{name}"]["lines"]:
        ours = [record.name for record in read_info(tmp_path / texts[path])]
        theirs = [json.loads(texts[n])[0] for n in numbers]
        if name == "functions_of_the_user":  # a module's LAYER comes before what the user's hooks on it do, not behind
            ours.sort()
            theirs.sort()
        assert ours == theirs


def test_close_takes_the_hooks_of_every_init_off(tmp_path):
    net = torch.nn.Sequential(torch.nn.Linear(2, 2))
    for name in "ab":
        dump = migrator.api_dump_init(net, tmp_path / name, compat="1.0.17")
    assert len(net[0]._forward_hooks) == 4  # two of each, as the real tool has them
    twin, stored = copy.deepcopy(net), pickle.loads(pickle.dumps(net))
    dump.start()
    stored(torch.ones(1, 2))
    dump.stop()
    assert not (tmp_path / "b/rank0/torch_api_dump").exists()
    dump.close()
    assert not net[0]._forward_hooks
    assert torch.equal(twin(torch.ones(1, 2)), net(torch.ones(1, 2)))
    with migrator.api_dump_init(net, tmp_path / "c", compat="1.0.17"):
        assert len(net[0]._forward_hooks) == 2
    assert not net[0]._forward_hooks


class Grumpy:
    """An object that answers no question, as proxies without a target and half-built models do."""

    __slots__ = ()

    @property
    def __class__(self):
        raise RuntimeError("no target")

    def __getattr__(self, name):
        raise RuntimeError(f"no target for {name}")


def test_objects_of_the_program_are_not_asked(tmp_path):
    held = [Grumpy()]  # the variables of whoever calls init are looked through
    net = torch.nn.Linear(2, 2)
    with migrator.api_dump_init(net, tmp_path, compat="1.0.17") as dump:
        dump.start()
        net(torch.ones(1, 2))
        dump.stop()
    records = read_info(tmp_path / "rank0" / "torch_api_dump_info.pkl")
    assert next(record.name for record in records) == "NN_Linear_0_forward_input.0"
    assert held
