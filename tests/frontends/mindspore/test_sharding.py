"""Which parallel settings are refused."""

import numpy as np
import pytest
from inprocess import fresh

import dumpsim.frontends.mindspore as ms
from dumpsim.core.errors import UnsupportedError
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import context, nn
from dumpsim.frontends.mindspore.communication import init
from dumpsim.frontends.mindspore.parallel import _utils
from dumpsim.frontends.mindspore.parallel._layout import check_strategies
from dumpsim.world import launch

INPUT = np.ones((2, 3), np.float32)


def run():
    return nn.ReLU()(ms.Tensor(INPUT)).asnumpy()


def test_a_search_of_strategies_is_refused(monkeypatch):
    with fresh("O0", monkeypatch):
        context.set_auto_parallel_context(parallel_mode="auto_parallel", device_num=8)
        with pytest.raises(UnsupportedError, match=r"search_mode: auto_parallel over 8 devices with a search"):
            run()
        context.reset_auto_parallel_context()
        np.testing.assert_array_equal(run(), INPUT)


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
        {"parallel_mode": "semi_auto_parallel", "grad_accumulation_step": 1},
    ],
)  # fmt: skip
def test_what_runs_on_one_device_runs(monkeypatch, given):
    with fresh("O0", monkeypatch):
        context.set_auto_parallel_context(**given)
        np.testing.assert_array_equal(run(), INPUT)


def test_rank_and_number_of_devices_are_those_of_the_settings(monkeypatch):
    with fresh("O0", monkeypatch):
        context.set_auto_parallel_context(device_num=8, global_rank=3)
        assert (_utils._get_global_rank(), _utils._get_device_num()) == (0, 1)  # stand_alone
        for mode in ("data_parallel", "semi_auto_parallel"):
            context.set_auto_parallel_context(parallel_mode=mode)
            assert (_utils._get_global_rank(), _utils._get_device_num()) == (3, 8)
        context.reset_auto_parallel_context()
        context.set_auto_parallel_context(parallel_mode="data_parallel")
        assert (_utils._get_global_rank(), _utils._get_device_num()) == (0, 1)


@pytest.mark.parametrize("mode", _utils.ParallelMode.MODE_LIST)
def test_the_modes_that_broadcast_parameters(mode):
    _utils._parameter_broadcast_check(mode, False)
    if mode in ("data_parallel", "hybrid_parallel"):
        _utils._parameter_broadcast_check(mode, True)
    else:
        with pytest.raises(ValueError, match=f"do not support parameter broadcast, parallel_mode: {mode}, "):
            _utils._parameter_broadcast_check(mode, True)


@pytest.mark.parametrize(
    ("name", "own", "nests"), [("Add", False, False), ("Add", True, True), ("GroupedMatmul", False, True)]
)
def test_some_primitives_take_rows_of_rows(name, own, nests):
    layout = ms.Layout((2, 2), ("a", "b"))("a", "b")
    if nests:
        check_strategies(name, ((layout, layout), layout), None, own=own)
    else:
        with pytest.raises(TypeError, match="the value of strategy must be int type"):
            check_strategies(name, ((layout, layout), layout), None, own=own)


def test_a_second_strategy_of_a_cell_is_warned_of(capsys):
    def main():
        init()
        cell = nn.ReLU()
        cell.shard(((2, 1),))
        assert "configured more than once" not in capsys.readouterr().err
        cell.shard(((1, 2),))
        assert "existing in_strategy is ((2, 1),) and the existing out_strategy is None. The new in_strategy " in (
            capsys.readouterr().err
        )

    launch(main, 2, settings=RunSettings(quiet=True, manifest=None))
