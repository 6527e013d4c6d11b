"""Graph documents with the number types and layouts of kernels on the device."""

import numpy as np
from inprocess import fresh

from dumpsim.frontends.mindspore import Tensor, nn


class Net(nn.Cell):
    """A convolution between operators that know no private format."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 17, 1, pad_mode="valid", weight_init="ones")
        self.relu = nn.ReLU()

    def construct(self, x):
        return self.relu(self.conv(x + 1.0))


class Graphs:
    """A listener that keeps the documents of kernel graphs."""

    def __init__(self):
        self.docs = []

    def wants(self, event):
        return hasattr(event, "doc")

    def graph_compiled(self, event):
        self.docs.append(event.doc)


def shown(monkeypatch, chip):
    """Operands and results of each kernel, by its type."""
    with fresh("O0", monkeypatch, chip=chip) as session:
        tap = Graphs()
        session.add_tap(tap)
        Net()(Tensor(np.ones((2, 3, 4, 5), np.float32)))
        (doc,) = tap.docs
    kernels = {node.op_type: node for node in doc.nodes if node.kernel_out is not None}
    return {
        kind: [(io.dtype, io.format, io.shape) for io in (*node.kernel_in, *node.kernel_out)]
        for kind, node in kernels.items()
    }


def test_kernels_show_the_layout_of_their_tensors_on_the_device(monkeypatch):
    found, plain = shown(monkeypatch, "910A"), shown(monkeypatch, "910B")
    assert found["Conv2D"] == [
        ("Float16", "NC1HWC0", (2, 1, 4, 5, 16)),
        ("Float16", "FRACTAL_Z", (1, 2, 16, 16)),
        ("Float16", "NC1HWC0", (2, 2, 4, 5, 16)),
    ]
    whole = {"Float32", "DefaultFormat"}
    assert all({kind, layout} == whole for ios in plain.values() for kind, layout, _ in ios if kind.startswith("Float"))
    assert found["ReLU"] == plain["ReLU"] == [("Float32", "DefaultFormat", (2, 17, 4, 5))] * 2
    assert plain["Conv2D"][0] == ("Float32", "DefaultFormat", (2, 3, 4, 5))
