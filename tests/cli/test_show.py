"""What ``show`` draws and prints of values."""

import ml_dtypes
import numpy as np
import pytest

from dumpsim.cli.show import _bars, _head

EIGHTHS = " ▏▎▍▌▋▊▉"


def test_bars_have_eight_steps_a_cell_and_the_largest_has_forty_cells():
    counts = [320, 160, 0, 1, 3, 7, 8, 9, 15]
    lines = _bars([float(at) for at in range(10)], counts)
    bars = [line.split("..")[1].split()[1:-1] for line in lines]
    for count, bar in zip(counts, bars, strict=True):
        (cells,) = bar or [""]
        assert 8 * cells.count("█") + sum(map(EIGHTHS.index, cells.strip("█"))) == count
        assert len(cells) == -(-count // 8)
    assert [line.split()[-1] for line in lines] == [str(count) for count in counts]
    assert lines[3].split()[:3] == ["3", "..", "4"]
    assert lines[0].split("..")[1] == f" {'1':<12} {'█' * 40} 320"
    assert lines[2].split("..")[1] == f" {'3':<12}  0"
    assert lines[6].split("..")[1] == f" {'7':<12} █ 8"


def test_a_bar_of_few_among_many_is_seen():
    assert "▏" in _bars([0.0, 1.0, 2.0], [1_000_000, 1])[1]


@pytest.mark.parametrize("counts", [[], [0, 0]])
def test_without_counts_there_are_no_bars(counts):
    assert _bars([0.0, 1.0, 2.0], counts) == []


@pytest.mark.parametrize("kind", [np.float16, np.int64, bool, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_the_first_values_are_numbers_of_python(kind):
    array = np.array([[1, 0], [1, 1]]).astype(kind)
    found = _head(array, 3).tolist()
    assert found == [1, 0, 1]
    assert {type(one) for one in found} <= {int, float, bool}
    assert _head(array, 9).size == 4


def test_the_first_values_of_whole_and_complex_numbers_stay_what_they_are():
    assert _head(np.array([2**62 + 1]), 1).tolist() == [2**62 + 1]
    assert _head(np.array([1 + 2j], np.complex64), 1).tolist() == [1 + 2j]
