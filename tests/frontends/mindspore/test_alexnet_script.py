"""A script of the form of MindSpore's AlexNet sample on CIFAR-10 files, unmodified but for the width of the network."""

from pathlib import Path

import numpy as np
import pytest
from dumprun import cli

SCRIPT = Path(__file__).parent / "training" / "alexnet_cifar10.py"


def cifar10(folder: Path, rows: int) -> None:
    """Write the five files of a training set: each row is a label and three planes of 32 x 32."""
    random = np.random.default_rng(7)
    folder.mkdir(parents=True)
    for number in range(1, 6):
        pixels = random.integers(0, 256, (rows, 1 + 3 * 32 * 32), np.uint8)
        pixels[:, 0] %= 10
        pixels.tofile(folder / f"data_batch_{number}.bin")


def trained(tmp_path: Path, *options: str) -> list[float]:
    cifar10(tmp_path / "data", 2)
    run = cli(tmp_path, "run", str(SCRIPT), "--data_path", str(tmp_path / "data"), *options)
    return [float(line.split()[-1]) for line in run.out.splitlines() if "loss is" in line]


def test_the_script_trains_from_cifar10_files(tmp_path):
    losses = trained(tmp_path, "--narrow", "16")
    assert len(losses) == 5
    assert all(1.8 < loss < 2.8 for loss in losses)  # ln 10 = 2.3


@pytest.mark.slow
def test_the_whole_network_trains(tmp_path):
    assert len(trained(tmp_path)) == 5
