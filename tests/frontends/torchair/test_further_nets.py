"""Nets that were recorded with the real Python half after the converters were written, and held against ours then.

A few small nets that hold every operator are compared by default, all of them with DUMPSIM_NETS=all.
"""

import logging
import os
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
from tests.frontends.torchair.netrecord import facets, of_version, record  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

MODELS = ["bert_half", "gpt2_decode", "clip_image", "qwen_dynamic", "t5_train", "roberta_train", "whisper_encoder",
          "opt_dynamic", "albert_npu", "gptj_decode", "convnext_train", "bart_train", "bloom_decode", "gemma_dynamic",
          "segformer_train", "swin_refused"]  # of transformers  # fmt: skip
ALWAYS = ["mlp", "train", "graph_break", "inplace_views", "cnn_bn", "ln_gelu"]  # which test_nets.py compares
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
        made, wanted = ([repr(facets(node)) for node in graph["nodes"]] for graph in (right, left))  # NaN is a value
        assert made == wanted
        assert set(right["removed_by_passes"]) == set(left.get("removed_by_passes", ()))


def types(nets):
    """Types of the operators in the graphs of nets."""
    return {node["type"] for net in nets for graph in net["graphs"] for node in graph["nodes"]}


def covering(nets, covered):
    """Names of a few small nets whose graphs hold every operator type that any of the nets has.

    The net that adds most types for its size is taken next; what later ones made superfluous goes again.
    """
    missing = types(nets.values()) - covered
    sizes = {name: 40 + sum(len(graph["nodes"]) for graph in net["graphs"]) for name, net in nets.items()}
    found = []
    while left := missing - types(nets[name] for name in found):
        found.append(max(sorted(nets), key=lambda name: len(types([nets[name]]) & left) / sizes[name]))
    for name in sorted(found, key=sizes.get, reverse=True):
        others = [one for one in found if one != name]
        if not missing - types(nets[one] for one in others):
            found = others
    return found


FURTHER = recorded("further")["nets"]
COVERED = types([*map(recorded, ALWAYS), *(FURTHER[name] for name in QUICK)])
CHOSEN = list(FURTHER) if os.environ.get("DUMPSIM_NETS") == "all" else [*QUICK, MODELS[0], *covering(FURTHER, COVERED)]


def names(of):
    return [name for name in of if name in CHOSEN]


def test_the_chosen_nets_hold_every_operator():
    assert types(FURTHER[name] for name in CHOSEN) | COVERED >= types(FURTHER.values())
    assert len(set(CHOSEN)) == len(CHOSEN) <= len(FURTHER)


@pytest.mark.parametrize("name", names(QUICK))
def test_a_net_gives_the_graphs_of_the_real_converter(name, monkeypatch):
    check(name, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", names(name for name in FURTHER if name not in (*QUICK, *MODELS)))
def test_another_net_gives_the_graphs_of_the_real_converter(name, monkeypatch):
    check(name, monkeypatch)


@pytest.mark.dev
@pytest.mark.slow
@pytest.mark.parametrize("name", names(MODELS))
def test_a_model_gives_the_graphs_of_the_real_converter(name, monkeypatch):
    with of_version("5.23.0"):
        check(name, monkeypatch)
