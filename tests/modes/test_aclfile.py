"""ACL configs: every row of the tables of error codes, both validators in their order, the four step grammars."""

import json

import pytest
from typer.testing import CliRunner

from dumpsim.cli.app import app
from dumpsim.core.errors import DumpConfigError, UnsupportedError
from dumpsim.core.steps import Steps
from dumpsim.modes.aclchecks import _existing, is_address, step_error
from dumpsim.modes.aclfile import AclDump, _blocked, acl_profile, acl_schema, check_acl, load_acl
from dumpsim.modes.gesteps import check_ge_steps
from dumpsim.modes.profile import find
from dumpsim.modes.request import Blocked, DumpRequest, ModelRule, RequestedStatistics, Selection, Watch

CONTENT = "EP0001: The content of configuration item {} in configuration file acl.json is invalid. Reason: {}."
ENUM = "EP0002: Value {} for configuration item {} in configuration file acl.json is invalid. Expected value: {}."
VALUE = "EP0003: Value {} for configuration item {} in configuration file acl.json is invalid. Reason: {}."
CONFLICT = "EP0005: Conflict of configuration items in configuration file acl.json. Reason: {}."
NOT_FOUND, EMPTY = "The configuration item is not found", "The configuration item value is empty"
STRING, ARRAY, OBJECT = (
    f"This configuration item must be of the {kind} type" for kind in ("string", "array", "object")
)
STRINGS, OBJECTS = (f"The member type of this configuration item must be {kind}" for kind in ("string", "object"))
DIGITS = "The value contains non-digit characters,  expected format: 1 or 5-10"
FORMAT = "The value has invalid format, expected format: 5-10"
ORDER = "The value has invalid format, start step must not exceed end step, expected format: 5-10"
SCENES = "aic_err_brief_dump/aic_err_detail_dump/aic_err_norm_dump/lite_exception/watcher"
WHEN = "When configuration item {} is {}set to {}, configuration item {} cannot be {}"
INCOMPLETE = "The item is incomplete, begin and end must be configured together and non-empty"
PERMISSION = "The value is a path without read and write permissions"
BLACK = [{"name": "Add", "pos": ["input0"]}]


@pytest.fixture
def directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "odd name").mkdir()
    (tmp_path / "file").write_text("")
    return tmp_path


def text(**items):
    given = {"dump_path": "out", **items}
    return json.dumps({"dump": {name: value for name, value in given.items() if value is not None}}).encode()


def refusal(data):
    with pytest.raises(DumpConfigError) as caught:
        load_acl(data, file="acl.json")
    return caught.value.vendor


ROWS = [
    # types [spec ge 2.3 step 2]
    *(({name: 3}, CONTENT.format(name, STRING)) for name in (
        "dump_path", "dump_mode", "dump_op_switch", "dump_level", "dump_scene", "dump_data", "dump_debug",
        "dump_kernel_data", "dump_step",
    )),
    ({"dump_stats": "Max"}, CONTENT.format("dump_stats", ARRAY)),
    ({"dump_stats": ["Max", 1]}, CONTENT.format("dump_stats[1]", STRINGS)),
    ({"dump_list": {}}, CONTENT.format("dump_list", ARRAY)),
    ({"dump_list": ["graph_1"]}, CONTENT.format("dump_list[0]", OBJECT)),
    ({"dump_list": [{}, {"model_name": 1}]}, CONTENT.format("dump_list[1].model_name", STRING)),
    ({"dump_list": [{"layer": "Add"}]}, CONTENT.format("dump_list[0].layer", ARRAY)),
    ({"dump_list": [{"layer": ["Add", None]}]}, CONTENT.format("dump_list[0].layer[1]", STRINGS)),
    ({"dump_list": [{"watcher_nodes": "Add"}]}, CONTENT.format("dump_list[0].watcher_nodes", ARRAY)),
    ({"dump_list": [{"optype_blacklist": ["Add"]}]}, CONTENT.format("dump_list[0].optype_blacklist[0]", OBJECTS)),
    (
        {"dump_list": [{"opname_blacklist": [{"name": 1}]}]},
        CONTENT.format("dump_list[0].opname_blacklist[0].name", STRING),
    ),
    (
        {"dump_list": [{"opname_blacklist": [{"name": "a", "pos": "input0"}]}]},
        CONTENT.format("dump_list[0].opname_blacklist[0].pos", ARRAY),
    ),
    ({"dump_list": [{"opname_range": [1]}]}, CONTENT.format("dump_list[0].opname_range[0]", OBJECTS)),
    (
        {"dump_list": [{"opname_range": [{"begin": 1}]}]},
        CONTENT.format("dump_list[0].opname_range[0].begin", STRING),
    ),
    *(
        ({"dump_list": [{name: {}}]}, CONTENT.format(f"dump_list[0].{name}", ARRAY))
        for name in ("optype_blacklist", "opname_blacklist", "opname_range")
    ),
    ({"dump_list": [{"watcher_nodes": [1]}]}, CONTENT.format("dump_list[0].watcher_nodes[0]", STRINGS)),
    (
        {"dump_list": [{"optype_blacklist": [{"name": "a", "pos": ["input0", 1]}]}]},
        CONTENT.format("dump_list[0].optype_blacklist[0].pos[1]", STRINGS),
    ),
    (
        {"dump_list": [{"opname_range": [{"begin": "a", "end": []}]}]},
        CONTENT.format("dump_list[0].opname_range[0].end", STRING),
    ),
    # values [step 3]
    *(
        ({name: ""}, CONTENT.format(name, EMPTY))
        for name in ("dump_data", "dump_op_switch", "dump_level", "dump_debug", "dump_kernel_data")
    ),
    ({"dump_data": "stats", "dump_stats": ["Max", ""]}, CONTENT.format("dump_stats[1]", EMPTY)),
    ({"dump_mode": "both"}, ENUM.format("both", "dump_mode", "all/input/output")),
    ({"dump_mode": "ALL"}, ENUM.format("ALL", "dump_mode", "all/input/output")),
    ({"dump_mode": ""}, CONTENT.format("dump_mode", EMPTY)),
    ({"dump_data": "statistic"}, ENUM.format("statistic", "dump_data", "stats/tensor")),
    ({"dump_op_switch": "On"}, ENUM.format("On", "dump_op_switch", "off/on")),
    ({"dump_level": "graph"}, ENUM.format("graph", "dump_level", "all/kernel/op")),
    ({"dump_debug": "true"}, ENUM.format("true", "dump_debug", "off/on")),
    ({"dump_scene": "exception"}, ENUM.format("exception", "dump_scene", SCENES)),
    ({"dump_scene": ""}, CONTENT.format("dump_scene", EMPTY)),
    (
        {"dump_kernel_data": "printf,log"},
        ENUM.format("log", "dump_kernel_data", "all/assert/printf/tensor/timestamp"),
    ),
    ({"dump_kernel_data": "printf,"}, CONTENT.format("dump_kernel_data", EMPTY)),
    (
        {"dump_stats": ["Max", "max"]},
        ENUM.format("max", "dump_stats[1]", "Avg/L2norm/Max/Min/Nan/Negative Inf/Positive Inf"),
    ),
    # scenes [step 4]
    *(
        ({"dump_scene": scene, name: "on"}, CONFLICT.format(WHEN.format("dump_scene", "", scene, name, "set to on")))
        for scene in SCENES.split("/")
        for name in ("dump_debug", "dump_op_switch")
    ),
    *(
        (
            {"dump_scene": "watcher", "dump_mode": mode},
            CONFLICT.format(WHEN.format("dump_scene", "", "watcher", "dump_mode", f"set to {mode}")),
        )
        for mode in ("all", "input")
    ),
    # path [step 5]
    ({"dump_path": None, "dump_mode": "all"}, CONTENT.format("dump_path", NOT_FOUND)),
    ({"dump_path": None, "dump_debug": "on"}, CONTENT.format("dump_path", NOT_FOUND)),
    ({"dump_path": None, "dump_scene": "watcher"}, CONTENT.format("dump_path", NOT_FOUND)),
    ({"dump_path": "out:"}, VALUE.format("out:", "dump_path", "The value is an invalid path")),
    ({"dump_path": ""}, CONTENT.format("dump_path", EMPTY)),
    (
        {"dump_path": "x" * 513},
        VALUE.format("x" * 513, "dump_path", "The path length exceeds the maximum limit of 512 characters"),
    ),
    ({"dump_path": "10.0.0.1:"}, VALUE.format("10.0.0.1:", "dump_path", "The value is an invalid path")),
    (
        {"dump_path": "10.0.0.1:/a b"},
        VALUE.format("10.0.0.1:/a b", "dump_path", "The value contains invalid characters"),
    ),
    ({"dump_path": "10.0.0:/a"}, VALUE.format("10.0.0:/a", "dump_path", "The path does not exist")),
    ({"dump_path": "missing"}, VALUE.format("missing", "dump_path", "The path does not exist")),
    ({"dump_path": "file"}, VALUE.format("file", "dump_path", "The path is not a directory path")),
    # overflow [step 6]
    (
        {"dump_debug": "on", "dump_op_switch": "on"},
        CONFLICT.format(WHEN.format("dump_debug", "", "on", "dump_op_switch", "set to on")),
    ),
    # steps [step 7]
    (
        {"dump_step": "|".join(["1"] * 101)},
        VALUE.format("|".join(["1"] * 101), "dump_step", "The value exceeds the maximum limit of 100 intervals"),
    ),
    ({"dump_step": "1|2-3-4"}, VALUE.format("2-3-4", "dump_step[1]", FORMAT)),
    ({"dump_step": "1|"}, VALUE.format("", "dump_step[1]", DIGITS)),
    ({"dump_step": "a"}, VALUE.format("a", "dump_step[0]", DIGITS)),
    ({"dump_step": "|1"}, VALUE.format("", "dump_step[0]", DIGITS)),
    ({"dump_step": "1||2"}, VALUE.format("", "dump_step[1]", DIGITS)),
    ({"dump_step": "1 "}, VALUE.format("1 ", "dump_step[0]", DIGITS)),
    ({"dump_step": "1-"}, VALUE.format("1-", "dump_step[0]", DIGITS)),
    ({"dump_step": "5-2"}, VALUE.format("5-2", "dump_step[0]", ORDER)),
    # list [step 8]
    ({"dump_list": [{"model_name": ""}]}, CONTENT.format("dump_list[0].model_name", EMPTY)),
    ({"dump_list": [{"model_name": "a"}, {"layer": []}]}, CONTENT.format("dump_list[1].layer", EMPTY)),
    ({"dump_scene": "watcher", "dump_list": [{}]}, CONTENT.format("dump_list[0].watcher_nodes", NOT_FOUND)),
    (
        {"dump_scene": "watcher", "dump_list": [{"watcher_nodes": []}]},
        CONTENT.format("dump_list[0].watcher_nodes", EMPTY),
    ),
    (
        {"dump_scene": "watcher", "dump_list": [{"watcher_nodes": ["a"], "model_name": "m"}]},
        CONFLICT.format(WHEN.format("dump_scene", "", "watcher", "dump_list[0].model_name", "configured")),
    ),
    (
        {"dump_list": [{"watcher_nodes": ["a"]}]},
        CONFLICT.format(WHEN.format("dump_scene", "not ", "watcher", "dump_list[0].watcher_nodes", "configured")),
    ),
    *(
        (
            {"dump_level": "op", "dump_list": [{name: BLACK * 101}]},
            VALUE.format("101", f"dump_list[0].{name}", "The value size exceeds the maximum limit of 100"),
        )
        for name in ("optype_blacklist", "opname_blacklist")
    ),
    *(
        (
            {"dump_list": [{"model_name": "m", name: value}]},
            CONFLICT.format(WHEN.format("dump_level", "not ", "op", f"dump_list[0].{name}", "configured")),
        )
        for name, value in (
            ("optype_blacklist", BLACK), ("opname_blacklist", BLACK), ("opname_range", [{"begin": "a", "end": "b"}]),
        )
    ),
    (
        {"dump_level": "op", "dump_list": [{"opname_range": [{"begin": "a", "end": "b"}]}]},
        CONTENT.format("dump_list[0].model_name", NOT_FOUND),
    ),
    (
        {"dump_level": "op", "dump_op_switch": "on",
         "dump_list": [{"model_name": "", "opname_range": [{"begin": "a", "end": "b"}]}]},
        CONTENT.format("dump_list[0].model_name", EMPTY),
    ),
    *(
        (
            {"dump_level": "op", "dump_list": [{"model_name": "m", "opname_range": [{name: "a"}]}]},
            VALUE.format(shown, "dump_list[0].opname_range[0]", INCOMPLETE),
        )
        for name, shown in (("begin", "begin=a, end="), ("end", "begin=, end=a"))
    ),
    # statistics [step 9]
    ({"dump_data": "stats", "dump_stats": []}, CONTENT.format("dump_stats", EMPTY)),
    (
        {"dump_stats": ["Max"]},
        CONFLICT.format(WHEN.format("dump_data", "", "tensor", "dump_stats", "configured")),
    ),
    # GE, after all of ADUMP's steps
    ({"dump_path": "odd name"}, "100009: invalid dump_path [odd name] in dump config at 3"),
    (
        {"dump_debug": "on", "dump_list": [{"model_name": "m"}]},
        "100009: nonsupport dump model when open dump overflow detection",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("items", "vendor"), ROWS, ids=lambda value: str(value)[:60])
def test_every_row_has_the_vendors_text_in_a_run_and_in_check(directory, items, vendor):
    data = text(**items)
    assert refusal(data) == vendor
    errors = [finding.vendor for finding in check_acl(data, file="acl.json") if finding.level == "error"]
    assert errors[0] == vendor


# the reasons of [spec ge 2.2] in its words, and where a text of ours says them
REASONS = {
    "EP0001": {
        "item not found": NOT_FOUND, "value empty": EMPTY, "must be string": STRING, "must be array": ARRAY,
        "must be object": OBJECT, "member must be string": STRINGS, "member must be object": OBJECTS,
    },
    "EP0003": {
        "path does not exist": "The path does not exist", "not a directory": "The path is not a directory path",
        "longer than 512": "maximum limit of 512 characters", "invalid path": "The value is an invalid path",
        "invalid characters": "The value contains invalid characters",
        "more than 100 intervals": "limit of 100 intervals",
        "bad format": FORMAT, "non-digit": DIGITS, "start exceeds end": ORDER,
        "blacklist size over 100": "The value size exceeds the maximum limit of 100", "range incomplete": INCOMPLETE,
    },
    "EP0005": {"B cannot be set to y": "cannot be set to", "B cannot be configured": "cannot be configured",
               "A is not set to x": "is not set to"},
}  # fmt: skip


@pytest.mark.parametrize("code", REASONS)
def test_every_reason_of_the_table_has_a_row(code):
    said = [vendor for _, vendor in ROWS if vendor.startswith(code)]
    for reason, words in REASONS[code].items():
        assert any(words in vendor for vendor in said), reason
    for vendor in said:
        assert any(words in vendor for words in REASONS[code].values()), vendor


def test_a_directory_without_permission(directory, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)  # the tests may run as root
    assert refusal(text()) == VALUE.format("out", "dump_path", PERMISSION)


@pytest.mark.parametrize(
    ("data", "text"),
    [(b"{", "Reason: [json.exception.parse_error"), (b'{"dump": ' + b'{"a":' * 10 + b"1" + b"}" * 11, "nested")],
)
def test_what_cannot_be_parsed(data, text):
    assert refusal(data).startswith("EP0004: Failed to parse file acl.json. Reason: ")
    assert text in refusal(data)


def test_the_order_of_the_steps(directory):
    items = {
        "dump_list": [{"layer": "x"}], "dump_mode": "both", "dump_scene": "watcher", "dump_debug": "on",
        "dump_path": "missing", "dump_step": "a",
    }  # fmt: skip
    codes = [finding.vendor[:6] for finding in check_acl(text(**items)) if finding.level == "error"]
    assert codes == ["EP0001", "EP0002", "EP0005", "EP0003"]  # dump_debug ends it before the steps
    assert refusal(text(**items)).startswith("EP0001: The content of configuration item dump_list[0].layer")


@pytest.mark.parametrize(
    "items",
    [
        *(
            {"dump_scene": scene, "dump_path": path, "dump_list": [{"layer": []}], "dump_step": "a"}
            for scene in ("lite_exception", "aic_err_brief_dump", "aic_err_norm_dump")
            for path in ("missing", None)
        ),
        {"dump_debug": "on", "dump_step": "a", "dump_stats": []},
    ],
)
def test_validation_ends_early(directory, items):
    load_acl(text(**items))


@pytest.mark.parametrize(
    ("data", "dumps"),
    [
        (b"{}", False),
        (b'{"dump": {}}', False),
        (text(dump_list=[]), False),
        (text(dump_list=[{}]), True),
        (text(dump_op_switch="on"), True),
        (text(dump_debug="on"), True),
        (text(dump_scene="watcher", dump_list=[{"watcher_nodes": ["a"]}]), True),
    ],
)
def test_what_is_a_dump_at_all(directory, data, dumps):
    dump, _ = load_acl(data)
    assert (dump.request is not None) is dumps


def test_a_dump_that_is_no_object():
    assert refusal(b'{"dump": []}') == CONTENT.format("dump", OBJECT)


@pytest.mark.parametrize(
    ("steps", "adump", "option"),
    [
        ("5-2", False, False),
        ("3-3", True, False),
        ("1|", False, False),
        ("1||2", False, False),
        ("4294967296", True, False),
    ],
)
def test_the_step_grammars_differ(directory, steps, adump, option):
    """[spec ge 8.6]; TorchAir's own grammar is tested with its config."""
    errors = [finding for finding in check_acl(text(dump_list=[{}], dump_step=steps)) if finding.level == "error"]
    assert (not errors) is adump
    try:
        check_ge_steps(steps)
    except DumpConfigError:
        assert not option
    else:
        assert option


def test_what_is_legal_and_not_emulated(directory):
    with pytest.raises(UnsupportedError, match="another host"):
        load_acl(text(dump_path="10.0.0.1:/data", dump_list=[{}]))
    with pytest.raises(UnsupportedError, match="aic_err_detail_dump"):
        load_acl(text(dump_scene="aic_err_detail_dump"))
    found = check_acl(text(dump_path="10.0.0.1:/data", dump_list=[{}]))
    assert [(finding.where, finding.code) for finding in found] == [("$.dump.dump_path", "DS-ACL-007")]


def test_unknown_items_and_items_in_vain_are_named(directory):
    found = check_acl(
        text(
            dump_list=[{"model_name": "m", "layers": ["a"], "opname_blacklist": [{"name": "a", "pos": ["in0"]}]}],
            dump_level="op", dump_modes="all", dump_kernel_data="printf", dump_op_switch="on",
        )
    )  # fmt: skip
    assert [(f.level, f.where.removeprefix("$.dump."), f.nearest) for f in found] == [
        ("no effect", "dump_modes", "dump_mode"),
        ("no effect", "dump_list[0].layers", "layer"),
        ("warning", "dump_list[0].opname_blacklist[0].pos", None),
        ("no effect", "dump_kernel_data", None),
        ("no effect", "dump_op_switch", None),
    ]


def test_the_command_shows_all_findings(directory):
    (directory / "acl.json").write_bytes(text(dump_mode="both", dump_debug=1, dump_step="5-2"))
    found = CliRunner().invoke(app, ["check", "acl.json", "--dialect", "acl"])
    assert found.exit_code == 1
    assert found.output.count("CANN says: EP000") == 3
    assert "did you mean '2-5'?" in found.output
    assert "ACL: 3 errors, 0 warnings" in found.output
    lines = CliRunner().invoke(app, ["check", "acl.json", "--dialect", "acl", "--json"]).output.splitlines()
    assert [json.loads(line)["code"] for line in lines] == ["DS-ACL-001", "DS-ACL-002", "DS-ACL-003"]
    (directory / "acl.json").write_bytes(text(dump_list=[{"model_name": "graph_1"}]))
    assert CliRunner().invoke(app, ["check", "acl.json", "--dialect", "acl"]).exit_code == 0
    schema = CliRunner().invoke(app, ["check", "--schema", "config", "--dialect", "acl"])
    assert json.loads(schema.output)["properties"]["dump"]["properties"]["dump_mode"]["default"] == "output"
    assert CliRunner().invoke(app, ["check", "acl.json", "--dialect", "ackl"]).exit_code != 0


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("dump_scene", "watch mode"),
        ("opname_range", "execution order"),
        ("EP0005", "exclude each other"),
        ("dump_scnee", ""),
    ],
)
def test_explain_knows_items_and_codes(word, text):
    found = CliRunner().invoke(app, ["explain", word])
    if text:
        assert text in found.output
    else:
        assert "dump_scene" in str(found.exception)  # the nearest word


@pytest.mark.parametrize(("value", "told"), [("1", True), (True, True), ("0", False), (False, False)])
def test_folding_of_quantised_pairs_is_told_to_be_no_matter_of_a_file(value, told):
    text = json.dumps({"dump": {"dump_path": "/tmp", "dump_list": [{"model_name": "m"}], "quant_dumpable": value}})
    found = check_acl(text.encode(), file="acl.json")
    assert any(one.where == "$.dump.quant_dumpable" and one.level == "no effect" for one in found) == told


def test_blocked_positions_are_kept_by_side():
    entry = {
        "optype_blacklist": [{"name": "Add", "pos": ["input0", "input12", "output1", "input", "outputx", "xinput1"]}],
        "opname_blacklist": [{"pos": ["output0"]}, {"name": "all"}],
    }
    found = [(one.name, one.by_type, one.inputs, one.outputs) for one in _blocked(entry)]
    none = frozenset()
    assert found == [
        ("Add", True, frozenset({0, 12}), frozenset({1})), ("", False, none, frozenset({0})),
        ("all", False, none, none),
    ]  # fmt: skip


def test_the_directory_above_that_exists(tmp_path):
    assert _existing(str(tmp_path / "a" / "b" / "c")) == str(tmp_path)
    (tmp_path / "a").mkdir()
    assert _existing(str(tmp_path / "a" / "b" / "c")) == str(tmp_path / "a")
    assert _existing(str(tmp_path / "a" / "b")) == str(tmp_path / "a")
    assert _existing("/no-such-directory/x/y") is None


LARGEST = 2**63 - 1  # of C's strtol, which gives it for greater numbers as well


@pytest.mark.parametrize(
    ("piece", "reason"),
    [
        ("3", ""),
        ("5-10", ""),
        ("5-5", ""),
        ("10-5", ORDER),
        ("0-0", ""),
        ("00009-10", ""),
        ("1-2-3", FORMAT),
        ("-5", DIGITS),
        ("5-", DIGITS),
        ("\u0665", DIGITS),
        (f"{LARGEST - 1}-{LARGEST}", ""),
        (f"{LARGEST}-{LARGEST - 1}", ORDER),
        (f"{LARGEST}-{LARGEST + 1}", ""),
        (f"{LARGEST + 1}-{LARGEST}", ""),
        (f"{10**30}-{LARGEST}", ""),
        (f"{10**30}-{LARGEST - 1}", ORDER),
        (f"{'0' * 30}5-4", ORDER),
    ],
)
def test_steps_are_numbers_as_c_reads_them(piece, reason):
    assert step_error(piece) == reason


LAYER = {"model_name": "m", "layer": ["a", "b"]}
RANGE = {"model_name": "m", "opname_range": [{"begin": "a", "end": "b"}, {"begin": "c", "end": "c"}]}


@pytest.mark.parametrize(
    ("switch", "entries", "rules"),
    [
        ("off", [{}], [ModelRule()]),
        ("off", [{}, {}], [ModelRule()]),
        ("off", [{"model_name": "m"}], [ModelRule(model="m")]),
        ("off", [LAYER], [ModelRule(model="m", names=("a", "b"))]),
        ("off", [{"layer": ["a"]}], [ModelRule(names=("a",))]),
        ("off", [LAYER, {"model_name": "n"}], [ModelRule(model="m", names=("a", "b")), ModelRule(model="n")]),
        ("off", [RANGE], [ModelRule(model="m", names=(), ranges=(("a", "b"), ("c", "c")))]),
        ("off", [RANGE | LAYER], [ModelRule(model="m", names=("a", "b"), ranges=(("a", "b"), ("c", "c")))]),
        ("on", [LAYER], [ModelRule(model="m", names=("a", "b"))]),
        ("on", [{"model_name": "", "layer": ["a"]}, LAYER], [ModelRule(model="m", names=("a", "b"))]),
        ("on", [{"model_name": "m", "layer": []}, LAYER], [ModelRule(model="m", names=("a", "b"))]),
        ("on", [{"model_name": "", "layer": []}], []),
        ("on", [], [ModelRule()]),
    ],
)  # fmt: skip
def test_entries_of_the_dump_list(directory, switch, entries, rules):
    dump, _ = load_acl(text(dump_op_switch=switch, dump_list=entries, dump_level="op"))
    assert dump.request.selection.models == tuple(rules)


@pytest.mark.parametrize(
    ("items", "fields"),
    [
        ({}, {"inputs": False, "outputs": True, "singles": False, "trigger": "every", "tensors": True}),
        ({"dump_mode": "all"}, {"inputs": True, "outputs": True}),
        ({"dump_mode": "input"}, {"inputs": True, "outputs": False}),
        ({"dump_mode": "output"}, {"inputs": False, "outputs": True}),
        ({"dump_step": "1|3-4"}, {"steps": Steps.parse("1|3-4")}),
        ({"dump_step": ""}, {"steps": Steps(text="", every=True)}),
        ({"dump_op_switch": "on"}, {"singles": True}),
        ({"dump_op_switch": "on", "dump_level": "op"}, {"singles": False}),
        ({"dump_level": "kernel"}, {"selection": Selection(models=())}),
        ({"dump_data": "stats"}, {"tensors": False, "statistics": RequestedStatistics(names=(), device=False)}),
        (
            {"dump_data": "stats", "dump_stats": ["Max", "Nan"]},
            {"tensors": False, "statistics": RequestedStatistics(names=("max", "nan"), device=True)},
        ),
    ],
)
def test_what_the_items_ask_for(directory, items, fields):
    dump, _ = load_acl(text(**{"dump_list": [{"model_name": "m"}]} | items))
    assert {name: getattr(dump.request, name) for name in fields} == fields


def test_what_an_overflow_dump_asks_for(directory):
    dump, _ = load_acl(text(dump_debug="on", dump_step="nonsense"))
    request = dump.request
    assert (request.trigger, request.inputs, request.outputs, request.tensors) == ("overflow", True, True, True)
    assert (request.selection.models, request.steps) == (None, Steps(text="", every=True))


@pytest.mark.parametrize(
    ("items", "codes"),
    [
        ({"dump_step": "|".join(["1"] * 100)}, []),
        ({"dump_level": "op", "dump_list": [{"optype_blacklist": BLACK * 100, "opname_blacklist": BLACK * 100}]}, []),
        ({"dump_path": "x" * 512}, ["EP0003: Value xx"]),  # it does not exist
        ({"dump_path": "\u00e9" * 256}, ["EP0003: Value \u00e9\u00e9"]),
        ({"dump_path": "a:b:"}, ["EP0003: Value a:"]),
        ({"dump_list": [{"layer": [], "model_name": ""}], "dump_op_switch": "on"}, []),
        ({"dump_scene": "watcher", "dump_list": [{"watcher_nodes": ["a"], "model_name": ""}]}, ["EP0001: The cont"]),
        ({"dump_data": "stats", "dump_stats": ["Max"]}, []),
        ({"dump_stats": ["Max"], "dump_debug": "on"}, []),
        ({"dump_data": "stats"}, []),
        ({"dump_debug": "on", "dump_op_switch": "off"}, []),
        ({"dump_level": "op", "dump_list": [{"model_name": "m", "opname_range": [{"begin": "a", "end": "a"}]}]}, []),
        ({"dump_level": "op", "dump_list": [{"model_name": "m", "opname_range": [{}]}]}, ["EP0003: Value be"]),
        ({"dump_list": [{"opname_range": []}]}, []),
        ({"dump_kernel_data": "all,printf"}, []),
        ({"dump_scene": "lite_exception", "dump_mode": "all"}, []),
        ({"dump_list": [{"watcher_nodes": []}]}, []),
    ],
    ids=lambda value: str(value)[:50],
)
def test_both_sides_of_the_limits(directory, items, codes):
    found = check_acl(text(**items))
    assert [one.vendor[: len(code)] for one, code in zip(found, codes, strict=False)] == codes
    assert [one.level for one in found if one.level == "error"] == ["error"] * len(codes)


@pytest.mark.parametrize(("path", "long"), [("x" * 512, False), ("x" * 513, True), ("\u00e9" * 256, False)])
def test_a_path_has_at_most_512_bytes(directory, path, long):
    reasons = [one.vendor for one in check_acl(text(dump_path=path)) if one.level == "error"]
    assert ["maximum limit of 512 characters" in reason for reason in reasons] == [long]


def test_all_that_is_wrong_with_a_config(directory):
    """Both validators go on after each error, except where it decides what the next step means. [spec ge 2.3]"""
    entry = {
        "model_name": 1, "layer": "x", "watcher_nodes": [1, "a", 2], "optype_blacklist": [{"name": 2, "pos": "p"}, 3],
        "opname_blacklist": {}, "opname_range": [{"begin": 1}, 4],
    }  # fmt: skip
    items = {
        "dump_path": 1, "dump_mode": "both", "dump_op_switch": "", "dump_level": [], "dump_scene": "watcher",
        "dump_data": "x", "dump_debug": "on", "dump_kernel_data": "all,", "dump_step": 5,
        "dump_stats": ["Max", 1, None],
        "dump_list": [3, entry, {"model_name": "m"}],
    }  # fmt: skip
    found = check_acl(text(**items))
    assert [(one.where.removeprefix("$.dump."), one.code[-1]) for one in found if one.level == "error"] == [
        ("dump_path", "1"), ("dump_level", "1"), ("dump_step", "1"), ("dump_stats[1]", "1"), ("dump_stats[2]", "1"),
        ("dump_list[0]", "1"), ("dump_list[1].model_name", "1"), ("dump_list[1].layer", "1"),
        ("dump_list[1].watcher_nodes[0]", "1"), ("dump_list[1].watcher_nodes[2]", "1"),
        ("dump_list[1].optype_blacklist[1]", "1"), ("dump_list[1].optype_blacklist[0].name", "1"),
        ("dump_list[1].optype_blacklist[0].pos", "1"), ("dump_list[1].opname_blacklist", "1"),
        ("dump_list[1].opname_range[1]", "1"), ("dump_list[1].opname_range[0].begin", "1"), ("dump_mode", "2"),
        ("dump_data", "2"), ("dump_op_switch", "1"), ("dump_kernel_data", "1"), ("dump_debug", "5"),
    ]  # fmt: skip


ADDRESSES = {
    "10.0.0.1": True, "0.0.0.0": True, "255.255.255.255": True, "256.0.0.1": False, "1.2.3.256": False, "1.2.3": False,
    "1.2.3.4.5": False, "": False, "a.b.c.d": False, "1.2.3.x": False, "1x.2.3.4": True, " 1.+2.3.4": True,
    "-1.2.3.4": False, "-0.2.3.4": True, "1..3.4": False,
}  # fmt: skip


def test_hosts_are_read_by_their_leading_digits():
    """As C's strtol reads them. [spec ge 2.3 step 5]"""
    assert {host: is_address(host) for host in ADDRESSES} == ADDRESSES


@pytest.mark.parametrize("kind", ["object", "array"])
def test_ten_objects_or_arrays_may_be_nested(directory, kind):
    """[spec ge 2.2]; the document and its `dump` are objects, too."""
    for depth, good in ((10, True), (11, False)):
        given = [] if kind == "array" else {}
        for _ in range(depth - (1 if kind == "array" else 3)):
            given = [given] if kind == "array" else {"a": given}
        found = [one.vendor for one in check_acl(text(odd=given)) if one.level == "error"]
        reason = f"more than 10 {kind}s are nested"
        assert found == ([] if good else [f"EP0004: Failed to parse file acl.json. Reason: {reason}."])


REQUEST = {
    "path": "out", "file": "acl.json", "dialect": "acl", "selection": Selection(models=(ModelRule(model="m"),)),
    "inputs": False, "outputs": True, "steps": Steps(text="", every=True), "trigger": "every", "tensors": True,
    "statistics": None, "file_format": "bin", "singles": False, "watches": (),
}  # fmt: skip
SLOTS = [{"name": "Add", "pos": ["input1", "output0", "inputx"]}]


@pytest.mark.parametrize(
    ("items", "changes"),
    [
        ({}, {}),
        (
            {"dump_scene": "watcher", "dump_data": "stats",
             "dump_list": [{"watcher_nodes": ["a"]}, {"layer": ["b"], "watcher_nodes": ["c", "d"]}]},
            {"selection": Selection(models=()),
             "watches": (Watch(layers=None, nodes=("a",)), Watch(layers=("b",), nodes=("c", "d")))},
        ),
        (
            {"dump_level": "op", "dump_op_switch": "on",
             "dump_list": [{"model_name": "m", "optype_blacklist": SLOTS, "opname_blacklist": SLOTS}]},
            {"selection": Selection(models=(ModelRule(model="m", blocked=tuple(
                Blocked(name="Add", by_type=by_type, inputs=frozenset({1}), outputs=frozenset({0}))
                for by_type in (True, False)
            )),))},
        ),
        ({"dump_op_switch": "on", "dump_list": None}, {"singles": True, "selection": Selection(models=())}),
        (
            {"dump_debug": "on", "dump_list": None, "dump_data": "stats", "dump_mode": "input", "dump_step": "2|7"},
            {"trigger": "overflow", "inputs": True, "selection": Selection(models=None), "steps": Steps.parse("2|7")},
        ),
        ({"dump_level": "kernel", "dump_op_switch": "on"}, {"selection": Selection(models=()), "singles": True}),
    ],
)  # fmt: skip
def test_the_whole_request(directory, items, changes):
    data = text(**{"dump_list": [{"model_name": "m"}]} | items)
    dump, _ = load_acl(data)
    assert dump == AclDump(path="out", request=DumpRequest(text=data, **REQUEST | changes))


def test_an_exception_scene_is_no_dump_of_operators(directory):
    for scene in ("lite_exception", "aic_err_brief_dump", "aic_err_norm_dump"):
        dump, _ = load_acl(text(dump_scene=scene, dump_list=[{"model_name": "m"}]))
        assert dump == AclDump(request=None, scene=scene, path="out")
    assert load_acl(b"{}")[0] == AclDump(request=None, scene="", path=None)


def test_the_profile_of_acl_configs_counts_for_each_model():
    assert acl_profile() == find("seed", "ascend_ge", {"iteration_rule": "model"})
    assert acl_profile({"bfloat16": "raw", "iteration_rule": "graph"}) == find(
        "seed", "ascend_ge", {"iteration_rule": "graph", "bfloat16": "raw"}
    )


VAIN = {
    "dump_mode": "all", "dump_data": "tensor", "dump_level": "all", "dump_step": "1", "dump_kernel_data": "all",
    "dump_op_switch": "off",
}  # fmt: skip


@pytest.mark.parametrize(
    ("items", "vain"),
    [
        (VAIN | {"dump_list": [{}]}, ["dump_kernel_data"]),
        (VAIN | {"dump_debug": "on"}, ["dump_mode", "dump_data", "dump_level", "dump_kernel_data"]),
        (
            VAIN | {"dump_debug": "on", "dump_step": "x", "dump_stats": []},
            ["dump_mode", "dump_data", "dump_stats", "dump_level", "dump_step", "dump_kernel_data"],
        ),
        (
            VAIN | {"dump_scene": "watcher", "dump_mode": "output", "dump_list": [{"watcher_nodes": ["a"]}]},
            ["dump_data", "dump_level", "dump_kernel_data"],
        ),
        (
            VAIN | {"dump_scene": "lite_exception", "dump_stats": [], "dump_list": [], "quant_dumpable": "1"},
            ["dump_mode", "dump_op_switch", "dump_level", "dump_data", "dump_kernel_data", "dump_step", "dump_stats",
             "dump_list"],
        ),
        ({"dump_op_switch": "on", "dump_level": "op", "dump_list": [{}]}, ["dump_op_switch"]),
        ({"dump_op_switch": "on", "dump_level": "kernel", "dump_list": [{}]}, []),
        ({"dump_op_switch": "off", "dump_level": "kernel", "dump_list": [{}]}, ["dump_list"]),
        ({"dump_list": [{}], "dump_step": ""}, []),
    ],
)  # fmt: skip
def test_items_that_are_read_in_vain(directory, items, vain):
    found = [one for one in check_acl(text(**items)) if one.code == "DS-ACL-008"]
    assert [one.where.removeprefix("$.dump.") for one in found] == vain
    assert {(one.level, one.what[:11]) for one in found} <= {("no effect", "no effect: ")}


def test_what_nobody_reads_is_named_with_what_was_meant(directory):
    data = json.loads(text(dump_list=[{"layr": [], "optype_blacklist": [{"pos": ["in0", "input0"]}, {"pos": [" x"]}]}]))
    data |= {"dmp": {}}
    data["dump"] |= {"dump_stp": "", "dump_level": "op"}
    found = check_acl(json.dumps(data).encode())
    black = "$.dump.dump_list[0].optype_blacklist"
    allowed = ("input and output with a number, such as input0",)
    assert [(one.level, one.code, one.where, one.what, one.nearest, one.allowed) for one in found] == [
        ("no effect", "DS-ACL-010", "$.dmp", "no such item; it is ignored", "dump", ()),
        ("no effect", "DS-ACL-010", "$.dump.dump_stp", "no such item; it is ignored", "dump_step", ()),
        ("no effect", "DS-ACL-010", "$.dump.dump_list[0].layr", "no such item; it is ignored", "layer", ()),
        ("warning", "DS-ACL-009", f"{black}[0].pos", "'in0' is ignored", None, allowed),
        ("warning", "DS-ACL-009", f"{black}[1].pos", "' x' is ignored", None, allowed),
    ]
    assert check_acl(b"[]") == ()


def test_the_whole_schema():
    strings = {"type": "array", "items": {"type": "string"}}
    black = {
        "type": "array", "maxItems": 100,
        "items": {"type": "object", "properties": {"name": {"type": "string"}, "pos": strings}},
    }  # fmt: skip
    ends = {"type": "object", "properties": {"begin": {"type": "string"}, "end": {"type": "string"}}}
    found = acl_schema()
    items = found["properties"]["dump"].pop("properties")
    assert found == {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "ACL config", "type": "object",
        "properties": {"dump": {"type": "object"}},
    }  # fmt: skip
    assert {item.pop("type") for name, item in items.items() if name not in ("dump_stats", "dump_list")} == {"string"}
    assert all(item.pop("description", "") for name, item in items.items() if name not in ("dump_stats", "dump_list"))
    assert items == {  # [spec ge 2.1]
        "dump_path": {}, "dump_mode": {"enum": ["all", "input", "output"], "default": "output"},
        "dump_op_switch": {"enum": ["off", "on"], "default": "off"},
        "dump_level": {"enum": ["all", "kernel", "op"], "default": "all"}, "dump_scene": {"enum": SCENES.split("/")},
        "dump_data": {"enum": ["stats", "tensor"], "default": "tensor"},
        "dump_debug": {"enum": ["off", "on"], "default": "off"}, "dump_kernel_data": {"default": "all"},
        "dump_step": {},
        "dump_stats": {
            "type": "array", "minItems": 1,
            "items": {"enum": ["Avg", "L2norm", "Max", "Min", "Nan", "Negative Inf", "Positive Inf"]},
        },
        "dump_list": {"type": "array", "items": {"type": "object", "properties": {
            "model_name": {"type": "string"}, "layer": strings, "watcher_nodes": strings, "optype_blacklist": black,
            "opname_blacklist": black, "opname_range": {"type": "array", "items": ends},
        }}},
    }  # fmt: skip


@pytest.mark.parametrize("lacking", [0, 4, 2])  # nothing, R_OK, W_OK
def test_a_directory_is_read_and_written(directory, monkeypatch, lacking):
    monkeypatch.setattr("os.access", lambda path, mode: not mode & lacking)
    errors = [one.vendor for one in check_acl(text(dump_list=[])) if one.level == "error"]
    assert errors == ([VALUE.format("out", "dump_path", PERMISSION)] if lacking else [])


def test_characters_that_ge_refuses_are_counted_in_bytes(directory):
    """[spec ge 8.10]"""
    (directory / "\u00e9 x").mkdir()
    (directory / "out x").mkdir()
    assert refusal(text(dump_path="\u00e9 x")) == "100009: invalid dump_path [\u00e9 x] in dump config at 0"
    assert refusal(text(dump_path="out x")) == "100009: invalid dump_path [out x] in dump config at 3"
    load_acl(text(dump_path="out x", dump_scene="watcher"))
    load_acl(text(dump_path="out x", dump_scene="lite_exception"))
    assert len([one for one in check_acl(text(dump_path="10.0.0.1:/a", dump_list=[{}])) if one.level == "error"]) == 1


def test_an_overflow_dump_takes_no_list(directory):
    """[spec ge 2.3 step 6]"""
    text_ = "100009: nonsupport dump model when open dump overflow detection"
    assert refusal(text(dump_debug="on", dump_list=[{"model_name": "m"}])) == text_
    load_acl(text(dump_debug="on", dump_list=[]))
    load_acl(text(dump_debug="off", dump_list=[{"model_name": "m"}]))


@pytest.mark.parametrize(
    ("items", "what"),
    [
        ({"dump_scene": "watcher", "dump_debug": "on"}, "dump_debug on and dump_scene watcher exclude each other"),
        (
            {"dump_list": [{"watcher_nodes": ["a"]}]}, "dump_list[0].watcher_nodes needs dump_scene watcher",
        ),
        ({"dump_stats": ["Max"]}, "dump_stats and dump_data tensor exclude each other"),
        ({"dump_step": "5-2"}, '"5-2": the value has invalid format, start step must not exceed end step, expected '
         "format: 5-10"),
        ({"dump_mode": "both"}, '"both" is not a legal value'),
        ({"dump_path": 3}, "it is not a string"),
        ({"dump_list": [3]}, "it is not an object"),
        ({"dump_stats": [3]}, "the member is not a string"),
        ({"dump_list": [{"opname_range": [3]}]}, "the member is not an object"),
    ],
)  # fmt: skip
def test_our_own_words_beside_the_vendors(directory, items, what):
    found = next(one for one in check_acl(text(**items)) if one.level == "error")
    assert found.what == what


@pytest.mark.parametrize(
    ("items", "meant"),
    [
        ({"dump_step": "5-2"}, "2-5"), ({"dump_step": "5-x"}, None), ({"dump_step": "1-2-3"}, None),
        ({"dump_mode": "inputs"}, "input"), ({"dump_path": "out/a/b"}, "out"),
        ({"dump_path": "odd name/x"}, "odd name"),
        ({"dump_path": "file"}, None), ({"dump_path": "out:"}, None),
    ],
)  # fmt: skip
def test_what_was_probably_meant(directory, items, meant):
    found = next(one for one in check_acl(text(**items)) if one.level == "error")
    whole = meant if meant is None or "dump_path" not in items else str(directory / meant)
    assert found.nearest == whole
