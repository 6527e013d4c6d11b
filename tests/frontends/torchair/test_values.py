"""Numbers of operators whose kernels work in another way than torch: dropout by bits, nearest neighbours."""

import numpy as np
import pytest

import dumpsim
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.acl.dump import finalize_dump
from dumpsim.runtime.session import Session
from dumpsim.world.context import RankContext, use

torch = pytest.importorskip("torch", reason="needs the extra torch")

from torch.nn import functional  # noqa: E402

from dumpsim.frontends.torchair._backend import get_npu_backend  # noqa: E402
from dumpsim.frontends.torchair.configs.compiler_config import CompilerConfig  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def dumped(tmp_path, monkeypatch):
    """Run a function with a dump; gives its result and the dumped arrays by operator, place and slot."""
    monkeypatch.chdir(tmp_path)
    torch._dynamo.reset()
    with use(RankContext.from_environment()):
        Session.use(Session(RunSettings(quiet=True, manifest=None), environment={}))

        def run(function, *arguments):
            config = CompilerConfig()
            config.dump_config.enable_dump = True
            result = torch.compile(function, backend=get_npu_backend(compiler_config=config))(*arguments)
            if torch.is_grad_enabled():
                result.sum().backward()
            finalize_dump()
            return result, {(e.op_type, e.io, e.slot): e.array() for e in dumpsim.open(tmp_path)}

        yield run
        finalize_dump()


def test_dropout_draws_a_bit_an_element_and_the_gradient_passes_by_the_same_bits(dumped):
    x = torch.linspace(1, 2, 3 * 67).reshape(3, 67).requires_grad_()
    torch.manual_seed(5)
    result, found = dumped(lambda x: functional.dropout(x, 0.25, True), x)
    bits = found["StatelessDropOutGenMask", "output", 0]
    assert (bits.dtype, bits.size) == (np.uint8, -(-x.numel() // 128) * 16)  # whole blocks of 128 bits
    kept = np.unpackbits(bits, bitorder="little")
    assert not kept[x.numel() :].any()
    kept = kept[: x.numel()].reshape(3, 67).astype(bool)
    assert 0.6 < kept.mean() < 0.9
    values = x.detach().numpy()
    np.testing.assert_array_equal(result.detach().numpy() != 0, kept)
    np.testing.assert_allclose(result.detach().numpy(), np.where(kept, values / 0.75, 0), rtol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), kept / np.float32(0.75), rtol=1e-6)
    torch.manual_seed(5)
    assert torch.equal(result, functional.dropout(x, 0.25, True))


@pytest.mark.parametrize("size", [(4, 6), (3, 5), (1, 1)])
def test_nearest_neighbours_are_rounded_down(dumped, size):
    x = torch.arange(12.0).reshape(1, 2, 2, 3)
    with torch.no_grad():
        result, found = dumped(lambda x: functional.interpolate(x, size=size, mode="nearest"), x)
    rows, columns = (np.arange(new) * old // new for new, old in zip(size, (2, 3), strict=True))
    wanted = x.numpy()[:, :, rows][:, :, :, columns]
    np.testing.assert_array_equal(found["ResizeNearestNeighborV2", "output", 0], wanted)
    np.testing.assert_array_equal(result.numpy(), wanted)


def test_the_gradient_of_nearest_neighbours_adds_up(dumped):
    x = torch.zeros(1, 1, 2, 2, requires_grad=True)
    weight = torch.arange(9.0).reshape(1, 1, 3, 3)
    dumped(lambda x: functional.interpolate(x, size=(3, 3), mode="nearest") * weight, x)
    np.testing.assert_array_equal(x.grad.numpy()[0, 0], [[0 + 1 + 3 + 4, 2 + 5], [6 + 7, 8]])
