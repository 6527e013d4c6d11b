"""MindTorch dumps, which nobody can make today: those of torch with the names that MindTorch gave them."""

import csv
import pickle
import re
import shutil

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from dumpsim import migrator  # noqa: E402
from dumpsim.core.errors import DumpsimError  # noqa: E402

pytestmark = pytest.mark.torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.features = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
        self.head = torch.nn.Linear(3, 2)

    def forward(self, x):
        return torch.softmax(self.head(self.features(x)) * 2, -1)


def dumped(path, seed=0, dump_type="all"):
    torch.manual_seed(seed)
    net, x = Net(), torch.linspace(-1, 1, 8).reshape(2, 4)
    with migrator.api_dump_init(net, path, retain_backward=True, compare_statedict=True) as dump:
        dump.start(dump_type=dump_type)
        net(x).square().sum().backward()
        dump.stop()
    return path


def renamed(path, target):
    """The dump in MindTorch's names. [spec api_dump 1.2]"""
    shutil.copytree(path, target)
    rank = target / "rank0"
    for file in list(rank.iterdir()):
        name = "ad_net.pth" if file.name == "pt_net.pth" else file.name.replace("torch_", "mindtorch_", 1)
        file.rename(rank / name)
    return target


@pytest.fixture(params=["all", "statistics"])
def pair(request, tmp_path):
    """A torch dump, and the same one of MindTorch."""
    pt = dumped(tmp_path / "pt", dump_type=request.param)
    return pt, renamed(pt, tmp_path / "ad")


def rows(path):
    with path.open(newline="") as file:
        return [row for row in csv.reader(file) if row]


def test_a_pair_of_equal_nets(pair, tmp_path, capsys):
    pt, ad = pair
    assert sorted(file.name for file in (ad / "rank0").iterdir()) == [
        *("ad_net.pth", "mindtorch_api_dump", "mindtorch_api_dump_info.pkl", "mindtorch_api_dump_stack.json"),
    ]
    result = migrator.api_dump_compare(pt, ad, tmp_path / "tables")
    assert sorted(file.name for file in (tmp_path / "tables").iterdir()) == [
        *("ts_api_backward_compare_0.csv", "ts_api_forward_compare_0.csv"),  # no mapping: every call is its own partner
    ]
    head, *forward = rows(tmp_path / "tables" / "ts_api_forward_compare_0.csv")
    assert head[:2] == ["ORIGIN NET (pytorch)", "TARGET NET (mindtorch)"]
    assert head[-2:] == ["shape cmp (pt, mt)", "dtype cmp (pt, mt)"]
    names = [row[0] for row in forward if not row[0].startswith("---")]
    assert names == [row[1] for row in forward if not row[1].startswith("---")]
    assert names[:2] == ["torch.nn.Linear(0) input[0]", "torch.nn.Linear(0) output"]
    assert {"torch.Tensor.__mul__(0) input[0]", "torch.softmax(0) output"} <= set(names)
    assert [row[0].strip("-") for row in forward if "LAYER" in row[0]] == [
        *("LAYER: features.0", "LAYER: features.1", "LAYER: features", "LAYER: head"),
    ]
    assert [row.cells[0] for row in result.parameters.rows] == list(Net().state_dict())
    assert {row.cells[4] for row in result.parameters.rows} == {"True"}
    shown = capsys.readouterr().out
    assert "features.0.weight" in shown
    assert re.search(r"forward comparison results \(step 0\)", shown)
    assert "\033[" not in result.console(colour=True)  # nothing differs, nothing is red


# what 1.0.17 makes of the names of modules [recorded], and what we do
LAYERS = {
    "features_0": ("features.0", "features.0"),
    "x_12": ("x.12", "x.12"),
    "0_1": ("0.1", "0.1"),
    "head_d": ("head_d", "head_d"),
    "block2_conv": ("block2_conv", "block2_conv"),
    "a__3": ("a_.3", "a_.3"),
    "layers_0_conv1": ("layers.0_", "layers.0_conv1"),
    "layers_10_conv1": ("layers.10", "layers.10_conv1"),
    "l_1_2_3": ("l.1_", "l.1.2.3"),
}


@pytest.mark.parametrize("compat", [None, "1.0.17"])
def test_modules_have_dots_before_their_numbers_again(tmp_path, compat, capsys):
    for framework in ("torch", "mindtorch"):
        rank = tmp_path / framework / "rank0"
        rank.mkdir(parents=True)
        lines = [f'["LAYER_{name}_forward_input", 1, [], "torch.float32", [1], [0.0, 0.0, 0.0]]\n' for name in LAYERS]
        lines.append('["NN_ReLU_0_forward_output", 1, [], "torch.float32", [2], [1.0, 0.0, 0.5]]\n')
        (rank / f"{framework}_api_dump_info.pkl").write_text("".join(lines))
    migrator.api_dump_compare(tmp_path / "torch", tmp_path / "mindtorch", tmp_path / "tables", compat=compat)
    _, *table = rows(tmp_path / "tables" / "ts_api_forward_compare_0.csv")
    shown = [row[0].strip("-").removeprefix("LAYER: ") for row in table if "LAYER" in row[0]]
    assert shown == [real if compat else ours for real, ours in LAYERS.values()]


def test_what_differs_is_red_and_the_parameters_tell_why(tmp_path, capsys):
    pt, ad = dumped(tmp_path / "pt"), renamed(dumped(tmp_path / "other", seed=1), tmp_path / "ad")
    result = migrator.api_dump_compare(pt, ad, tmp_path / "tables")
    assert {row.cells[4] for row in result.parameters.rows} == {"False"}
    assert "\033[1;31m" in result.console(colour=True)
    assert "\033[" not in capsys.readouterr().out  # no terminal
    assert "\033[" not in (tmp_path / "tables" / "ts_api_forward_compare_0.csv").read_text()


class Payload:
    """Makes a file where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("kind", ["archive", "pickle", "within"])
@pytest.mark.parametrize("side", ["pt_net.pth", "ad_net.pth"])
def test_parameter_files_run_nothing(tmp_path, side, kind, capsys):
    pt = dumped(tmp_path / "pt")
    ad = renamed(pt, tmp_path / "ad")
    file = (pt if side.startswith("pt") else ad) / "rank0" / side
    file.unlink()
    payload = Payload(tmp_path / "ran")
    if kind == "pickle":
        file.write_bytes(pickle.dumps(payload))
    else:
        torch.save(payload if kind == "archive" else {"head.bias": torch.ones(2), "x": payload}, file)
    with pytest.raises(DumpsimError, match=re.escape(side)):
        migrator.api_dump_compare(pt, ad)
    assert not (tmp_path / "ran").exists()


def test_info_files_run_nothing(tmp_path):
    pt = dumped(tmp_path / "pt")
    ad = renamed(pt, tmp_path / "ad")
    info = ad / "rank0" / "mindtorch_api_dump_info.pkl"
    info.write_bytes(pickle.dumps(Payload(tmp_path / "ran")))
    with pytest.raises(ValueError, match=r"mindtorch_api_dump_info\.pkl"):
        migrator.api_dump_compare(pt, ad)
    assert not (tmp_path / "ran").exists()
