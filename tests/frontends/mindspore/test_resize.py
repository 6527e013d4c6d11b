"""Resize against pixels recorded from real MindSpore, and against formulas that do not depend on OpenCV."""

from pathlib import Path

import numpy as np
import pytest

from dumpsim.core.errors import UnsupportedError
from dumpsim.frontends.mindspore.dataset import vision
from dumpsim.frontends.mindspore.dataset.vision import Inter, Resize

RECORDED = Path(__file__).parents[3] / "fixtures/frontends/mindspore/resize.npz"
IMAGE = np.zeros((8, 9, 3), np.uint8)


@pytest.mark.parametrize("how", [how for how in Inter if how is not Inter.ANTIALIAS])
def test_the_pixels_are_those_of_real_mindspore(how):
    with np.load(RECORDED) as recorded:
        cases = [name.split(".") for name in recorded.files if f".{how.name}." in name]
        assert len(cases) >= 12
        for number, kind, _, size in cases:
            given, wanted = recorded[f"{number}.{kind}"], recorded[f"{number}.{kind}.{how.name}.{size}"]
            sides = tuple(map(int, size.split("x")))
            made = Resize(sides if len(sides) == 2 else sides[0], how)(given)
            assert made.dtype == wanted.dtype
            np.testing.assert_array_equal(made, wanted, err_msg=f"{given.shape} {kind} to {size}")


def tent(given: int, wanted: int) -> np.ndarray:
    """The matrix of linear interpolation between the centres of pixels."""
    centre = np.clip((np.arange(wanted) + 0.5) * given / wanted - 0.5, 0, given - 1)
    return np.maximum(0, 1 - abs(centre[:, None] - np.arange(given)))


def cover(given: int, wanted: int) -> np.ndarray:
    """The matrix of the shares of input pixels in output pixels of the same total length."""
    low = np.arange(wanted)[:, None] * given / wanted
    left, right = np.arange(given), np.arange(given) + 1
    return np.clip(np.minimum(right, low + given / wanted) - np.maximum(left, low), 0, None) * wanted / given


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
@pytest.mark.parametrize(
    ("how", "matrix", "size"),
    [
        (Inter.LINEAR, tent, (21, 30)), (Inter.LINEAR, tent, (7, 30)),
        (Inter.AREA, cover, (7, 9)), (Inter.AREA, cover, (5, 10)),
        (Inter.AREA, cover, (15, 9)), (Inter.AREA, cover, (7, 20)),
    ],
)  # fmt: skip
def test_interpolation_is_a_product_of_matrices(how, matrix, size, kind):
    given = np.random.default_rng(3).integers(0, 256, (15, 20, 3)).astype(kind)
    wanted = np.einsum("ha,wb,abc->hwc", matrix(15, size[0]), matrix(20, size[1]), given.astype(float))
    assert abs(Resize(size, how)(given) - wanted).max() <= (1.01 if kind is np.uint8 else 1e-3)


def test_nearest_takes_the_pixel_at_the_index_rounded_down():
    given = np.arange(7 * 11, dtype=np.float16).reshape(7, 11)
    rows, columns = ([index * side // wanted for index in range(wanted)] for side, wanted in ((7, 5), (11, 16)))
    np.testing.assert_array_equal(Resize((5, 16), Inter.NEAREST)(given), given[np.ix_(rows, columns)])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: Resize(0), ValueError, r"Input is not within the required interval of \[1, 16777216\]."),
        (lambda: Resize((3, 0)), ValueError, r"Input size at dim 1 is not within the required interval of \[1, 21474"),
        (lambda: Resize((3, "a")), TypeError, "Argument size at dim 1 with value a is not of type"),
        (lambda: Resize("a"), TypeError, "Size should be a single integer or a list/tuple"),
        (lambda: Resize((1, 2, 3)), TypeError, "Size should be a single integer or a list/tuple"),
        (lambda: Resize(3, 1), TypeError, "Argument interpolation with value 1 is not of type"),
        (lambda: Resize(3, None), KeyError, "Interpolation should not be None"),
        (lambda: Resize(3, Inter.ANTIALIAS)(IMAGE), TypeError, "img should be PIL image"),
        (lambda: Resize(3)([[1, 2]]), TypeError, "Input should be NumPy or PIL image, got <class 'list'>"),
        (lambda: Resize(3)(IMAGE[0, 0]), RuntimeError, "at least two dimensions"),
        (lambda: Resize(3)(IMAGE[:0]), RuntimeError, "has no data"),
        (lambda: Resize(3)(IMAGE.astype(np.int64)), RuntimeError, "But got type int64"),
        (lambda: Resize(3)(IMAGE.astype(np.int32)), RuntimeError, "cannot blend pixels of type int32"),
        (lambda: Resize((8001, 3))(IMAGE), RuntimeError, "too big.* got output height: 8001, width: 3"),
        (lambda: Resize(3, Inter.PILCUBIC)(IMAGE[..., 0]), RuntimeError, "only supports image with 3 channels"),
        (lambda: Resize(3, Inter.PILCUBIC)(IMAGE.astype(np.float32)), UnsupportedError, "PILCUBIC"),
        (lambda: Resize(3).device("Ascend"), UnsupportedError, "DVPP"),
        (lambda: Resize(3).device("GPU"), ValueError, "valid set"),
        (lambda: vision.Decode(), UnsupportedError, "Decode is not emulated"),
    ],
)  # fmt: skip
def test_errors_are_those_of_mindspore(call, error, text):
    with pytest.raises(error, match=text):
        call()
