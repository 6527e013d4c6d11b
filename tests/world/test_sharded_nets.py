"""Random nets of sharded operators against the same nets on one device, both run by dumpsim.

The nets are those of ``tests/graph/parallel/generate.py``, with other values in place of ones.
"""

import importlib.util
import re
import sys

import numpy as np
import pytest
from graph.parallel.generate import MORE, STEPS, script_of

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore.communication import get_rank, init
from dumpsim.world import launch

SETTINGS = RunSettings(quiet=True, manifest=None)
VALUES = '''

def values(shape, kind=np.float32):
    """Small numbers that differ: row numbers where integers are asked for."""
    count = int(np.prod(shape, dtype=int))
    found = np.arange(count) * 37 % 64 if kind == np.int32 else (np.arange(count) * 7919 % 13 - 4) / 16
    return found.reshape(shape).astype(kind)

'''


def module_of(seed, folder, steps=STEPS):
    """The script of a net as a module of dumpsim's front end."""
    text = script_of(seed, steps).replace("np.ones(", "values(").replace("P.Sqrt(", "P.Abs(")
    text = text.replace("P.ReduceMax(", "P.ReduceSum(")  # equal maxima on two ranks have other gradients than on one
    text = re.sub(r"^(from|import) mindspore", r"\1 dumpsim.frontends.mindspore", text, flags=re.MULTILINE)
    text = text.replace("\nSETTINGS", f"{VALUES}\nSETTINGS", 1)
    path = folder / f"net_{seed}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def run(module, is_split):
    """Results of a net, and its Parameters with their layouts."""
    ms.set_context(mode=ms.GRAPH_MODE)
    init()
    settings = module.SETTINGS
    is_parted = settings["dataset_strategy"] == "data_parallel"
    arrays = [tensor.asnumpy() for tensor in module.inputs()]
    if is_parted:
        devices = settings["device_num"]
        arrays = [module.values((a.shape[0] * devices, *a.shape[1:]), a.dtype) for a in arrays]
    if is_split:
        given = {k: v for k, v in settings.items() if k not in ("device_num", "global_rank", "gradients_mean")}
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", **given)
        if is_parted:
            rank = get_rank()
            arrays = [np.split(a, devices)[rank] for a in arrays]
    net = module.network()
    result = net(*map(ms.Tensor, arrays)).asnumpy()
    return result, {p.name: (p.asnumpy(), p._layout) for p in net.get_parameters()}


def check(seed, folder, steps=STEPS):
    module = module_of(seed, folder, steps)
    devices = module.SETTINGS["device_num"]
    ((expected, weights),) = launch(run, 1, args=[module, False], settings=SETTINGS)
    parts = launch(run, devices, args=[module, True], settings=SETTINGS)
    scale = max(np.abs(expected).max(), 1e-3)
    seen = set()
    for rank, (result, own) in enumerate(parts):
        places = places_of(result, expected, scale)
        assert places, f"rank {rank} has no part of the result"
        if result.ndim and expected.shape[0] == devices * result.shape[0]:
            assert (rank, *[0] * (result.ndim - 1)) in places
        seen |= places
        for name, (value, layout) in own.items():
            whole = weights[name][0]
            place = layout.region(rank) if layout is not None else ...
            atol = 1e-3 * max(np.abs(whole).max(), 1)
            np.testing.assert_allclose(value, whole[place], rtol=1e-3, atol=atol, err_msg=f"{name} of rank {rank}")
    assert seen == set(np.ndindex(*counts_of(parts[0][0], expected))), "the parts make up the result"


def counts_of(part, whole):
    """Return into how many parts the axes of the whole are cut."""
    return [n // m for n, m in zip(whole.shape, part.shape, strict=True)]


def steps_of(seed):
    """The steps of a net: those that move, cut and repeat are in the second half of the nets."""
    return STEPS if seed < 7000 else MORE


def places_of(part, whole, scale):
    """Yield the possible regions of a part in the whole, which is cut into parts of its shape."""
    found = set()
    for place in np.ndindex(*counts_of(part, whole)):
        region = tuple(slice(at * n, (at + 1) * n) for at, n in zip(place, part.shape, strict=True))
        if np.allclose(part, whole[region], rtol=2e-4, atol=2e-5 * scale):
            found.add(place)
    return found


@pytest.mark.parametrize("seed", [*range(2000, 2006), *range(7000, 7006)])
def test_a_split_net_gives_what_the_net_gives(seed, tmp_path):
    check(seed, tmp_path, steps_of(seed))


def test_a_default_strategy_that_does_not_fit_is_refused(tmp_path):
    """[recorded: MindSpore refuses it with these words, too]"""
    with pytest.raises(ValueError, match="shape value 2 at dim index 0 cannot be divisible by strategy value 8"):
        check(7090, tmp_path, steps_of(7090))


@pytest.mark.slow
def test_many_more_split_nets_give_what_the_nets_give(tmp_path):
    failed = []
    for seed in [*range(2006, 2050), *range(7006, 7050), 7251, 7256]:
        try:
            check(seed, tmp_path, steps_of(seed))
        except Exception as error:
            failed.append((seed, f"{type(error).__name__}: {str(error)[:300]}"))
    assert not failed, failed
