"""The graphs of nine nets against those that the real TorchAir handed to GE, node by node."""

from importlib.machinery import SourceFileLoader
from types import ModuleType

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from dumpsim.core.settings import RunSettings  # noqa: E402
from dumpsim.frontends.torchair._backend import get_npu_backend  # noqa: E402
from dumpsim.frontends.torchair._state import state  # noqa: E402
from dumpsim.runtime.session import Session  # noqa: E402
from dumpsim.world.context import RankContext, use  # noqa: E402
from tests.frontends.torchair.convertcases import RECORDS, recorded  # noqa: E402
from tests.frontends.torchair.netrecord import facets, of_version, record  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


def compiled(name, dispatch):
    """The graphs of a net."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    loader = SourceFileLoader("net", str(RECORDS / "nets" / f"{name}.txt"))
    net = ModuleType("net")
    loader.exec_module(net)
    with use(RankContext()):
        Session.use(Session(RunSettings(overrides={"dispatch": dispatch}, quiet=True), environment={}))
        backend = get_npu_backend()
        net.run(lambda function, **keywords: torch.compile(function, backend=backend, **keywords))
        return [record(graph) for graph in state().graphs]


def check(name, dispatch, record_name):
    real, ours = recorded(record_name)["graphs"], compiled(name, dispatch)
    assert [graph["graph"] for graph in ours] == [graph["graph"] for graph in real]
    for left, right in zip(real, ours, strict=True):
        assert list(map(facets, right["nodes"])) == list(map(facets, left["nodes"]))
        assert set(right["removed_by_passes"]) == set(left.get("removed_by_passes", ()))
        targets = [(one["name"], one["target"], one.get("module", "")) for one in left["fx"]]
        kept = {one[0] for one in targets}
        found = [(one["name"], one["target"], one["module"]) for one in right["fx"] if one["name"] in kept]
        wanted = [(a, b, "" if c is None else c) for a, b, c in targets]
        assert [one[0] for one in found] == [one[0] for one in wanted]
        assert [one[2] for one in found] == [one[2] for one in wanted]


@pytest.mark.parametrize("name", ["mlp", "train", "graph_break", "inplace_views", "cnn_bn", "ln_gelu"])
def test_a_net_gives_the_graphs_that_the_real_converter_gives(name):
    check(name, "cpu", name)


@pytest.mark.dev
@pytest.mark.slow
@pytest.mark.parametrize("name", ["bert", "llama_prefill", "vit"])
@pytest.mark.parametrize("dispatch", ["cpu", "npu"])
def test_a_model_gives_the_graphs_that_the_real_converter_gives(name, dispatch):
    record_name = name if dispatch == "cpu" else f"npu_dispatch/{name}"
    with of_version(recorded(record_name)["versions"]["transformers"]):
        check(name, dispatch, record_name)
