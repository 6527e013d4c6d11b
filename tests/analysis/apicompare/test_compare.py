"""api_dump_compare where it does better than the real tool, and what it refuses."""

import io
import json
import os
import stat
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumpsim import migrator
from dumpsim.analysis.apicompare import api_dump_compare, compare_api_dumps
from dumpsim.analysis.apicompare.difference import compare_arrays
from dumpsim.analysis.apicompare.options import Options
from dumpsim.analysis.apicompare.source import open_dump
from dumpsim.analysis.tolerance import Tolerance
from dumpsim.core.errors import BadInputError, DumpWriteError, ScriptTypeError, UnreadableError, UnsupportedError
from tests.apifiles import call, dump, linears, mapping, ramp


@pytest.mark.parametrize("npy", [False, True])
@pytest.mark.parametrize(
    ("kept", "expected"),
    [((0, 1, 2), "0 1 2 . ."), ((2, 3, 4), ". . 0 1 2"), ((0, 2, 4), "0 . 1 . 2"), ((1, 3), ". 0 . 1 .")],
)
def test_values_tell_equal_calls_apart(tmp_path, npy, kept, expected):
    origin = dump(tmp_path / "a", "torch", linears(*kept), npy=npy)
    target = dump(tmp_path / "b", "torch", linears(*range(5)), npy=npy)
    result, _ = compare_api_dumps(origin, target)
    partner = {}
    for one, other in mapping(result):
        for name in (other or "").split("\n"):
            partner[name] = one[-1] if one else "."
    assert [partner[f"NN_Linear_{at}"] for at in range(5)] == expected.split()
    assert result.first is None


def test_values_of_npy_files_serve_where_the_info_file_has_none(tmp_path):
    for name, seeds in (("a", (3, 4)), ("b", range(5))):
        dump(tmp_path / name, "torch", linears(*seeds), npy=True)
        info = tmp_path / name / "rank0" / "torch_api_dump_info.pkl"
        lines = [json.loads(line) for line in info.read_text().splitlines()]
        info.write_text("".join(json.dumps([*line[:5], [float("nan")] * 3]) + "\n" for line in lines))
    result, _ = compare_api_dumps(tmp_path / "a", tmp_path / "b")
    assert mapping(result)[1:] == [("NN_Linear_0", "NN_Linear_3"), ("NN_Linear_1", "NN_Linear_4")]


def test_modules_of_one_side_stand_for_no_call(tmp_path):
    layer = [("LAYER_last_forward_input", [0.0])]
    product = [
        ("Torch_matmul_0_forward_input.0", ramp(1)),
        ("Torch_matmul_0_forward_output", ramp(2)),
        ("Torch_add_0_forward_input.0", ramp(2)),
        ("Torch_add_0_forward_output", ramp(3)),
    ]
    ends = call("NN_ReLU_0", ramp(0), ramp(1)), call("NN_Sigmoid_0", ramp(3), ramp(4))
    origin = dump(tmp_path / "a", "torch", [*ends[0], *product, *layer, *ends[1]])
    dense = [("Functional_dense_0_forward_input.0", ramp(1)), ("Functional_dense_0_forward_output", ramp(3))]
    target = dump(tmp_path / "b", "mindspore", [*ends[0], *dense, *ends[1]])
    result, _ = compare_api_dumps(origin, target)
    assert mapping(result) == [
        ("NN_ReLU_0", "NN_ReLU_0"),
        ("Torch_matmul_0\nTorch_add_0", "Functional_dense_0"),
        ("LAYER_last", ""),
        ("NN_Sigmoid_0", "NN_Sigmoid_0"),
    ]
    assert result.first is None


def test_the_gradient_of_a_sum_meets_that_of_the_layer(tmp_path):
    forward = [*call("Torch_matmul_0", ramp(1), ramp(2)), *call("Torch_add_0", ramp(2), ramp(3))]
    grads = [("Torch_add_0_backward_input", ramp(8)), ("Torch_matmul_0_backward_input", ramp(9))]
    origin = dump(tmp_path / "a", "torch", forward + grads)
    one = [*call("Functional_linear_0", ramp(1), ramp(3)), ("Functional_linear_0_backward_input", ramp(8))]
    result, _ = compare_api_dumps(origin, dump(tmp_path / "b", "torch", one))
    rows = [row.cells[:2] for row in result.steps[0].backward.rows]
    assert ("Torch_add_0_backward_input", "Functional_linear_0_backward_input") in rows


def test_the_last_step_needs_no_backward(tmp_path):
    records = []
    for at in range(3):
        records += call(f"NN_Linear_{at}", ramp(at), ramp(at + 1))
        records += [(f"NN_Linear_{at}_backward_input", ramp(at))] * (at < 2)
    origin = dump(tmp_path / "a", "torch", records)
    result, _ = compare_api_dumps(origin, origin)
    assert [mapping(result, step) for step in range(3)] == [[(f"NN_Linear_{at}",) * 2] for at in range(3)]
    assert [step.backward is not None for step in result.steps] == [True, True, False]


def test_different_counts_of_steps_are_told(tmp_path, caplog):
    step = [*call("NN_Linear_0", ramp(0), ramp(1)), ("NN_Linear_0_backward_input", ramp(2))]
    later = call("NN_Linear_1", ramp(0), ramp(1))
    origin = dump(tmp_path / "a", "torch", step)
    result = api_dump_compare(origin, dump(tmp_path / "b", "torch", step + later))
    assert len(result.steps) == 1
    assert "There are 1 steps in origin_path, and 2 steps in target_path." in caplog.text


def test_first_divergence_names_the_line(tmp_path):
    good = [*call("NN_ReLU_0", ramp(0), ramp(1)), *call("NN_Linear_0", ramp(1), ramp(2))]
    bad = [*good[:3], (good[3][0], ramp(2) + 1)]
    origin = dump(
        tmp_path / "a",
        "torch",
        good,
        npy=True,
        stacks={"torch.nn.Linear(0) forward": ["File net.py, line 7, in f, \n y"]},
    )
    target = dump(
        tmp_path / "b",
        "torch",
        bad,
        npy=True,
        stacks={"NN_Linear_0_forward_stack_info": ["File ms.py, line 9, in g, \n z"]},
    )
    first = api_dump_compare(origin, target).first
    assert (first.step, first.direction, first.origin, first.cause) == (
        0,
        "forward",
        "NN_Linear_0_forward_output",
        "operator",
    )
    assert str(first).splitlines()[1:] == [
        "  origin: File net.py, line 7, in f, y",
        "  target: File ms.py, line 9, in g, z",
    ]


def test_a_gradient_is_made_by_the_backward_before_it(tmp_path):
    """Two gradients flow into the split, the second one is wrong; the product made both."""

    def step(wrong, extra=()):
        forward = [*call("Torch_split_0", ramp(0), ramp(1)), *call("Torch_matmul_0", ramp(1), ramp(2))]
        forward += call("Torch_sum_0", ramp(2), ramp(3))
        back = [("Torch_sum_0_backward_input", ramp(3)), ("Torch_matmul_0_backward_input", ramp(4)), *extra]
        return [*forward, *back, ("Torch_split_0_backward_input.0", ramp(5)), ("Torch_split_0_backward_input.1", wrong)]

    stacks = {"torch.matmul(0) forward": ["File net.py, line 7, in f, \n y"]}
    origin = dump(tmp_path / "a", "torch", step(ramp(6)), npy=True, stacks=stacks)
    first = api_dump_compare(origin, dump(tmp_path / "b", "torch", step(ramp(7)), npy=True)).first
    assert (first.origin, first.cause, first.maker) == ("Torch_split_0_backward_input.1", "gradient", "Torch_matmul_0")
    assert first.origin_stack == tuple(stacks["torch.matmul(0) forward"])
    assert "(a gradient that the backward of Torch_matmul_0 made)" in str(first)


def test_a_result_that_differs_is_no_gradient_that_its_reader_made(tmp_path):
    def step(result):
        return [*call("NN_ReLU_0", ramp(0), result), *call("NN_Sigmoid_0", result, ramp(2))]

    origin = dump(tmp_path / "a", "torch", step(ramp(1)), npy=True)
    first = api_dump_compare(origin, dump(tmp_path / "b", "torch", step(ramp(5)), npy=True)).first
    assert (first.origin, first.cause, first.maker) == ("NN_ReLU_0_forward_output", "operator", "")


def test_tables_name_the_extra_that_they_need(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    one = dump(tmp_path, "torch", call("NN_ReLU_0", ramp(0), ramp(1)))
    result = api_dump_compare(one, one)
    for table in (result, result.steps[0].mapping):
        with pytest.raises(UnsupportedError, match=r"dumpsim\[report\]"):
            table.to_pandas()


@pytest.mark.parametrize(("rtol", "passes"), [(1e-4, False), (0.1, True)])
def test_statistics_have_a_verdict_too(tmp_path, rtol, passes):
    origin = dump(tmp_path / "a", "torch", call("NN_ReLU_0", ramp(0), ramp(1)))
    target = dump(tmp_path / "b", "torch", call("NN_ReLU_0", ramp(0), ramp(1) * 1.01))
    assert api_dump_compare(origin, target, rtol=rtol).passes is passes


@pytest.mark.parametrize("ours", [False, True])
@pytest.mark.parametrize("theirs", [False, True])
def test_arrays_are_compared_where_both_dumps_have_them(tmp_path, ours, theirs):
    origin = dump(tmp_path / "a", "torch", call("NN_ReLU_0", ramp(0), ramp(1)), npy=ours)
    target = dump(tmp_path / "b", "torch", call("NN_ReLU_0", ramp(0), ramp(1)), npy=theirs)
    result, _ = compare_api_dumps(origin, target)
    assert (result.directories is not None) == (ours and theirs)
    assert ("npy files not found, use pkl files to compare." in result.notes) == (not (ours and theirs))
    assert result.passes


def test_info_files_of_1_0_18_and_other_ranks(tmp_path):
    records = call("NN_ReLU_0", ramp(0), ramp(1))
    newer = dump(tmp_path / "a", "torch", records, suffix="csv", rank="rank3", extra=([], 1.5))
    older = dump(tmp_path / "b", "torch", records)
    assert mapping(api_dump_compare(newer, older)) == [("NN_ReLU_0", "NN_ReLU_0")]
    assert mapping(api_dump_compare(newer / "rank3", older)) == [("NN_ReLU_0", "NN_ReLU_0")]


def test_ranks_that_are_not_compared_are_told(tmp_path):
    for rank in ("rank0", "rank1", "rank2"):
        dump(tmp_path / "a", "torch", call("NN_ReLU_0", ramp(0), ramp(1)), rank=rank)
    alone = dump(tmp_path / "b", "torch", call("NN_ReLU_0", ramp(0), ramp(1)))
    notes = api_dump_compare(tmp_path / "a", alone).notes
    expected = f"Only {tmp_path / 'a' / 'rank0'} is compared, not rank1, rank2 beside it"
    assert len([note for note in notes if note.startswith(expected)]) == 1
    chosen = api_dump_compare(tmp_path / "a" / "rank1", alone).notes
    exact = api_dump_compare(tmp_path / "a", alone, compat="1.0.17").notes
    assert not [note for note in (*chosen, *exact) if note.startswith("Only")]


def test_a_directory_of_two_frameworks_says_whose_dump_is_compared(tmp_path):
    both = dump(tmp_path / "a", "torch", call("NN_ReLU_0", ramp(0), ramp(1)))
    other = dump(tmp_path / "b", "mindspore", call("NN_ReLU_0", ramp(0), ramp(1)))
    for path in (other / "rank0").iterdir():
        path.rename(both / "rank0" / path.name)
    rank = both / "rank0"
    result = api_dump_compare(both, both)
    assert result.notes.count(f"{rank} holds dumps of mindspore, torch; that of mindspore is compared.") == 2


def test_several_ranks_want_a_choice(tmp_path):
    for rank in ("rank1", "rank2"):
        dump(tmp_path / "a", "torch", call("NN_ReLU_0", ramp(0), ramp(1)), rank=rank)
    with pytest.raises(BadInputError, match=r"several ranks.*rank1.*rank2"):
        api_dump_compare(tmp_path / "a", tmp_path / "a")


@pytest.mark.parametrize("bad", ["origin_path", "target_path"])
def test_a_path_without_dump(tmp_path, bad):
    good = dump(tmp_path / "a", "torch", call("NN_ReLU_0", ramp(0), ramp(1)))
    paths = {"origin_path": good, "target_path": good, bad: tmp_path / "none"}
    with pytest.raises(ValueError, match=f"^{bad} is not a valid dump path"):
        api_dump_compare(**paths)


@pytest.mark.parametrize(
    ("argument", "value", "text"),
    [
        ("rtol", 1, "The parameter 'rtol' must be <class 'float'>"),
        ("atol", "x", "The parameter 'atol' must be <class 'float'>"),
        ("equal_nan", "x", "The parameter 'equal_nan' must be <class 'bool'>"),
        ("ignore_unmatched", 1, "The parameter 'ignore_unmatched' must be <class 'bool'>"),
    ],
)
def test_types_of_arguments(tmp_path, argument, value, text):
    origin = dump(tmp_path / "a", "torch", call("NN_ReLU_0", ramp(0), ramp(1)))
    with pytest.raises(ScriptTypeError) as error:
        api_dump_compare(origin, origin, **{argument: value})
    assert str(error.value) == text
    api_dump_compare(origin, origin, **{argument: 0})  # what is false passes, as in the real tool


def test_a_damaged_line_is_named(tmp_path):
    origin = dump(tmp_path / "a", "torch", call("NN_ReLU_0", ramp(0), ramp(1)))
    info = origin / "rank0" / "torch_api_dump_info.pkl"
    info.write_text(info.read_text() + "cos\nsystem\n")
    with pytest.raises(UnreadableError, match=r"torch_api_dump_info\.pkl:3"):
        api_dump_compare(origin, origin)


def test_an_empty_dump_has_no_steps(tmp_path, capsys):
    origin = dump(tmp_path / "a", "torch", [])
    assert api_dump_compare(origin, origin, tmp_path / "out").steps == ()
    assert capsys.readouterr().out == ""


def test_files_are_private_and_replaced_whole(tmp_path):
    origin = dump(tmp_path / "a", "torch", call("NN_ReLU_0", ramp(0), ramp(1)))
    out = tmp_path / "deep" / "out"
    out.mkdir(parents=True)
    (out / "ts_api_mapping_0.csv").write_text("x" * 10000)
    api_dump_compare(origin, origin, out)
    assert (out / "ts_api_mapping_0.csv").read_text().endswith('"NN_ReLU_0","NN_ReLU_0"\n\n')
    assert stat.S_IMODE((out / "ts_api_forward_compare_0.csv").stat().st_mode) == 0o600
    assert sorted(os.listdir(out)) == ["ts_api_forward_compare_0.csv", "ts_api_mapping_0.csv"]


def test_tables_that_cannot_be_written(tmp_path):
    origin = dump(tmp_path / "a", "torch", call("NN_ReLU_0", ramp(0), ramp(1)))
    (tmp_path / "file").write_text("")
    with pytest.raises(DumpWriteError):
        api_dump_compare(origin, origin, tmp_path / "file")


def test_unequal_shapes_of_files_are_told(tmp_path):
    origin = dump(tmp_path / "a", "torch", call("NN_ReLU_0", ramp(0), ramp(1)), npy=True)
    target = dump(tmp_path / "b", "torch", call("NN_ReLU_0", ramp(0), ramp(1)), npy=True)
    np.save(target / "rank0" / "torch_api_dump" / "NN_ReLU_0_forward_output.npy", np.zeros(3, np.float32))
    result = api_dump_compare(origin, target)
    assert result.steps[0].forward.rows[1].cells[4:] == ("Shape is inconsistent",) * 4
    assert not result.passes


def test_halves_are_compared_in_float32(tmp_path):
    for name, value in (("a", 60000), ("b", 60032)):
        dump(tmp_path / name, "torch", call("NN_ReLU_0", [0.0], [0.0]), npy=True)
        path = tmp_path / name / "rank0" / "torch_api_dump" / "NN_ReLU_0_forward_output.npy"
        np.save(path, np.full(1, value, np.float16))
    row = api_dump_compare(tmp_path / "a", tmp_path / "b").steps[0].forward.rows[1]
    assert row.cells[-1] == "32.00000, 32.00000"


@pytest.mark.report
def test_pandas(tmp_path):
    origin = dump(tmp_path / "a", "torch", [*linears(0, 1), ("NN_Linear_1_backward_input", ramp(1))])
    frame = api_dump_compare(origin, origin).to_pandas()
    assert list(frame["direction"]) == ["forward"] * 4 + ["backward"]
    assert set(frame["max, min, mean diffs"]) == {"0.00000, 0.00000, 0.00000"}


@pytest.mark.report
def test_the_frame_is_the_rows_of_all_steps(tmp_path):
    step = [*linears(0), ("NN_Linear_0_backward_input", ramp(1))]
    origin = dump(tmp_path / "a", "torch", [*step, *step])
    target = dump(tmp_path / "b", "torch", [*step, *step[:2]])
    result, _ = compare_api_dumps(origin, target)
    frame = result.to_pandas()
    tables = [
        (step.step, direction, table)
        for step in result.steps
        for direction, table in (("forward", step.forward), ("backward", step.backward))
        if table is not None
    ]
    assert [(step, direction, len(table.rows)) for step, direction, table in tables] == [
        (0, "forward", 2), (0, "backward", 1), (1, "forward", 2), (1, "backward", 1)
    ]  # fmt: skip
    assert list(frame.columns) == ["step", "direction", *tables[0][2].header]
    assert frame.to_numpy().tolist() == [
        [step, direction, *row.cells] for step, direction, table in tables for row in table.rows
    ]
    assert list(frame.index) == list(range(6))
    nothing, _ = compare_api_dumps(dump(tmp_path / "c", "torch", []), origin)
    assert nothing.to_pandas().columns.tolist() == ["step", "direction"]


def test_public_door(tmp_path, capsys):
    origin = dump(tmp_path / "a", "torch", linears(0))
    assert migrator.api_dump_compare(str(origin), str(origin), str(tmp_path / "out")).passes
    assert "The forward comparison results (step 0)" in capsys.readouterr().out
    assert (tmp_path / "out" / "ts_api_forward_compare_0.csv").exists()


def test_nested_sequences(tmp_path):
    records = [("Torch_x_0_forward_input.0.1.2", ramp(0)), ("Torch_x_0_forward_output.1.0.1", ramp(1))]
    origin = dump(tmp_path / "a", "torch", records)
    assert len(api_dump_compare(origin, origin).steps[0].forward) == 2


def test_text_of_a_result(tmp_path, capsys, caplog):
    origin = dump(tmp_path / "a", "torch", call("NN_ReLU_0", ramp(0), ramp(1)))
    target = dump(tmp_path / "b", "torch", call("NN_ReLU_0", ramp(0), ramp(2)))
    result = api_dump_compare(origin, target)
    shown = capsys.readouterr().out
    assert shown.splitlines()[-1].startswith("First divergence (step 0, forward): NN_ReLU_0_forward_output differs")
    assert caplog.messages == ["[*User Warning*] npy files not found, use pkl files to compare."]
    assert str(result) == "npy files not found, use pkl files to compare.\n" + shown.rstrip("\n")
    assert result.to_csv(tmp_path / "out") == [
        tmp_path / "out" / f"ts_api_{name}_0.csv" for name in ("mapping", "forward_compare")
    ]


NAME = "NN_ReLU_0_forward_output"


@pytest.fixture
def pair(tmp_path):
    """Two equal dumps with files, and the file of an output of the second."""
    records = call("NN_ReLU_0", ramp(0), ramp(1))
    paths = [dump(tmp_path / side, "torch", records, npy=True) for side in "ab"]
    return *paths, paths[1] / "rank0" / "torch_api_dump" / f"{NAME}.npy"


def _directory(path):
    path.unlink()
    path.mkdir()


def _pipe(path):
    path.unlink()
    os.mkfifo(path)


def _dangling(path):
    path.unlink()
    path.symlink_to("nowhere")


@pytest.mark.parametrize("spoil", [Path.unlink, _directory, _pipe, _dangling])
def test_records_without_a_file_are_told(pair, spoil):
    origin, target, path = pair
    spoil(path)
    result = api_dump_compare(origin, target)
    expected = f"1 records in {target / 'rank0'} have no npy file, and are not compared; the first is {NAME}."
    assert result.notes == (expected,)
    assert result.steps[0].forward.rows[1].cells[4:] == ("False", "0.00%", "nan", "nan, nan")


HEADER = b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999,), }".ljust(117) + b"\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "npy magic"),
        (
            b"\x93NUMPY\x01\x00" + len(HEADER).to_bytes(2, "little") + HEADER,
            "399999999999996 bytes, but 0 follow the header",
        ),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{", "header length 4294967295"),
        (b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + HEADER.replace(b"<f4", b"|O "), "not a number type"),
    ],
    ids=["empty", "giant shape", "giant header", "pickled"],
)
def test_files_that_are_no_arrays_are_named(pair, content, message):
    origin, target, path = pair
    path.write_bytes(content)
    with pytest.raises(UnreadableError, match=message) as error:
        api_dump_compare(origin, target)
    assert error.value.where.startswith(str(path))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"\x80\x04\x95", "is not JSON"),
        (b"[" * 100000, "is not JSON"),
        (b'["hello", 1, [], "torch.float32", [2], [1, 2, 3]]', "'hello' is not the name of a record"),
        (b'["NN_a_0_forward_input", 1, [], "torch.float32", [2], [null, 2, 3]]', "None is not a statistic"),
        (b'["NN_a_0_forward_input", 1, [], "torch.float32", [2], [' + b"9" * 400 + b", 2, 3]]", "a statistic of 1329"),
        (
            b'["NN_\\ud800_0_forward_input", 1, [], "torch.float32", [2], [1, 2, 3]]',
            "has characters that are not printable",
        ),
        (
            b'["NN_\\u001b[31m_0_forward_input", 1, [], "torch.float32", [2], [1, 2, 3]]',
            "has characters that are not printable",
        ),
    ],
)
def test_lines_that_are_no_records_are_named(pair, line, message):
    origin, target, _ = pair
    info = target / "rank0" / "torch_api_dump_info.pkl"
    info.write_bytes(line + b"\n")
    with pytest.raises(UnreadableError, match=message) as error:
        api_dump_compare(origin, target)
    assert error.value.where.startswith(str(info))


def test_a_damaged_stack_file_costs_the_stack_alone(pair):
    origin, target, path = pair
    np.save(path, ramp(5))
    (target / "rank0" / "torch_api_dump_stack.json").write_text("{bad}")
    result = api_dump_compare(origin, target)
    assert (result.first.origin, result.first.target_stack) == (NAME, ())
    assert "torch_api_dump_stack.json:1: is not JSON" in result.notes[0]


def test_only_a_root_may_be_a_link(pair, tmp_path):
    origin, target, _ = pair
    (tmp_path / "c").symlink_to(target)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "rank0").symlink_to(target / "rank0")
    assert api_dump_compare(origin, tmp_path / "c").passes
    assert api_dump_compare(origin, tmp_path / "d" / "rank0").passes
    with pytest.raises(UnreadableError, match=r"d/rank0: is a link; links in a dump are not followed"):
        api_dump_compare(origin, tmp_path / "d")


def test_files_of_one_side_alone(pair, tmp_path):
    origin, _, _ = pair
    target = dump(tmp_path / "c", "torch", call("NN_ReLU_0", ramp(0), ramp(1)))
    result = api_dump_compare(origin, target)
    assert result.notes == ("npy files not found, use pkl files to compare.",)
    assert result.passes


def test_equal_values_of_other_types_agree(pair):
    origin, target, path = pair
    np.save(path, ramp(1).astype(np.float64))
    row = api_dump_compare(origin, target).steps[0].forward.rows[1]
    assert row.cells[4:] == ("True", "100.00%", "1.00000", "0.00000, 0.00000")


def test_nothing_left_to_show_is_no_table(tmp_path):
    origin = dump(tmp_path / "a", "torch", call("NN_ReLU_0", [1.0], [2.0]))
    target = dump(tmp_path / "b", "torch", call("Torch_add_0", [[1.0, 2.0]], [[3.0, 4.0]]))
    result = api_dump_compare(origin, target, tmp_path / "out", ignore_unmatched=True)
    assert result.steps[0].forward is None
    assert sorted(os.listdir(tmp_path / "out")) == ["ts_api_mapping_0.csv"]


def test_directories_are_said_once_a_table(pair, caplog):
    origin, target, _ = pair
    result = api_dump_compare(origin, target)
    directories = tuple(str(side / "rank0" / "torch_api_dump") for side in (origin, target))
    assert result.directories == directories
    told = "[*User Attention*] The compare directory information:\n The orig dir: {} \n The target dir: {}"
    assert caplog.messages == [told.format(*directories)]


def test_complex_arrays_have_no_greatest(tmp_path):
    sides = [tmp_path / "a", tmp_path / "b"]
    for side, calls in zip(sides, (linears(0, 1), linears(0)), strict=True):
        dump(side, "torch", calls, npy=True)
        info = side / "rank0" / "torch_api_dump_info.pkl"
        lines = [json.loads(line) for line in info.read_text().splitlines()]
        info.write_text("".join(json.dumps([*line[:5], [float("nan")] * 3]) + "\n" for line in lines))
        for path in (side / "rank0" / "torch_api_dump").iterdir():
            np.save(path, np.load(path) * (1 + 1j))
    assert api_dump_compare(*sides).passes


@settings(deadline=None, max_examples=200)
@given(st.floats(width=32), st.floats(width=32), st.sampled_from([0.0, 1e-4, 0.5]), st.sampled_from([0.0, 1e-4, 2.0]))
def test_close_numbers_are_numpys(origin, target, rtol, atol):
    one, other = (np.array([value], np.float32) for value in (origin, target))
    for exact in (False, True):
        found = compare_arrays(one, other, Tolerance(rtol=rtol, atol=atol), equal_nan=True, exact=exact)
        kind = np.float32 if exact else np.float64
        with np.errstate(all="ignore"):
            close = np.isclose(one.astype(kind), other.astype(kind), rtol=rtol, atol=atol, equal_nan=True)
        assert found.outcome.agrees == bool(close[0])


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_sees_a_bar_and_a_file_none(pair, monkeypatch):
    origin, target, _ = pair
    monkeypatch.setenv("TERM", "xterm")
    shown = []
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr("sys.stderr", stream)
        api_dump_compare(origin, target)
        shown.append(stream.getvalue())
    assert "comparing" in shown[0]
    assert "100%" in shown[0]
    assert shown[0].endswith("\x1b[1A\x1b[2K")  # and at the end it is wiped off
    assert shown[1] == ""


MARKED = [
    # arrays of both sides -> ratio, cosine, means, maxima, minima, shapes, types, and the columns that are marked
    (([1, 2], [1, 2]), "100.00% 1.00000 1.50000,1.50000 2.00000,2.00000 1.00000,1.00000 (2,) float32", ()),
    (([1, 2], [1, 3]), "50.00% 0.98994 1.50000,2.00000 2.00000,3.00000 1.00000,1.00000 (2,) float32", (2, 4, 5)),
    (([3, 4], [4, -3]), "0.00% 0.00000 3.50000,0.50000 4.00000,4.00000 3.00000,-3.00000 (2,) float32", (2, 3, 4, 6)),
    (([100], [104]), "0.00% 1.00000 100.00000,104.00000 100.00000,104.00000 100.00000,104.00000 (1,) float32", (2,)),
    (([95], [100]), "0.00% 1.00000 95.00000,100.00000 95.00000,100.00000 95.00000,100.00000 (1,) float32", (2,)),
    (([94], [100]), "0.00% 1.00000 94.00000,100.00000 94.00000,100.00000 94.00000,100.00000 (1,) float32",
     (2, 4, 5, 6)),
    # 19 / 20, since 19 ** 2 + 6 ** 2 + 3 is 20 ** 2
    ((np.float64([1, 0, 0, 0, 0]), np.float64([19, 6, 1, 1, 1])),
     "0.00% 0.95000 0.20000,5.60000 1.00000,19.00000 0.00000,1.00000 (5,) float64", (2, 4, 5, 6)),
    (([1] * 19 + [2], [1] * 20), "95.00% 0.97913 1.04999,1.00000 2.00000,1.00000 1.00000,1.00000 (20,) float32", (5,)),
    (([1] * 18 + [2], [1] * 19), "94.73% 0.97823 1.05263,1.00000 2.00000,1.00000 1.00000,1.00000 (19,) float32",
     (2, 4, 5)),
    (([np.inf, 1], [np.inf, 1]), "100.00% 1.00000 inf,inf inf,inf 1.00000,1.00000 (2,) float32", ()),
    (([np.inf, 1], [1, 1]), "50.00% nan inf,1.00000 inf,1.00000 1.00000,1.00000 (2,) float32", (2, 4, 5)),
    (([1, 1], [np.inf, 1]), "50.00% nan 1.00000,inf 1.00000,inf 1.00000,1.00000 (2,) float32", (2, 4, 5)),
    (([np.inf, 1], [-np.inf, 1]), "50.00% nan inf,-inf inf,1.00000 1.00000,-inf (2,) float32", (2, 4, 5, 6)),
    (([np.nan, 1], [1, 1]), "50.00% nan nan,1.00000 nan,1.00000 nan,1.00000 (2,) float32", (2,)),
    (([1, 2], np.array([1, 2])), "100.00% 1.00000 1.50000,1.50000 2.00000,2.00000 1.00000,1.00000 (2,) "
     "float32,int64", (8,)),
    (([1, 2], [1, 2, 3]), "Shape is inconsistent|" * 5 + "(2,),(3,) float32", (7,)),
    (([1, 2], np.array([[1.0]])), "Shape is inconsistent|" * 5 + "(2,),(1,1) float32,float64", (7, 8)),
    (([1, 2], None), "0.00% nan nan,nan nan,nan nan,nan (2,) float32,None", (2, 8)),
]  # fmt: skip


@pytest.mark.parametrize(("arrays", "cells", "marked"), MARKED)
def test_rows_of_mindtorch_mark_what_is_suspicious(tmp_path, arrays, cells, marked):
    """Below 95 % of a ratio or a cosine, and above 5 % of a mean, a maximum or a minimum. [spec api_dump 2.4]"""
    name = "NN_ReLU_0_forward_output"
    for side, framework, array in zip("ab", ("torch", "mindtorch"), arrays, strict=True):
        root = dump(tmp_path / side, framework, call("NN_ReLU_0", [1.0, 2.0], [1.0, 2.0]), npy=True)
        path = root / "rank0" / f"{framework}_api_dump" / f"{name}.npy"
        path.unlink()
        if array is not None:
            np.save(path, np.asarray(array, None if isinstance(array, np.ndarray) else np.float32))
    result, _ = compare_api_dumps(tmp_path / "a", tmp_path / "b")
    rows = result.steps[0].forward.rows
    row = next(row for row in rows if "output" in str(row.cells[0]))
    words = [word for part in cells.split("|")[:-1] for word in [part]] + cells.split("|")[-1].split()
    assert [str(cell).replace(", ", ",") for cell in row.cells[2:]] == [word.replace(", ", ",") for word in words]
    assert sorted(row.marked) == list(marked)


def test_the_first_gradient_names_the_loss_that_made_it(tmp_path):
    """The loss is a number, whose gradient is not dumped; it reads what the layer made."""
    sides = []
    for name, scale in (("a", 1.0), ("b", 4.0)):
        records = [
            *call("NN_Linear_0", ramp(0), ramp(1)),
            ("NN_MSELoss_0_forward_input.0", ramp(1)),
            ("NN_Linear_0_backward_input", ramp(2) * scale),
        ]
        sides.append(dump(tmp_path / name, "torch", records, npy=True))
    first = compare_api_dumps(*sides)[0].first
    assert (first.origin, first.cause, first.maker) == ("NN_Linear_0_backward_input", "gradient", "NN_MSELoss_0")


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("lost", "maker"), [(None, "NN_ReLU_0"), ("Torch_add_0", "Torch_add_0"), ("NN_ReLU_0", "NN_ReLU_0")]
)
def test_of_several_readers_one_with_a_gradient_in_one_dump_alone_made_it_or_one_that_changes_it(
    tmp_path, lost, maker, turned
):
    """A sum passes its gradient on."""
    readers = ["Torch_add_0", "NN_ReLU_0"][:: -1 if turned else 1]
    sides = []
    for name, scale in (("a", 1.0), ("b", 4.0)):
        records = call("NN_Linear_0", ramp(0), ramp(1))
        for at, reader in enumerate(readers):
            records += call(reader, ramp(1), ramp(2 + at))
        records += call("Torch_cat_0", ramp(3), ramp(4))
        records += [("Torch_cat_0_backward_input", ramp(6))]
        records += [(f"{reader}_backward_input", ramp(7)) for reader in readers if (reader, name) != (lost, "b")]
        records += [("NN_Linear_0_backward_input", ramp(5) * scale)]
        sides.append(dump(tmp_path / name, "torch", records, npy=True))
    first = compare_api_dumps(*sides)[0].first
    assert (first.origin, first.cause, first.maker) == ("NN_Linear_0_backward_input", "gradient", maker)


@pytest.mark.parametrize("lost", ["", "a", "b", "ab"])
@pytest.mark.parametrize(
    ("framework", "compat", "needed"),
    [("torch", None, True), ("torch", "1.0.17", True), ("mindtorch", None, True), ("mindtorch", "1.0.17", False)],
)
def test_without_files_the_values_of_both_info_files_are_compared(tmp_path, framework, compat, needed, lost):
    for name in "ab":
        dump(tmp_path / name, framework, linears(0))
        info = tmp_path / name / "rank0" / f"{framework}_api_dump_info.pkl"
        lines = [json.loads(line) for line in info.read_text().splitlines()]
        values = [float("nan")] * 3 if name in lost else lines[0][5]
        info.write_text("".join(json.dumps([*line[:5], values]) + "\n" for line in lines))
    result, _ = compare_api_dumps(tmp_path / "a", tmp_path / "b", Options(compat=compat))
    known = not lost or not needed
    said = ["npy files not found, use pkl files to compare."]
    assert list(result.notes) == said + ([] if known else ["all the data in the pkl files are nan."])
    assert (result.steps[0].forward is not None) is known


def test_the_text_of_a_comparison_in_a_session_has_no_rows(tmp_path):
    result, _ = compare_api_dumps(*(dump(tmp_path / name, "torch", linears(0)) for name in "ab"))
    assert "Finding(" not in repr(result)
    assert "Row(" not in repr(result)
    assert "Call(" not in repr(result)
    assert "Step(" not in repr(open_dump(tmp_path / "a"))
