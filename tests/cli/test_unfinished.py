"""Every command on files whose last line a killed run left unfinished: it is reported, and everything else is there."""

import json
import shutil

import numpy as np
import pytest
from apifiles import dump, linears
from binfile import item
from dumpproto import dump_file, messages

from dumpsim.analysis.apicompare import api_dump_compare
from dumpsim.analysis.msaccucmp.listing import dump_files
from dumpsim.cli import main
from dumpsim.core.errors import UnfinishedWarning, UnreadableError

HEAD = (
    "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,"
    "Max Value,Min Value,Avg Value,L2Norm Value\n"
)
ROWS = [f'Add,Default/Add-op{n},0,0,{n + 1},output,0,4,float32,"(1,)",1.25,1,1,1\n' for n in range(3)]
SAYS = "the last line is unfinished and left out"


def command(monkeypatch, capsys, *arguments):
    """Exit code, output lines, error text."""
    monkeypatch.setattr("sys.argv", ["dumpsim", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    return ended.value.code or 0, out.splitlines(), err


def statistics(root, text):
    place = root / "rank_0" / "Net" / "0" / "0"
    place.mkdir(parents=True)
    (place / "statistic.csv").write_text(text)
    return root


@pytest.fixture
def trees(tmp_path):
    """Two whole rows, and the same with every kind of half row behind them."""
    whole = statistics(tmp_path / "whole", HEAD + "".join(ROWS[:2]))
    return whole, [
        statistics(tmp_path / f"cut{at}", HEAD + "".join(ROWS[:2]) + ROWS[2][:at]) for at in range(1, len(ROWS[2]))
    ]


@pytest.mark.parametrize("words", [("ls", "--json"), ("stat", "--json"), ("show",), ("first", "--json")])
def test_commands_show_every_whole_row(monkeypatch, capsys, trees, words):
    whole, cuts = trees
    name, *flags = words
    code, lines, err = command(monkeypatch, capsys, name, whole, *flags)
    assert SAYS not in err
    for cut in cuts[:: len(cuts) // 6]:
        found = command(monkeypatch, capsys, name, cut, *flags)
        assert found[:2] == (code, lines)
        assert found[2].count(f"{cut}/rank_0/Net/0/0/statistic.csv:4: {SAYS}") == 1


def test_no_cut_of_a_row_makes_a_row(trees):
    import dumpsim

    whole, cuts = trees
    expected = [row["op_name"] for row in dumpsim.open(whole).rows()]
    for cut in cuts:
        with pytest.warns(UnfinishedWarning, match=SAYS):
            assert [row["op_name"] for row in dumpsim.open(cut).rows()] == expected


def test_a_cut_header_is_no_damage(monkeypatch, capsys, tmp_path):
    code, lines, err = command(monkeypatch, capsys, "ls", statistics(tmp_path, HEAD[:30]), "--json")
    assert (code, lines) == (1, [])
    assert f"statistic.csv:1: {SAYS}" in err


def test_a_row_in_the_middle_is_still_damage(monkeypatch, capsys, tmp_path):
    root = statistics(tmp_path, HEAD + ROWS[0] + ROWS[1][:20] + "\n" + ROWS[2])
    said = "statistic.csv:3: 3 fields for 14 columns"
    code, lines, err = command(monkeypatch, capsys, "ls", root, "--json")
    assert (code, len(lines)) == (3, 1)
    assert said in err
    code, lines, err = command(monkeypatch, capsys, "ls", root, "--paths")
    assert (code, lines) == (3, [])
    assert said in err
    code, lines, err = command(monkeypatch, capsys, "replay", root)
    assert (code, lines) == (3, [])
    assert f"not read: {root}/rank_0/Net/0/0/{said}" in err


def test_compare(monkeypatch, capsys, trees):
    whole, cuts = trees
    code, lines, err = command(monkeypatch, capsys, "compare", whole, cuts[60], "--json")
    assert code == 0, (lines, err)
    assert err.count(SAYS) == 1


def long_named(root, cut):
    """A bin file under a number, and a mapping.csv whose last line has no end."""
    place = root / "4/20231114221320/0/kernel_graph0/1/4"
    place.mkdir(parents=True)
    message = messages()["DumpData"](version="2.0", dump_time=5, op_name="Default/Add-op1")
    described = item(np.ones(4, np.float32))
    data = message.output.add(data_type=described["data_type"], format=described["format"], size=16, address=1)
    data.shape.dim.append(4)
    (place / "12345").write_bytes(dump_file(message, np.ones(4, np.float32).tobytes()))
    (place / "mapping.csv").write_text("12345,Add.Default_Add-op1.3.2.1700000000000000\n67,Mul.Default_Mul-op"[:cut])
    return root


def test_mapping_for_readers_and_convert(monkeypatch, capsys, tmp_path):
    root = long_named(tmp_path / "dump", None)
    code, lines, err = command(monkeypatch, capsys, "ls", root, "--json")
    assert (code, [json.loads(line)["op_type"] for line in lines]) == (0, ["Add"])
    assert err.count(f"mapping.csv:2: {SAYS}") == 1
    code, lines, err = command(monkeypatch, capsys, "convert", root, "--out", tmp_path / "out")
    assert (code, lines) == (0, [f"1 files, 1 results, 144 B in {tmp_path / 'out'}"])
    assert err.count(f"mapping.csv:2: {SAYS}") == 1
    assert [path.name for path in (tmp_path / "out").rglob("*.npy")] == [
        "Add.Default_Add-op1.3.2.1700000000000000.output.0.ND.float32.npy"
    ]
    place = next(root.rglob("mapping.csv")).parent
    with pytest.warns(UnfinishedWarning, match="mapping.csv:2"):
        assert list(dump_files(str(place))) == ["Default_Add-op1"]


@pytest.fixture
def api(tmp_path):
    """A whole API dump and a copy whose last line of the info file and last stack are cut."""
    stacks = {f"torch.nn.Linear({n}) forward": [f"File net.py, line {n + 1}, in f, \n x = [1]"] for n in range(2)}
    whole = dump(tmp_path / "whole", "torch", linears(0, 1), npy=True)
    stack = whole / "rank0" / "torch_api_dump_stack.json"
    stack.write_text(json.dumps(stacks, indent=4))
    shutil.copytree(whole, tmp_path / "cut")
    info = tmp_path / "cut/rank0/torch_api_dump_info.pkl"
    info.write_text(info.read_text()[:-20])
    return whole, tmp_path / "cut", stack.read_text()


def test_api_dump(monkeypatch, capsys, api):
    whole, cut, _ = api
    code, lines, err = command(monkeypatch, capsys, "ls", cut, "--json")
    assert (code, len(lines)) == (0, 3)
    assert err.count(f"torch_api_dump_info.pkl:4: {SAYS}") == 1
    with pytest.warns(UnfinishedWarning, match="info.pkl:4"):
        result = api_dump_compare(whole, cut)
    assert result.steps[0].mapping.rows


def test_a_stack_file_keeps_its_whole_entries(api):
    from dumpsim.codecs.apidump import read_stack

    _, cut, text = api
    path = cut / "rank0/torch_api_dump_stack.json"
    keys = list(read_stack(path))
    for end in range(1, len(text)):
        path.write_text(text[:end])
        with pytest.warns(UnfinishedWarning, match="stack.json"):
            found = list(read_stack(path))
        assert found == keys[: text[:end].count("\n    ]")]
    path.write_text(text + "}")
    with pytest.raises(UnreadableError, match="is not JSON"):
        read_stack(path)
