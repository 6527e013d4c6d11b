"""The compiled recorder where threads, starts and hooks meet in the middle of calls."""

import sys
import threading

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")

from torch import nn  # noqa: E402

from dumpsim import migrator  # noqa: E402
from dumpsim._ext.recorder import Lines  # noqa: E402
from dumpsim.codecs.apidump import read_info, read_stack  # noqa: E402

pytestmark = pytest.mark.torch


def names(path):
    return [record.name for record in read_info(path / "rank0" / "torch_api_dump_info.pkl")]


def test_lines_are_taken_once_and_asked_for_when_there_are_enough():
    asked = []
    lines = Lines(3, lambda: asked.append(lines.take()))
    for at in range(7):
        lines.add(f"n{at}", f"t{at}")
    assert asked == [([f"n{at}" for at in part], [f"t{at}" for at in part]) for part in (range(3), range(3, 6))]
    assert (len(lines), lines.total) == (1, 7)
    assert lines.take() == (["n6"], ["t6"])
    assert lines.take() == ([], [])


@pytest.mark.parametrize("mode", ["stack", "statistics"])
def test_records_of_threads_have_numbers_of_their_own_and_lines_together(tmp_path, mode):
    threads, calls = 4, 150
    before = sys.getswitchinterval()
    with migrator.api_dump_init(nn.Identity(), tmp_path) as dump:
        dump.start(dump_type=mode)

        def run():
            value = torch.ones(2)
            for _ in range(calls):
                torch.add(value, value)

        workers = [threading.Thread(target=run) for _ in range(threads)]
        sys.setswitchinterval(1e-6)
        try:
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        finally:
            sys.setswitchinterval(before)
        dump.stop()
    found = names(tmp_path)
    parts = ("forward_input.0", "forward_input.1", "forward_output")
    order = [int(name.split("_")[2]) for name in found[::3]]
    assert sorted(order) == list(range(threads * calls))
    assert found == [f"Torch_add_{number}_{part}" for number in order for part in parts]
    assert len(read_stack(tmp_path / "rank0" / "torch_api_dump_stack.json")) == threads * calls


class Restarts(nn.Module):
    """Starts the dump anew in the middle of its forward."""

    def __init__(self, dump):
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.dump = dump

    def forward(self, value):
        if self.dump:
            self.dump.pop().start(dump_type="statistics")
        return torch.relu(self.inner(value))


def test_a_start_inside_of_modules_leaves_no_call_covered(tmp_path):
    dumps = []
    net = nn.Sequential(Restarts(dumps), nn.ReLU())

    def restart(*_):
        if dumps:
            dumps.pop().start(dump_type="statistics")

    net[1].register_forward_hook(restart)
    with migrator.api_dump_init(net, tmp_path) as dump:
        for _ in range(2):
            dump.start(dump_type="statistics")
            dumps[:] = [dump, dump]
            net(torch.ones(2))
            torch.add(net(torch.ones(2)), 1)
            dump.stop()
    found = names(tmp_path)
    for api, calls in (("NN_Linear", 4), ("Torch_relu", 4), ("Torch_add", 2)):
        assert sum(name.startswith(api) and name.endswith("_forward_output") for name in found) == calls


def test_hooks_of_gradients_go_with_their_graph_and_with_the_dump(tmp_path):
    net = nn.Linear(2, 2)
    with migrator.api_dump_init(net, tmp_path, retain_backward=True) as dump:
        dump.start(dump_type="stack")
        for _ in range(3000):  # more than are kept before those of finished graphs are let go
            net(torch.ones(2)).relu().sum()
        alive = net(torch.ones(2))
        assert len(dump._session.hooked) <= 4096
        dump.stop()
        assert len(alive._backward_hooks) == 1
    assert not alive._backward_hooks
