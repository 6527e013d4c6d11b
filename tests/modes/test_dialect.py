"""One field of a config: the codes and places of what is found."""

from types import SimpleNamespace

import pytest

from dumpsim.core.errors import DumpConfigError
from dumpsim.modes.dialect import Draft, Effect, Field, Finding, Rule, Section, schema, shown, without_effect
from dumpsim.modes.profile import find


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


def draft(document, **values):
    return Draft(profile=find("seed", "cpu"), document=document, environment={}, device_id=6, values=values)


KINDS = {
    "unsigned": ("Dump config parse failed, x should be unsigned int type", "integer"),
    "boolean": ("Dump Json Parse Failed. 'enable' should be boolean type", "boolean"),  # whatever the field
    "string": ("Dump config parse failed, x should be string type", "string"),
    "array": ("Dump config parse failed, x should be array type", "array"),
}  # [spec mindspore 1.2, 1.3]
LEGAL = {"unsigned": (0, 7, 2**32 - 1), "boolean": (True, False), "string": ("", "a"), "array": ([], [1])}
WRONG = (True, -1, 1.0, "0", [], {}, None, 3, "a")


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_another_type_are_refused_in_the_vendors_words(kind):
    one = Field(name="x", section="s", kind=kind, code="DS-CFG-100", about="")
    for value in LEGAL[kind]:
        found = draft({"s": {"x": value}})
        assert (list(one.examine(found)), found.values["x"], found.bad) == ([], value, set())
    text, name = KINDS[kind]
    for value in WRONG:
        fits = {"unsigned": type(value) is int and value >= 0, "boolean": isinstance(value, bool),
                "string": isinstance(value, str), "array": isinstance(value, list)}[kind]  # fmt: skip
        found = draft({"s": {"x": value}})
        said = list(one.examine(found))
        assert [finding.vendor for finding in said] == ([] if fits else [text])
        assert [finding.what for finding in said] == ([] if fits else [f"{shown(value)} is not of type {name}"])
        assert found.bad == (set() if fits else {"x"})
        assert found.values["x"] == (value if fits else None)


def test_numbers_have_32_bits():
    one = Field(name="x", section="s", kind="unsigned", code="DS-CFG-100", about="")
    for given, read in ((2**32 - 1, 2**32 - 1), (2**32, 0), (2**33 + 5, 5)):  # [spec observed 2, row 49]
        found = draft({"s": {"x": given}})
        assert list(one.examine(found)) == []
        assert found.values == {"x": read}


@pytest.mark.parametrize(
    ("kind", "value", "allowed", "meant"),
    [
        ("boolean", "true", (), "true"), ("boolean", "TRUE", (), "true"), ("boolean", 1, (), "true"),
        ("boolean", "False", (), "false"), ("boolean", 0, (), "false"), ("boolean", 2, (), None),
        ("boolean", ["true"], (), None), ("boolean", {"true": 1}, (), None), ("boolean", None, (), None),
        ("unsigned", "3", (), "3"), ("unsigned", 3.9, (), "3"), ("unsigned", "-3", (), None),
        ("unsigned", "x", (), None),
        ("unsigned", float("inf"), (), None), ("unsigned", True, (), None), ("unsigned", "-0", (), "0"),
        ("unsigned", "3", (0, 3), "3"), ("unsigned", "2", (0, 3), None), ("unsigned", [3], (), None),
        ("array", "a", (), '["a"]'), ("array", 3, (), "[3]"), ("array", True, (), None), ("array", 1.5, (), None),
        ("array", {}, (), None), ("string", 3, ("a",), None), ("string", "tensr", ("tensor", "full"), "tensor"),
        ("string", "zzz", ("tensor", "full"), None),
    ],
)  # fmt: skip
def test_what_was_probably_meant_by_a_wrong_value(kind, value, allowed, meant):
    one = Field(name="x", section="s", kind=kind, code="DS-CFG-100", about="", allowed=allowed)
    (found,) = one.examine(draft({"s": {"x": value}}))
    assert found.nearest == meant
    assert found.allowed == tuple(map(shown, allowed))


def test_a_missing_field_is_an_error_where_it_is_required():
    for required, read_default, vendor in (
        (True, False, ["Check dump json failed, x not found"]), (False, False, []), (False, True, ["odd"]),
    ):  # fmt: skip
        one = Field(
            name="x", section="s", kind="string", code="DS-CFG-100", about="", default="d",
            required=lambda draft, required=required: required, read=lambda value, draft: refuse(vendor="odd"),
            read_default=read_default,
        )  # fmt: skip
        for document in ({}, {"s": {}}, {"s": []}, [], None):
            found = draft(document)
            said = list(one.examine(found))
            assert [finding.vendor for finding in said] == vendor
            assert (found.values, found.bad) == ({"x": "d"}, {"x"} if vendor else set())


def test_a_field_is_read_under_its_condition_and_where_that_is_not_known():
    one = Field(
        name="x", section="s", kind="string", code="DS-CFG-100", about="", default="d", reads=("mode",),
        when=lambda draft: draft.values["mode"] == 1,
    )  # fmt: skip
    for mode, bad, read in ((1, set(), "given"), (0, set(), "d"), (0, {"mode"}, "given"), (0, {"other"}, "d")):
        found = draft({"s": {"x": "given"}}, mode=mode)
        found.bad |= bad
        assert list(one.examine(found)) == []
        assert found.values["x"] == read


def refuse(**fields):
    raise DumpConfigError("is odd", **fields)


def test_rules_say_warn_and_force():
    rule = Rule(
        where="$.s.x", code="DS-CFG-101", level="warning", when=lambda draft: draft.values["x"] > 1,
        what="{value} on {target} {device_id}", vendor="{index}: {value} {target} {device_id}", function="Parse",
        force={"x": 1, "y": 2}, reads=("x",), allowed=("1",), repeat=2,
    )  # fmt: skip
    found = draft({}, x=5)
    assert list(rule.examine(found)) == [
        Finding(
            level="warning", code="DS-CFG-101", where="$.s.x", what="5 on CPU 6", vendor=f"{index}: 5 CPU 6",
            function="Parse", allowed=("1",), nearest="1", forced=(("x", 1), ("y", 2)),
        )
        for index in (1, 2)
    ]  # fmt: skip
    assert found.values == {"x": 1, "y": 2}
    assert list(rule.examine(found)) == []
    wrong = draft({}, x=5)
    wrong.bad.add("x")
    assert (list(rule.examine(wrong)), wrong.values) == ([], {"x": 5})
    bare = Rule(where="$.s.x", code="DS-CFG-101", level="error", when=lambda draft: True, what="{value}",
                value=lambda draft: "other", allowed=("1 and more",))  # fmt: skip
    assert list(bare.examine(draft({}, x=5))) == [
        Finding(level="error", code="DS-CFG-101", where="$.s.x", what="other", allowed=("1 and more",))
    ]
    assert [one.nearest for one in Rule(where="$.s.x", code="", level="error", when=lambda draft: True, what="",
                                        allowed=("0", "1")).examine(draft({}))] == [None]  # fmt: skip


def test_a_section_is_missing_or_not():
    section = Section(name="s", code="DS-CFG-102", vendor="not found")
    for document in ({"s": {}}, {"s": []}, {"s": None}):
        assert list(section.examine(draft(document))) == []
    for document in ({}, [], None, {"t": {}}):
        assert list(section.examine(draft(document))) == [
            Finding(level="error", code="DS-CFG-102", where="$.s", what="the section is missing", vendor="not found")
        ]


ROWS = (
    Section(name="s", code="DS-CFG-102", vendor=""),
    Field(name="mode", section="s", kind="unsigned", code="DS-CFG-100", about="A.", allowed=(0, 1), default=0,
          required=lambda draft: True),
    Field(name="names", section="s", kind="array", code="DS-CFG-100", about="B.", default=("a", "b")),
    Field(name="path", section="s", kind="string", code="DS-CFG-100", about="C.", default="", read=lambda v, d: v,
          required=lambda draft: True, when=lambda draft: False),
    Field(name="on", section="t", kind="boolean", code="DS-CFG-100", about="D.", default=True),
    Rule(where="$.s.mode", code="DS-CFG-101", level="error", when=lambda draft: False, what=""),
)  # fmt: skip


def test_the_schema_of_a_table():
    assert schema(ROWS, find("seed", "cpu"), "A title") == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A title",
        "type": "object",
        "properties": {
            "s": {
                "type": "object",
                "properties": {
                    "mode": {"type": "integer", "description": "A.", "minimum": 0, "enum": [0, 1], "default": 0},
                    "names": {"type": "array", "description": "B.", "default": ["a", "b"]},
                    "path": {"type": "string", "description": "C."},
                },
                "required": ["mode"],
            },
            "t": {"type": "object", "properties": {"on": {"type": "boolean", "description": "D.", "default": True}}},
        },
        "required": ["s"],
    }


def test_what_has_no_effect_and_what_nobody_knows():
    effects = (
        Effect("s", "mode", lambda draft: True, "it is {part}", ("on",), lambda draft: "odd"),
        Effect("s", "names", lambda draft: False, "never"), Effect("t", "old", lambda draft: True, "it is old"),
    )  # fmt: skip
    found = draft({"s": {"mode": 1, "nmes": [], "names": []}, "t": {"old": 1, "on": 1}, "u": {}})

    def said(bad=()):
        found.bad = set(bad)
        return [(one.level, one.code, one.where, one.what, one.nearest) for one in without_effect(ROWS, effects, found)]

    unknown = "no such field; it is ignored"
    rest = [
        ("no effect", "DS-CFG-090", "$.t.old", "no effect: it is old", None),
        ("no effect", "DS-CFG-091", "$.u", unknown, None), ("no effect", "DS-CFG-091", "$.s.nmes", unknown, "names"),
    ]  # fmt: skip
    assert said() == [("no effect", "DS-CFG-090", "$.s.mode", "no effect: it is odd", None), *rest]
    assert said(["mode"]) == said(["on"]) == rest
    found.document = {"s": [], "t": None}
    assert said() == []
    found.document = ["s"]
    assert said() == []


@pytest.mark.parametrize(
    ("value", "text"), [("\u7f51", '"\u7f51"'), ([1, True, None], "[1, true, null]"), ({"a": 1.5}, '{"a": 1.5}')]
)
def test_values_are_shown_as_json(value, text):
    assert shown(value) == text


def test_values_too_deep_for_python_are_shown_by_their_brackets():
    array, thing = [], {}
    for _ in range(100_000):
        array, thing = [array], {"a": thing}
    assert (shown(array), shown(thing)) == ("[...]", "{...}")
    while array:
        (array,) = array
        thing = thing["a"]
