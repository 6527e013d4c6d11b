"""Nets that were recorded with the real Python half after the converters were written, and held against ours then."""

import logging
from importlib.machinery import SourceFileLoader
from types import ModuleType

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from torch.utils._python_dispatch import _disable_current_modes  # noqa: E402

from dumpsim.core.settings import RunSettings  # noqa: E402
from dumpsim.frontends.torchair import _backend  # noqa: E402
from dumpsim.frontends.torchair._state import state  # noqa: E402
from dumpsim.runtime.session import Session  # noqa: E402
from dumpsim.world.context import RankContext, use  # noqa: E402
from tests.frontends.torchair.convertcases import RECORDS, recorded  # noqa: E402
from tests.frontends.torchair.netrecord import facets, record  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

MODELS = ["bert_half", "gpt2_decode", "clip_image", "qwen_dynamic", "t5_train", "roberta_train", "whisper_encoder",
          "opt_dynamic", "albert_npu", "gptj_decode", "convnext_train"]  # of transformers  # fmt: skip
QUICK = ["half_types", "grown_batch_train", "numbers_as_inputs"]


@pytest.fixture(autouse=True)
def _no_logs():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def graphs_of(name, dispatch, monkeypatch):
    """The graphs as GE gets them, and the error that ended the net."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    net = ModuleType("net")
    SourceFileLoader("net", str(RECORDS / "nets" / f"{name}.txt")).exec_module(net)
    graphs, load = [], _backend.load

    def loaded(*arguments, **keywords):
        with _disable_current_modes():
            graphs.append(record(state().graphs[-1]))
        return load(*arguments, **keywords)

    monkeypatch.setattr(_backend, "load", loaded)
    with use(RankContext()):
        choices = {"dispatch": dispatch, "torchair": "strict"}
        Session.use(Session(RunSettings(overrides=choices, quiet=True), environment={}))
        backend = _backend.get_npu_backend()
        try:
            net.run(lambda function, **keywords: torch.compile(function, backend=backend, **keywords))
        except Exception as error:  # some nets are refused
            return graphs, error
    return graphs, None


def check(name, monkeypatch):
    real = recorded("further")["nets"][name]
    ours, error = graphs_of(name, real["dispatch"], monkeypatch)
    if "failure" in real:
        assert type(error).__name__ == real["failure"]["type"]
        assert real["failure"]["text"][:200] in str(error)
    else:
        assert error is None
    assert [graph["graph"] for graph in ours] == [graph["graph"] for graph in real["graphs"]]
    for left, right in zip(real["graphs"], ours, strict=True):
        assert list(map(facets, right["nodes"])) == list(map(facets, left["nodes"]))
        assert set(right["removed_by_passes"]) == set(left.get("removed_by_passes", ()))


def names(*, quick):
    return [name for name in recorded("further")["nets"] if name not in MODELS and (name in QUICK) is quick]


@pytest.mark.parametrize("name", names(quick=True))
def test_a_net_gives_the_graphs_of_the_real_converter(name, monkeypatch):
    check(name, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", names(quick=False))
def test_another_net_gives_the_graphs_of_the_real_converter(name, monkeypatch):
    check(name, monkeypatch)


@pytest.mark.dev
@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_model_gives_the_graphs_of_the_real_converter(name, monkeypatch):
    check(name, monkeypatch)
