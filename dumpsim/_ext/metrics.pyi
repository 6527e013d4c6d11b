import numpy as np
from numpy.typing import NDArray

Side = tuple[float, float, float, float, float]

def measure(
    own: NDArray[np.float32], golden: NDArray[np.float32], level: int
) -> tuple[Side, Side, float, float, float, float, float, float]: ...
def diverge(
    own: NDArray[np.float32],
    golden: NDArray[np.float32],
    own_low: float,
    own_high: float,
    golden_low: float,
    golden_high: float,
    level: int,
) -> tuple[float, float, float]: ...
