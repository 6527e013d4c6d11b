"""An exact session and text of tensors: ``print(x)`` is one call of its own, other text shows what torch computes."""

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from dumpsim.frontends.apidump.pytorch.session import Session  # noqa: E402
from dumpsim.frontends.apidump.selection import Request  # noqa: E402

pytestmark = pytest.mark.torch

X = torch.tensor([[1.5, 2.0], [3.0, 4.0]])


def recorded(directory, step):
    """The calls that an exact session records of a step."""
    request = Request.checked(mode="all", scope=None, dump_type="all", filter_data=True, filter_stack=True)
    with Session(torch.nn.Linear(2, 2), directory, exact=True) as session:
        session.start(request)
        step()
        session.stop()
    lines = Path(directory) / "rank0" / "torch_api_dump_info.pkl"
    names = [json.loads(line)[0] for line in lines.read_text().splitlines()] if lines.exists() else []
    return {name.partition("_forward")[0] for name in names}


def test_print_records_what_its_arguments_compute_and_no_more(tmp_path, capsys):
    assert recorded(tmp_path / "a", lambda: print(X)) == set()
    assert recorded(tmp_path / "b", lambda: print(X.sum(), X)) == {"Tensor_sum_0"}
    assert recorded(tmp_path / "c", lambda: print(torch.nn.functional.relu(X))) == {"Functional_relu_0"}
    assert capsys.readouterr().out.count("tensor(") == 4


def test_other_text_records_how_torch_makes_it(tmp_path):
    for number, step in enumerate((lambda: repr(X), lambda: f"{X}", lambda: str(X))):
        assert {"Tensor_reshape_0", "Torch_isfinite_0", "Tensor_abs_0"} <= recorded(tmp_path / str(number), step)
