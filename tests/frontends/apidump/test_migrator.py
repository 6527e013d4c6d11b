"""What the functions of the migrator take where a script says nothing. [seed 002]"""

import inspect

import pytest

from dumpsim.migrator import ApiDump, _framework, api_dump_init, api_dump_start

START = {"mode": "all", "scope": None, "dump_type": "all", "filter_data": True, "filter_stack": True}
INIT = {"output_path": "ts_api_dump", "retain_backward": False, "compare_statedict": False, "coverage": "listed",
        "compat": None}  # fmt: skip


@pytest.mark.parametrize(
    ("function", "defaults"), [(api_dump_start, START), (ApiDump.start, START), (api_dump_init, INIT)]
)
def test_defaults_are_those_of_the_documents(function, defaults):
    given = inspect.signature(function).parameters.values()
    assert {one.name: one.default for one in given if one.default is not one.empty} == defaults


def test_a_network_is_of_the_framework_of_its_class():
    from dumpsim.frontends.mindspore import nn

    assert _framework(nn.ReLU()) == "mindspore"
    with pytest.raises(TypeError, match="but got <class 'int'>"):
        _framework(3)


@pytest.mark.torch
def test_a_module_is_of_torch():
    import torch

    assert _framework(torch.nn.ReLU()) == "torch"
