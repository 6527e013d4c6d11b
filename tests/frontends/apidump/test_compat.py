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
    records = read_info(tmp_path / "rank0" / "torch_api_dump_info.pkl")
    assert next(record.name for record in records) == "NN_Linear_0_forward_input.0"
    assert held
