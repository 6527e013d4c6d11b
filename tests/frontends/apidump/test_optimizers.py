"""Steps of optimizers: the mode stays away from them, and comes back."""

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from torch import nn  # noqa: E402

from dumpsim import migrator  # noqa: E402
from dumpsim.codecs.apidump import read_info  # noqa: E402

pytestmark = pytest.mark.torch


def names(path):
    return [record.name for record in read_info(path / "rank0" / "torch_api_dump_info.pkl")]


def problem():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.Linear(3, 1))
    return net, torch.randn(4, 3)


def test_nothing_of_a_step_is_recorded_and_all_behind_it_is(tmp_path):
    net, x = problem()
    optimizer = torch.optim.Adam(net.parameters())
    with migrator.api_dump_init(net, tmp_path) as dump:
        dump.start(dump_type="stack")
        net(x).sum().backward()
        before = torch._C._len_torch_function_stack()
        seen = []
        optimizer.register_step_post_hook(lambda *_: None)
        optimizer.register_step_pre_hook(lambda *_: seen.append(torch._C._len_torch_function_stack()))
        optimizer.step()
        assert seen == [before - 1]
        assert torch._C._len_torch_function_stack() == before
        torch.relu(x)
        dump.stop()
    calls = {name.split("_forward")[0] for name in names(tmp_path) if not name.startswith("LAYER")}
    assert calls == {"NN_Linear_0", "NN_Dropout_0", "NN_Linear_1", "Tensor_sum_0", "Torch_relu_0"}


def test_a_failed_step_does_not_end_the_dump(tmp_path):
    class Failing(torch.optim.SGD):
        def step(self, closure=None):
            raise RuntimeError("no step")

    net, x = problem()
    optimizer = Failing(net.parameters())
    with migrator.api_dump_init(net, tmp_path) as dump:
        dump.start(dump_type="stack")
        net(x)
        with pytest.raises(RuntimeError, match="no step"):
            optimizer.step()
        torch.relu(net(x))
        dump.stop()
    found = names(tmp_path)
    assert "NN_Linear_3_forward_output" in found
    assert "Torch_relu_0_forward_output" in found


def test_dropout_is_neutral_in_a_closure(tmp_path):
    def trained(dump):
        net, x = problem()
        if not dump:
            net[1].p = 0.0
        optimizer = torch.optim.LBFGS(net.parameters(), max_iter=3)

        def closure():
            optimizer.zero_grad()
            loss = net(x).square().sum()
            loss.backward()
            return loss

        if not dump:
            return optimizer.step(closure), [p.detach().clone() for p in net.parameters()]
        with migrator.api_dump_init(net, tmp_path) as session:
            session.start(dump_type="stack")
            found = optimizer.step(closure), [p.detach().clone() for p in net.parameters()]
            session.stop()
        return found

    (loss, weights), (expected_loss, expected) = trained(True), trained(False)
    assert torch.equal(loss, expected_loss)
    assert all(torch.equal(a, b) for a, b in zip(weights, expected, strict=True))


@pytest.mark.parametrize("filter_data", [True, False])
def test_outlines_are_what_a_measured_record_says(tmp_path, filter_data):
    """Stack mode looks at no values; type, shape and choice of what is recorded are those of statistics."""
    values = [
        torch.ones(2, 3, dtype=kind) for kind in (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.cfloat)
    ]
    values += [torch.ones(()), torch.ones(0, 2), nn.Parameter(torch.ones(2)), torch.ones(2, device="meta")]
    values += [torch.ones(2, 2).to_sparse()]
    found = {}
    for mode in ("stack", "statistics"):
        with migrator.api_dump_init(nn.Identity(), tmp_path / mode) as dump:
            dump.start(dump_type=mode, filter_data=filter_data)
            for value in values:
                torch.reshape(value, value.shape) if not value.is_sparse else torch.relu(value)
            torch.cat([values[0], values[0]], 0)
            torch.max(values[0], 1)
            torch.add(values[0], 1)
            dump.stop()
            found[mode] = dump.skipped
        records = read_info(tmp_path / mode / "rank0" / "torch_api_dump_info.pkl")
        found[mode, "records"] = [(record.name, record.dtype, record.shape) for record in records]
    assert found["stack", "records"] == found["statistics", "records"]
    assert found["stack"] == found["statistics"]
    assert len(found["stack", "records"]) > 8
