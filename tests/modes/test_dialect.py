"""One field of a config: the codes and places of what is found."""

from types import SimpleNamespace

import pytest

from dumpsim.core.errors import DumpConfigError
from dumpsim.modes.dialect import Field


def field(read=None, **options):
    return Field(name="net_name", section="common", kind="string", code="DS-CFG-100", about="", read=read, **options)


@pytest.mark.parametrize(("own", "shown"), [
    ({}, ("DS-CFG-100", "$.common.net_name")), ({"code": "DS-CFG-200"}, ("DS-CFG-200", "$.common.net_name")),
    ({"where": "$.common.net_name[2]"}, ("DS-CFG-100", "$.common.net_name[2]")),
])  # fmt: skip
def test_what_a_reader_says_of_itself_goes_before_what_the_field_says(own, shown):
    def read(value, draft):
        raise DumpConfigError("is odd", **own)

    draft = SimpleNamespace(values={}, bad=set())
    found = field(read)._check("x", draft)
    assert (found.level, found.code, found.where) == ("error", *shown)
    assert draft.values == {}


def test_a_value_is_kept_as_it_is_read():
    draft = SimpleNamespace(values={}, bad=set())
    assert field(lambda value, draft: value.upper())._check("x", draft) is None
    assert draft.values == {"net_name": "X"}
    assert field(allowed=("a",), tolerated=("x",))._check("x", draft) is None
    assert field(allowed=("a",))._check("x", draft).code == "DS-CFG-100"
    assert field()._check(3, draft).what.startswith("3 is not of type")
