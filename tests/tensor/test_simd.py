"""Levels, and the environment variable that forces one."""

import re

import numpy as np
import pytest

from dumpsim.core.errors import BadInputError
from dumpsim.tensor.digest import digest
from dumpsim.tensor.simd import LEVELS, active_level, level_number, simd_levels
from dumpsim.tensor.stats import statistics


def cpu_flags():
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            found = re.search(r"^flags\s*:(.*)$", file.read(), re.MULTILINE)
    except FileNotFoundError:
        found = None
    return set(found.group(1).split()) if found else None


def test_levels_are_what_the_kernel_lists():
    flags = cpu_flags()
    if flags is None:
        assert simd_levels()[0] == "baseline"
        return
    avx2 = {"avx2", "fma", "f16c"} <= flags
    avx512 = avx2 and {"avx512f", "avx512dq", "avx512bw", "avx512vl"} <= flags
    assert simd_levels() == ("baseline", *(["avx2"] if avx2 else []), *(["avx512"] if avx512 else []))


def test_default_is_the_highest(monkeypatch):
    for value in (None, ""):
        monkeypatch.delenv("DUMPSIM_SIMD", raising=False)
        if value is not None:
            monkeypatch.setenv("DUMPSIM_SIMD", value)
        assert active_level() == simd_levels()[-1]


@pytest.mark.parametrize("level", simd_levels())
def test_forced(monkeypatch, level):
    monkeypatch.setenv("DUMPSIM_SIMD", level)
    assert active_level() == level
    assert LEVELS[level_number()] == level
    assert statistics(np.ones(100, np.float16)).sum == 100


@pytest.mark.parametrize("use", [lambda: statistics([1.0]), lambda: digest([b"x"], "md5"), active_level])
def test_an_unknown_level_is_an_error(monkeypatch, use):
    monkeypatch.setenv("DUMPSIM_SIMD", "baselin")
    with pytest.raises(
        BadInputError, match=r"DUMPSIM_SIMD: 'baselin' is not a SIMD level; allowed: baseline.*did you mean 'baseline'"
    ):
        use()


def test_a_level_that_the_cpu_lacks_is_an_error(monkeypatch):
    monkeypatch.setattr("dumpsim._ext.simd.detected", lambda: 0)
    monkeypatch.setenv("DUMPSIM_SIMD", "avx512")
    with pytest.raises(ValueError, match=r"this CPU has no 'avx512'; allowed: baseline \["):
        active_level()
