"""What a task costs in the scheduler: microseconds at 1 to 10,000 devices that share it, and the ratio to one device.

    python tests/bench/bench_scheduler.py [DEVICES ...]

All devices are busy at the same time, one task of each in turn, so that every task changes the stream. `launch` is what
the host pays to put a task on a stream, `run` what the scheduler pays to run it. The best of several rounds counts.
"""

import gc
import sys
from time import thread_time

from dumpsim.device.chip import chip
from dumpsim.device.device import Device
from dumpsim.device.scheduler import Scheduler
from dumpsim.device.task import Task, TaskKind

SIZES = (1, 100, 1_000, 10_000)
TASKS = 200_000
ROUNDS = 3


def work(task: Task) -> None:
    """Nothing."""


def measure(devices: int) -> tuple[float, float]:
    """Microseconds per task: launch, run."""
    scheduler = Scheduler()
    opened = [Device(chip("910B"), rank=rank, scheduler=scheduler, environment={}) for rank in range(devices)]
    streams = [device.stream(0) for device in opened]
    each = max(2, TASKS // devices)
    best = [float("inf"), float("inf")]
    for _ in range(ROUNDS):
        gc.collect()
        begin = thread_time()
        for _ in range(each):
            for stream in streams:
                stream.launch(Task(kind=TaskKind.AICORE, name="Default/Add-op0", work=work, cost_ns=1_000))
        middle = thread_time()
        for device in opened:
            device.synchronize()
        end = thread_time()
        best = [min(best[0], middle - begin), min(best[1], end - middle)]
    return best[0] / each / devices * 1e6, best[1] / each / devices * 1e6


def main() -> None:
    """Measure and print."""
    sizes = [int(text) for text in sys.argv[1:]] or SIZES
    one = 0.0
    print(f"{'devices':>8} {'launch us':>10} {'run us':>8} {'sum us':>8} {'ratio':>6}")
    for size in sizes:
        launch, run = measure(size)
        one = one or launch + run
        print(f"{size:>8,} {launch:>10.2f} {run:>8.2f} {launch + run:>8.2f} {(launch + run) / one:>6.2f}")


if __name__ == "__main__":
    main()
