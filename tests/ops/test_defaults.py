"""What an operator says of its settings, and what its kernel takes where it is called with fewer."""

import inspect

import pytest

from dumpsim.ops import table
from dumpsim.ops.table import find

NAMES = sorted(name for names in table.MODULES.values() for name in names.split())


def stated(definition):
    """Settings with the values that they have where nobody gives another."""
    first = len(definition.operands) - len(definition.defaults)
    return dict(zip(definition.operands[first:], definition.defaults, strict=True)) | dict(definition.attrs)


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_has_the_defaults_of_its_operator(name):
    definition = find(name)
    try:
        parameters = inspect.signature(definition.kernel).parameters.values()
    except (TypeError, ValueError):  # a function that is written in C
        return
    values = stated(definition)
    places = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    for parameter in parameters:
        at = places.index(parameter) if parameter in places else len(definition.operands)
        key = definition.operands[at] if at < len(definition.operands) else parameter.name
        if parameter.default is parameter.empty or values.get(key) is None:
            continue
        value = values[key]
        if isinstance(value, tuple) and not isinstance(parameter.default, tuple):
            (value,) = value  # one axis
        assert (parameter.default, type(parameter.default)) == (value, type(value)), key
