"""A quantised model: what goes into a quantisation is folded away, and ``quant_dumpable`` keeps it for the dump."""

import numpy as np
import pytest

import dumpsim
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.acl.dump import finalize_dump
from dumpsim.runtime.session import Session
from dumpsim.world.context import RankContext, use

torch = pytest.importorskip("torch", reason="needs the extra torch")

from dumpsim.frontends.torchair._backend import get_npu_backend  # noqa: E402
from dumpsim.frontends.torchair._quantise import npu_anti_quant, npu_quantize  # noqa: E402
from dumpsim.frontends.torchair.configs.compiler_config import CompilerConfig  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

X = torch.tensor([[-3.0, -0.26, 0.25, 0.75], [1.0, 40.0, 100.0, -100.0]])
SCALE, OFFSET = torch.full((4,), 0.5), torch.full((4,), 3.0)


class Net(torch.nn.Module):
    """A linear part, quantised and given back, then another operator."""

    def __init__(self, *, divides=True, twice=False):
        super().__init__()
        self.divides, self.twice = divides, twice

    def forward(self, x):
        y = torch.abs(x)
        whole = npu_quantize(y, SCALE if self.divides else 1 / SCALE, OFFSET, torch.qint8, -1, self.divides)
        back = npu_anti_quant(whole, SCALE[:1], offset=-OFFSET[:1], dst_dtype=torch.float32)
        return back.relu() + (y if self.twice else back)


@pytest.fixture
def dumped(tmp_path, monkeypatch):
    """Run a model under settings of ``dump_config``; gives the arrays of the dump."""
    monkeypatch.chdir(tmp_path)
    torch._dynamo.reset()
    with use(RankContext.from_environment()):
        Session.use(Session(RunSettings(quiet=True, manifest=None), environment={}))

        def run(model, **settings):
            config = CompilerConfig()
            config.dump_config.enable_dump = True
            for name, value in settings.items():
                setattr(config.dump_config, name, value)
            with torch.no_grad():
                made = torch.compile(model, backend=get_npu_backend(compiler_config=config))(X)
                assert torch.equal(made, model(X))
            finalize_dump()
            return {(e.op_type, e.io, e.slot): e.array() for e in dumpsim.open(tmp_path)}

        yield run
        finalize_dump()


@pytest.mark.parametrize("divides", [True, False])
@pytest.mark.parametrize("keeps", [False, True])
def test_what_is_quantised_has_files_on_request(dumped, capsys, divides, keeps):
    found = dumped(Net(divides=divides), quant_dumpable=keeps)
    kind = "Quantize" if divides else "AscendQuantV2"
    wanted = np.clip(np.rint(np.abs(X.numpy()) / 0.5 + 3), -128, 127).astype(np.int8)
    np.testing.assert_array_equal(found[kind, "output", 0], wanted)
    np.testing.assert_array_equal(found["AscendAntiQuantV2", "output", 0], (wanted.astype(np.float32) - 3) * 0.5)
    np.testing.assert_array_equal(found[kind, "input", 0], np.abs(X.numpy()) if keeps else X.numpy())
    assert (("Abs", "output", 0) in found) is keeps
    assert "no effect" not in capsys.readouterr().err


def test_what_others_read_too_is_not_folded_and_that_is_said(dumped, capsys):
    assert ("Abs", "output", 0) in dumped(Net(twice=True), quant_dumpable=True)
    assert capsys.readouterr().err.count("quant_dumpable has no effect: no operator before a pair") == 1


def test_a_quantised_tensor_alone_is_no_pair(dumped):
    found = dumped(lambda x: npu_quantize(x.neg(), SCALE, None, torch.quint8, 1))
    np.testing.assert_array_equal(found["Quantize", "output", 0], np.clip(np.rint(-X / 0.5), 0, 255).numpy())
    assert ("Neg", "output", 0) in found
