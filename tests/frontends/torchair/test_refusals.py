"""80 snippets against the real converter: the graphs that it makes, or the texts with which it refuses them."""

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from dumpsim.core.settings import RunSettings  # noqa: E402
from dumpsim.frontends.torchair._backend import get_npu_backend  # noqa: E402
from dumpsim.frontends.torchair._refusals import refusal  # noqa: E402
from dumpsim.frontends.torchair._state import state  # noqa: E402
from dumpsim.runtime.session import Session  # noqa: E402
from dumpsim.world.context import RankContext, use  # noqa: E402
from tests.frontends.torchair.convertcases import recorded  # noqa: E402
from tests.frontends.torchair.refusalcases import ATTENTION, FUNCTIONS, case  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

CASES = {row["code"]: row for row in recorded("refusals")["cases"]}
QUICK = ["F.scaled_dot_product_attention (CPU default back end)", "x.prod()", "x == x.half()", "sort stable",
         "backward of slice", "x.median()", "roll"]  # fmt: skip
STRICT = {"torchair": "strict", "dispatch": "cpu", "attention": "fused"}


def outcome(name, choices):
    """Names of the nodes of each graph, and the lines of the error."""
    torch._dynamo.reset()
    function, value, grad = case(name)
    with use(RankContext()), torch.set_grad_enabled(grad):
        Session.use(Session(RunSettings(overrides=choices, quiet=True), environment={}))
        compiled = torch.compile(function, backend=get_npu_backend())
        kind, lines = None, []
        try:
            made = compiled(value)
            if grad:
                made.backward()
        except Exception as error:  # the record has it, too
            kind, lines = type(error).__name__, [line.strip() for line in str(error).splitlines() if line.strip()]
        graphs = [[node.name for node in graph.nodes if node.type not in ("Data", "Const")] for graph in state().graphs]
    return graphs, kind, lines


def test_every_snippet_of_the_record_is_here():
    assert CASES.keys() == FUNCTIONS.keys() | ATTENTION.keys()


@pytest.mark.parametrize("name", QUICK)
def test_a_snippet_is_converted_or_refused_as_by_the_real_converter(name):
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name not in QUICK])
def test_another_snippet_is_converted_or_refused_as_by_the_real_converter(name):
    check(name)


def check(name):
    graphs, kind, lines = outcome(name, STRICT)
    row = CASES[name]
    if row.get("text") == "CPU Generator does not use offset":  # what the recording ran on has no device's generator
        assert len(graphs) == row["graphs_before"]
        return
    if "graphs" in row:
        assert (graphs, kind) == (row["graphs"], None), lines
        return
    assert kind == row["error"]
    assert any(line.startswith(row["text"]) for line in lines), lines
    assert len(graphs) == row["graphs_before"]


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("aten.sort.stable", "torch.ops.aten.sort.stable ge_converter is not supported!"),
        ("aten.sub.Scalar", "torch.ops.aten.sub.Scalar ge_converter is redundant before pytorch 2.1.0!"),
        ("aten._native_batch_norm_legit.default", "torch.ops.aten._native_batch_norm_legit ge_converter is not"),
        ("prims.fma.default", "Failed to auto-generated converter for prims.fma.default to AscendIR: PyTorch built-in"),
        ("aten.median.default", "Failed to auto-generated converter for aten.median.default to AscendIR"),
    ],
)
def test_texts_by_overload(target, text):
    assert str(refusal(target)).startswith(text)
