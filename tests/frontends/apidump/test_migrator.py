"""What the functions of the migrator take where a script says nothing. [seed 002]"""

import inspect
import logging
import os
from types import SimpleNamespace

import pytest

from dumpsim import migrator
from dumpsim.core.errors import ScriptTypeError
from dumpsim.frontends.apidump.selection import Request
from dumpsim.migrator import ApiDump, _framework, api_dump_init, api_dump_start, api_dump_stop
from dumpsim.world.context import RankContext, use

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


class Session:
    """A dump of which only the calls are known."""

    def __init__(self, framework, net, path, **options):
        self.given = {"framework": framework, "net": net, "path": path, **options}
        self.exact = options["exact"]
        self.output = SimpleNamespace(root=f"{path}/rank0/{framework}_api_dump", framework=framework)
        self.skipped, self.recorded, self.calls = {}, True, []

    def start(self, request):
        self.calls.append(request)

    def stop(self):
        self.calls.append("stop")

    def close(self):
        self.calls.append("close")


@pytest.fixture
def dumps(monkeypatch, caplog, tmp_path):
    """The sessions that the functions open in a rank of its own, and the lines that they log."""
    opened = []

    def open_session(*args, **options):
        opened.append(Session(*args, **options))
        return opened[-1]

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(migrator, "_open", open_session)
    monkeypatch.setattr(migrator, "_framework", lambda net: net)
    with use(RankContext.from_environment()), caplog.at_level(logging.WARNING, "troubleshooter.log"):
        yield opened, lambda: [record.getMessage() for record in caplog.records]


HINTS = [
    "[*User Attention*] For precision comparison, the probability p in the dropout method is set to 0.",
    "[*User Attention*] Please disable the shuffle function of the dataset before running the program.",
]  # [spec api_dump 1.10]


def test_a_dump_is_opened_started_and_stopped_with_the_words_of_the_real_tool(dumps, tmp_path):
    opened, said = dumps
    dump = api_dump_init("torch")
    (session,) = opened
    path = str(tmp_path / "ts_api_dump")
    assert session.given == {
        "framework": "torch", "net": "torch", "path": path, "retain_backward": False, "compare_statedict": False,
        "coverage": "listed", "exact": False,
    }  # fmt: skip
    made = f"[*User Attention*] The path '{path}' does not exist, the path will be created automatically."
    assert said() == [*HINTS, made]
    assert (dump.path, dump.skipped) == (f"{path}/rank0/torch_api_dump", {})
    api_dump_start()
    api_dump_start("list", ["NN_Linear_0"], "npy", False, False)
    assert session.calls == [
        Request(), Request(mode="list", scope=("NN_Linear_0",), dump_type="npy", filter_data=False, filter_stack=False)
    ]  # fmt: skip
    started = f"[*User Attention*] API dump has started. Dump data will be saved to {dump.path}. "
    assert said()[3:] == [started] * 2
    api_dump_stop()
    session.recorded, session.skipped = False, {"too old a thread": 2, "a device": 1}
    api_dump_stop()
    assert session.calls[2:] == ["stop", "stop"]
    assert dump.skipped == session.skipped
    assert dump.skipped is not session.skipped
    assert said()[5:] == [
        f"[*User Attention*] API dump has been stopped. Dump data has been saved to {dump.path}.",
        "[*User Warning*] API dump has been stopped, but no data has been saved. Please check the dump scope!",
        "[*User Attention*] Not recorded: 1 x a device, 2 x too old a thread.",
    ]
    dump.close()
    assert session.calls[-1] == "close"
    for function, verb in ((api_dump_start, "start"), (api_dump_stop, "stop")):
        with pytest.raises(RuntimeError) as caught:
            function()
        assert str(caught.value) == (
            f"You must call 'troubleshooter.api_dump.init' before calling'troubleshooter.api_dump.{verb}' function."
        )


def test_options_are_passed_on_and_an_existing_directory_is_not_announced(dumps, tmp_path):
    opened, said = dumps
    with api_dump_init("mindspore", tmp_path, retain_backward=1 == 1, compare_statedict=True, coverage="full") as dump:
        assert opened[0].calls == []
    assert opened[0].calls == ["close"]
    assert opened[0].given == {
        "framework": "mindspore", "net": "mindspore", "path": str(tmp_path), "retain_backward": True,
        "compare_statedict": True, "coverage": "full", "exact": False,
    }  # fmt: skip
    assert said() == HINTS
    assert isinstance(dump, ApiDump)


def test_a_new_dump_ends_the_one_before(dumps, tmp_path):
    opened, _ = dumps
    first, second = api_dump_init("torch", "a"), api_dump_init("torch", "b")
    assert [session.calls for session in opened] == [["close"], []]
    first.close()  # has no effect on the second
    second.start()
    api_dump_start()
    assert len(opened[1].calls) == 2


@pytest.mark.parametrize(
    ("before", "after", "continues"),
    [
        (("torch", "1.0.17"), ("torch", "1.0.17"), True), (("torch", None), ("torch", "1.0.17"), False),
        (("torch", "1.0.17"), ("torch", None), False), (("mindspore", "1.0.17"), ("mindspore", "1.0.17"), False),
        (("mindspore", "1.0.17"), ("torch", "1.0.17"), False), (("torch", "1.0.17"), ("mindspore", "1.0.17"), False),
    ],
)  # fmt: skip
def test_an_exact_dump_of_torch_goes_on_in_the_next_one(dumps, before, after, continues):
    opened, _ = dumps
    for framework, compat in (before, after):
        api_dump_init(framework, compat=compat)
    first, second = opened
    assert second.exact is (after[1] is not None)
    assert (second.given.get("previous") is first) is continues
    assert ("previous" in second.given) is continues
    assert first.calls == ([] if continues else ["close"])


def test_arguments_that_are_wrong_open_nothing(dumps, tmp_path):
    opened, said = dumps
    (tmp_path / "file").write_text("")
    known = "net, output_path, retain_backward, compare_statedict, coverage, compat"
    for options, kind, text in (
        ({"coverage": "all"}, ValueError, "api_dump_init(coverage=): 'all' is not known; allowed: listed, full"),
        ({"compat": "1.0.16"}, ValueError, "api_dump_init(compat=): '1.0.16' is not known; allowed: None, 1.0.17"),
        ({"compat": "1.0.17", "coverage": "full"}, ValueError, "1.0.17 has no other than the listed APIs"),
        ({"retain_bakward": True}, TypeError, f"there is no argument 'retain_bakward'; allowed: {known} (did you mean "
                                              "'retain_backward'?)"),
        ({"retain_backward": "x"}, TypeError, "The parameter 'retain_backward' must be <class 'bool'>"),
        ({"output_path": None}, RuntimeError, "set_dump_path 'None' error, please set a valid filename"),
        ({"output_path": "file"}, FileExistsError, f"[Errno 17] File exists: '{tmp_path / 'file'}'"),
    ):  # fmt: skip
        with pytest.raises(kind) as caught:
            api_dump_init("torch", **options)
        assert text in str(caught.value)
    assert (opened, said()) == ([], [])
    api_dump_init("torch", compat="1.0.17", retain_bakward=True)  # which the real tool ignores
    assert opened[0].exact


def test_a_network_of_another_tool_is_refused_by_its_package():
    for package, hint in (
        ("mindtorch.nn", "; dumps of MindTorch are read and compared, not made"),
        ("mindspore.nn", "; cells are dumped where our front end is MindSpore: dumpsim run SCRIPT"), ("others", ""),
    ):  # fmt: skip
        cell = type("Net", (type("Cell", (), {"__module__": package}),), {"__module__": "mine"})
        with pytest.raises(ScriptTypeError) as caught:
            _framework(cell())
        assert caught.value.what == f"net is {cell}{hint}"


def test_the_session_is_that_of_the_framework(monkeypatch, tmp_path):
    given = []
    monkeypatch.setattr(
        "dumpsim.frontends.apidump.mindspore.session.CellSession",
        lambda *args, **options: given.append((args, options)),
    )
    migrator._open("mindspore", "net", "path", exact=True)
    assert given == [(("net", "path"), {"exact": True})]
    assert os.listdir(tmp_path) == []
