"""The files of state_dicts of a MindTorch net and its PyTorch original."""

import subprocess
import sys

import pytest

from dumpsim.analysis.apicompare import api_dump_compare
from dumpsim.analysis.apicompare.parameters import _load
from dumpsim.core.errors import UnreadableError, UnsupportedError


def dump(root, framework):
    rank = root / "rank0"
    rank.mkdir(parents=True)
    line = '["NN_Linear_0_forward_output", 1, [], "torch.float32", [2], [1.0, 0.0, 0.5]]\n'
    (rank / f"{framework}_api_dump_info.pkl").write_text(line)
    return root


@pytest.fixture
def pair(tmp_path):
    return dump(tmp_path / "a", "torch"), dump(tmp_path / "b", "mindtorch")


def test_without_files_only_a_note(pair, caplog):
    assert api_dump_compare(*pair).parameters is None
    assert "Model state_dicts will not be compared." in caplog.text


@pytest.mark.torch
def test_parameters(pair, tmp_path, capsys):
    import torch

    weight = torch.arange(6.0).reshape(2, 3)
    torch.save({"fc.weight": weight, "fc.bias": torch.ones(2), "old": torch.ones(1)}, pair[0] / "rank0" / "pt_net.pth")
    torch.save(
        {"fc.weight": weight + 0.5, "fc.bias": torch.ones(2).bfloat16(), "new": torch.ones(1)},
        pair[1] / "rank0" / "ad_net.pth",
    )
    table = api_dump_compare(*pair, tmp_path / "out").parameters
    assert [row.cells[:3] + row.cells[4:6] for row in table.rows] == [
        ("fc.weight", "fc.weight", "(2, 3)", "False", "0.00%"),
        ("fc.bias", "fc.bias", "(2,)", "True", "100.00%"),
        ("old", None, "(1,)", "False", "0.00%"),
        (None, "new", None, "False", "0.00%"),
    ]
    assert "fc.weight" in capsys.readouterr().out


@pytest.mark.torch
def test_the_rows_of_parameters(pair):
    """[spec api_dump 2.3] Digits are cut: of 3 / sqrt(9 * 2) five."""
    import torch

    own = {"w": torch.tensor([3.0, 0.0]), "same": torch.ones(2, 2), "bent": torch.ones(2, 3), "old": torch.ones(1, 4)}
    golden = {"w": torch.tensor([1.0, 1.0]), "same": torch.ones(2, 2), "bent": torch.ones(3, 2), "new": torch.ones(5)}
    torch.save(own, pair[0] / "rank0" / "pt_net.pth")
    torch.save(golden, pair[1] / "rank0" / "ad_net.pth")
    rows = api_dump_compare(*pair).parameters.rows
    bent = "Shape is inconsistent"
    assert [(*row.cells, sorted(row.marked)) for row in rows] == [
        ("w", "w", "(2,)", "(2,)", "False", "0.00%", "0.70710", "1.50000, 2.00000", [4]),
        ("same", "same", "(2, 2)", "(2, 2)", "True", "100.00%", "1.00000", "0.00000, 0.00000", []),
        ("bent", "bent", "(2, 3)", "(3, 2)", bent, bent, bent, bent, [4]),
        ("old", None, "(1, 4)", None, "False", "0.00%", "nan", "nan, nan", []),
        (None, "new", None, "(5,)", "False", "0.00%", "nan", "nan, nan", []),
    ]


class Evil:
    def __reduce__(self):
        return print, ("run",)


@pytest.mark.torch
def test_files_are_never_unpickled(pair, capsys):
    import torch

    for side, name in zip(pair, ("pt_net.pth", "ad_net.pth"), strict=True):
        torch.save({"w": Evil()}, side / "rank0" / name)
    with pytest.raises(UnreadableError, match=r"pt_net\.pth: is not a file of a state_dict"):
        api_dump_compare(*pair)
    assert "run" not in capsys.readouterr().out.split()


def test_without_torch_the_extra_is_named_and_the_tables_are_there(pair, tmp_path, monkeypatch):
    for side, name in zip(pair, ("pt_net.pth", "ad_net.pth"), strict=True):
        (side / "rank0" / name).write_bytes(b"")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UnsupportedError, match=r"dumpsim\[torch\]"):
        api_dump_compare(*pair, tmp_path / "out")
    assert (tmp_path / "out" / "ts_api_forward_compare_0.csv").exists()


def test_comparing_loads_neither_torch_nor_the_emulator():
    code = (
        "import sys, dumpsim.analysis.apicompare as a; "
        "bad = [m for m in sys.modules if m == 'torch' or m.startswith(('dumpsim.frontends', 'dumpsim.device'))]; "
        "sys.exit(str(bad) if bad else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.torch
def test_types_that_numpy_lacks_become_float32_and_others_stay(pair):
    """Of whole numbers beyond 2 to the 24 no digit is lost, nor of float64."""
    import torch

    own = {
        "count": torch.tensor([2**24 + 1, 0]), "fine": torch.tensor([1 + 1e-12], dtype=torch.float64),
        "flag": torch.tensor([True, False]), "half": torch.tensor([0.1], dtype=torch.float16),
        "brain": torch.tensor([0.1], dtype=torch.bfloat16), "tiny": torch.tensor([0.1]).to(torch.float8_e4m3fn),
    }  # fmt: skip
    file = pair[0] / "pt_net.pth"
    torch.save(own, file)
    kinds = {"count": "int64", "fine": "float64", "flag": "bool", "half": "float16"}
    found = _load(file)
    assert {name: str(array.dtype) for name, array in found.items()} == {
        name: kinds.get(name, "float32") for name in own
    }
    assert {name: array.tolist() for name, array in found.items()} == {
        name: (tensor.float() if name not in kinds else tensor).tolist() for name, tensor in own.items()
    }
