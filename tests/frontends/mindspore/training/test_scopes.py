"""Names of backward kernels, against those of MindSpore 2.10 for the same nets."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from dumpsim.frontends.mindspore import Tensor, nn, ops

FOLDER = Path(__file__).parents[4] / "fixtures" / "mindspore_2_10" / "gradient_scopes"
RECORDED = json.loads((FOLDER / "names.json").read_text())


def load():
    spec = importlib.util.spec_from_file_location("gradient_scope_nets", FOLDER / "nets.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_names_of_backward_kernels(name, mode, kernels):
    nets = load()
    mode("graph")
    make, shape = nets.build(nn, ops)[name]
    nets.trained(nn, ops, make())(Tensor(np.ones(shape, np.float32)))

    backward = sorted(kernel for kernel in kernels() if kernel.startswith("Gradients/"))

    assert backward == RECORDED[name]


def test_the_gradient_of_a_transposed_convolution_is_named_after_its_primitive(mode, kernels):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.up = nn.Conv2dTranspose(2, 2, 2, stride=2)

        def construct(self, x):
            return ops.reduce_sum(self.up(x))

    class Gradient(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net = Net()

        def construct(self, x):
            return ops.grad(self.net)(x)

    mode("graph")
    Gradient()(Tensor(np.ones((1, 2, 4, 4), np.float32)))
    (name,) = [kernel for kernel in kernels() if "Grad_Conv2D" in kernel]
    assert name == "Gradients/Default/net-Net/up-Conv2dTranspose/Grad_Conv2DTranspose/Conv2D-op0"
