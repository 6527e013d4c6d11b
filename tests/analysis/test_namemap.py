"""Pairs of names that the user gives, and several calls for one."""

import json

import pytest

from dumpsim.analysis.apicompare import api_dump_compare, compare_api_dumps
from dumpsim.analysis.apicompare.options import Options
from dumpsim.analysis.namemap import read_names
from dumpsim.core.errors import BadInputError, ScriptValueError
from tests.apifiles import call, dump, mapping, ramp


@pytest.fixture
def own(tmp_path):
    """An operator that only its author knows, between others of the same shapes."""
    origin = [*call("Torch_exp_0", ramp(0), ramp(1)), *call("Functional_my_norm_0", ramp(1), ramp(2))]
    target = [*call("Functional_log_0", ramp(8), ramp(9)), *call("NN_RMSNorm_0", ramp(1), ramp(2))]
    return dump(tmp_path / "a", "torch", origin), dump(tmp_path / "b", "mindspore", target)


def partners(result):
    return [cells for cells in mapping(result) if all(cells)]


@pytest.mark.parametrize(
    "text",
    ['{"Functional_my_norm": "NN_RMSNorm"}', "---\n# ours\nFunctional.my_norm: NN.RMSNorm  # the same\n"],
    ids=["json", "yaml"],
)
def test_pairs_of_a_file(own, tmp_path, text):
    path = tmp_path / "names.yaml"
    path.write_text(text)
    assert read_names(path) == read_names({"Functional.my_norm": "NN.RMSNorm"})
    result, _ = compare_api_dumps(*own, Options(name_map=path))
    assert ("Functional_my_norm_0", "NN_RMSNorm_0") in partners(result)


def test_a_pair_decides_against_the_order(tmp_path):
    origin = [*call("Torch_foo_0", ramp(0), ramp(1)), *call("Torch_bar_0", ramp(1), ramp(2))]
    target = [*call("Torch_one_0", ramp(0), ramp(1)), *call("Torch_two_0", ramp(1), ramp(2))]
    paths = dump(tmp_path / "a", "torch", origin), dump(tmp_path / "b", "torch", target)
    assert ("Torch_foo_0", "Torch_two_0") not in partners(compare_api_dumps(*paths)[0])
    result, _ = compare_api_dumps(*paths, Options(name_map={"Torch_foo": "Torch_two"}))
    assert ("Torch_foo_0", "Torch_two_0") in partners(result)


@pytest.mark.parametrize("name_map", [None, {"NN_Own": ["Torch_exp", "Torch_log"]}])
def test_several_calls_for_one(tmp_path, name_map):
    whole = "NN_Own_0" if name_map else "Functional_linear_0"
    parts = ("Torch_exp_0", "Torch_log_0") if name_map else ("Torch_matmul_0", "Torch_add_0")
    before, after = call("Tensor_aa_0", ramp(0), ramp(1)), call("Tensor_bb_0", ramp(3), ramp(4))
    origin = [*before, *call(whole, ramp(1), ramp(3)), *after]
    target = [
        *call("Tensor_cc_0", ramp(5), ramp(6)),
        *call("Tensor_dd_0", ramp(6), ramp(1)),
        *call(parts[0], ramp(1), ramp(2)),
        *call(parts[1], ramp(2), ramp(3)),
        *call("Tensor_ee_0", ramp(3), ramp(4)),
    ]
    paths = dump(tmp_path / "a", "torch", origin), dump(tmp_path / "b", "torch", target)
    result = api_dump_compare(*paths, name_map=name_map)
    assert (whole, "\n".join(parts)) in mapping(result)


def test_names_that_no_call_has_are_told(own):
    result, _ = compare_api_dumps(*own, Options(name_map={"Functional_my_nrom": "NN_RMSNorm"}))
    assert result.notes[-1] == "No call in origin_path is of these APIs of name_map: Functional_my_nrom."


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"my_norm": "NN_RMSNorm"}, r"name_map: 'my_norm' is not the name of an API; allowed: NN\.<api>, "),
        ({"NN_a": 3}, "'NN_a' has 3, which is neither a name nor a list"),
        ({"NN_a": []}, "neither a name nor a list"),
        ({3: "NN_a"}, "3 is not the name of an API"),
    ],
)
def test_names_that_nobody_can_read(names, message):
    with pytest.raises(BadInputError, match=message):
        read_names(names)


def test_lines_that_nobody_can_read(tmp_path):
    path = tmp_path / "names.yaml"
    path.write_text("NN.a: NN.b\n  - NN.c\n")
    with pytest.raises(BadInputError, match=r"names\.yaml:2: '- NN\.c' is not"):
        read_names(path)
    path.write_text(json.dumps(["NN.a"])[:-1])
    with pytest.raises(BadInputError, match=r"names\.yaml:1"):
        read_names(path)
    with pytest.raises(BadInputError, match="does not exist"):
        read_names(tmp_path / "none.yaml")


def test_the_mapping_of_the_real_tool_has_its_own_names(own):
    with pytest.raises(ScriptValueError, match="name_map"):
        api_dump_compare(*own, compat="1.0.17", name_map={})
