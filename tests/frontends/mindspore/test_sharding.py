"""Networks that the real system would split over devices are refused, and nothing else of the settings is."""

import numpy as np
import pytest
from inprocess import fresh

import dumpsim.frontends.mindspore as ms
from dumpsim.core.errors import UnsupportedError
from dumpsim.frontends.mindspore import context, nn
from dumpsim.world.context import RankContext, use

INPUT = np.ones((2, 3), np.float32)


def run():
    return nn.ReLU()(ms.Tensor(INPUT)).asnumpy()


@pytest.mark.parametrize("mode", ["semi_auto_parallel", "auto_parallel"])
def test_a_network_is_not_run_as_one_device_where_it_would_be_split(monkeypatch, mode):
    with fresh("O0", monkeypatch):
        context.set_auto_parallel_context(parallel_mode=mode, device_num=8)
        with pytest.raises(UnsupportedError, match=rf"parallel_mode: {mode} over 8 devices is not emulated"):
            run()
        context.reset_auto_parallel_context()
        np.testing.assert_array_equal(run(), INPUT)


def test_the_size_of_the_world_counts():
    with use(RankContext(size=2)):
        context.set_context(mode=context.GRAPH_MODE)
        context.set_auto_parallel_context(parallel_mode="semi_auto_parallel")
        with pytest.raises(UnsupportedError, match="semi_auto_parallel over 2 devices"):
            run()


def test_pipeline_stages_are_refused(monkeypatch):
    with fresh("O0", monkeypatch):
        context.set_auto_parallel_context(pipeline_stages=2)
        with pytest.raises(UnsupportedError, match=r"pipeline_stages: 2 stages are not emulated; allowed: 1"):
            run()


@pytest.mark.parametrize(
    "given",
    [
        {"parallel_mode": "semi_auto_parallel"}, {"parallel_mode": "auto_parallel", "device_num": 1},
        {"parallel_mode": "data_parallel"}, {"device_num": 8},
    ],
)  # fmt: skip
def test_what_runs_on_one_device_runs(monkeypatch, given):
    with fresh("O0", monkeypatch):
        context.set_auto_parallel_context(**given)
        np.testing.assert_array_equal(run(), INPUT)
