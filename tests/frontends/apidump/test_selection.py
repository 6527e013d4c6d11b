"""Which calls a start selects, and the arguments that it refuses. [spec api_dump 1.9, 1.10]"""

import pytest

from dumpsim.frontends.apidump.selection import DUMP_TYPES, MODES, Memory, Request, Selection

CALLS = ["NN_Linear_0", "LAYER_head_d", "Torch_relu_0", "NN_Linear_1", "Torch_relu_1", "NN_Linear_0", "Tensor_add__2"]
GIVEN = {"mode": "all", "scope": None, "dump_type": "all", "filter_data": True, "filter_stack": True}


def request(**given):
    return Request.checked(**{**GIVEN, **given})


def taken(calls=CALLS, *, exact=False, memory=None, **given):
    """Positions of the calls that are taken, in order."""
    selection = Selection(request(**given), exact=exact, memory=memory)
    return [at for at, name in enumerate(calls) if selection.takes(name)]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("remembers", [False, True])
@pytest.mark.parametrize(
    ("mode", "scope", "wanted"),
    [
        ("all", None, [0, 1, 2, 3, 4, 5, 6]),
        ("all", [], [0, 1, 2, 3, 4, 5, 6]),
        ("list", ["NN_Linear_0", "Torch_relu_1"], [0, 4, 5]),
        ("list", ["nn_linear_0"], []),
        ("range", ["Torch_relu_0", "Torch_relu_1"], [2, 3, 4]),
        ("range", ["NN_Linear_0", "Torch_relu_0"], [0, 1, 2, 5]),
        ("range", ["Torch_relu_1", "Torch_relu_0"], [2, 4]),  # ended before it began
        ("range", ["NN_Linear_7", "Torch_relu_0"], [2]),
        ("api_list", ["RELU"], [2, 4]),
        ("api_list", ["relu", "near_0"], [0, 2, 4, 5]),
        ("api_list", ["missing"], []),
    ],
)
def test_calls_by_mode(mode, scope, wanted, exact, remembers):
    assert taken(mode=mode, scope=scope, exact=exact, memory=Memory() if remembers else None) == wanted


def test_the_real_tool_compares_names_without_their_last_letters():
    """Defect 10: letters of ``_forward`` are stripped from the end, as of LAYER_head_d."""
    for word, found, exactly in (("head", [1], []), ("layer_he", [1], [1]), ("add__2", [6], [6])):
        assert taken(mode="api_list", scope=[word]) == found
        assert taken(mode="api_list", scope=[word], exact=True) == exactly
    assert taken(mode="list", scope=["LAYER_head_0"], exact=True) == []


def test_the_real_tool_keeps_answers_and_ranges_between_starts():
    """Defects 1 and 2."""
    memory = Memory()
    assert taken(mode="list", scope=["NN_Linear_0"], memory=memory) == [0, 5]
    assert taken(mode="list", scope=["Torch_relu_0"], memory=memory) == [0, 5]
    assert taken(mode="api_list", scope=["relu"], memory=memory) == [2, 4]
    assert taken(mode="api_list", scope=["linear"], memory=memory) == [2, 4]
    assert taken(mode="range", scope=["NN_Linear_0", "Torch_relu_0"], memory=memory) == [0, 1, 2, 5]
    assert taken(mode="range", scope=["LAYER_head_0", "NN_Linear_1"], memory=memory) == [3]  # only an end
    assert taken(mode="list", scope=["Torch_relu_0"]) == [2]


@pytest.mark.parametrize(("others", "kept"), [(127, True), (128, False)])
def test_the_last_128_answers_are_kept(others, kept):
    memory = Memory()
    assert taken(["x_0"], mode="list", scope=["x_0"], memory=memory) == [0]
    taken([f"n_{at}" for at in range(others)], mode="list", scope=["x_0"], memory=memory)
    assert taken(["x_0"], mode="list", scope=["y_0"], memory=memory) == [0] * kept
    if kept:  # asking counts as a use
        taken([f"m_{at}" for at in range(127)], mode="list", scope=["x_0"], memory=memory)
        assert taken(["x_0"], mode="list", scope=["y_0"], memory=memory) == [0]


def test_requests():
    assert request() == Request()
    kinds = {kind: (request(dump_type=kind).npy, request(dump_type=kind).statistics) for kind in DUMP_TYPES}
    assert kinds == {
        "all": (True, True), "statistics": (False, True), "npy": (True, False), "stack": (False, False),
    }  # fmt: skip
    assert request(mode="list", scope=["a_0"]).scope == ("a_0",)
    for falsy in (None, 0, "", []):
        made = request(filter_data=falsy, filter_stack=falsy, scope=falsy)
        assert (made.filter_data, made.filter_stack, made.scope) == (False, False, ())


START = "For 'api_dump_start',  current mode is '{}', 'scope' param set invalid, "


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"mode": "some"}, ValueError, f"For parameter 'mode', value 'some' is illegal. Valid values are {set(MODES)}"),
        ({"mode": []}, TypeError, "unhashable type: 'list'"),
        ({"scope": ["a_0"]}, ValueError, "For 'api_dump_start',  when mode is 'all', the 'scope' muse be None, but "
                                         "currently it is '['a_0']'."),
        ({"scope": "a_0"}, TypeError, "The parameter 'scope' must be <class 'list'>"),
        ({"filter_data": 1}, TypeError, "The parameter 'filter_data' must be <class 'bool'>"),
        ({"mode": "list"}, TypeError, "object of type 'NoneType' has no len()"),
        ({"mode": "list", "scope": []}, ValueError, START.format("list") + "it's should not be an empty list."),
        ({"mode": "api_list", "scope": []}, ValueError, START.format("api_list") + "it's should not be an empty list."),
        ({"mode": "range", "scope": ["a_0"]}, ValueError, START.format("range") + "it's must be [start, end]."),
        ({"mode": "range", "scope": ["a_0"] * 3}, ValueError, START.format("range") + "it's must be [start, end]."),
        ({"mode": "api_list", "scope": [1]}, TypeError, "'int' object has no attribute 'lower'"),
        ({"mode": "list", "scope": ["a_0", 1]}, TypeError, "expected string or bytes-like object, got 'int'"),
        ({"mode": "list", "scope": ["a_0", "a"]}, ValueError, START.format("list")[:-2]
         + ". The list item should be in the 'Type_Name_ID' format."),
        ({"mode": "list", "scope": ["7"]}, ValueError, START.format("list")[:-2]
         + ". The list item should be in the 'Type_Name_ID' format."),
        ({"mode": "range", "scope": ["a_0", "a_b"]}, ValueError, START.format("range")[:-2]
         + ". The interval endpoints should be in the 'Type_Name_ID' format."),
    ],
    ids=lambda value: "text" if isinstance(value, str) else None,  # a set in a text has no order of its own
)  # fmt: skip
def test_arguments_that_are_refused(given, error, text):
    with pytest.raises(error) as caught:
        request(**given)
    assert str(caught.value) == text


def test_words_of_an_api_list_need_no_number():
    assert request(mode="api_list", scope=["relu"]).scope == ("relu",)
