"""What it costs to open devices in one process: seconds, resident memory and address space.

    python tests/bench/bench_devices.py [DEVICES ...]

Each device allocates a block, writes it and runs a task. Every number of devices is measured in a process of its own.
"""

import subprocess
import sys
from time import perf_counter

SIZES = (1, 100, 1_000, 10_000)


def status(name: str) -> int:
    """A line of /proc/self/status, in bytes."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def measure(count: int) -> None:
    """Open that many devices and print a line."""
    import numpy as np

    from dumpsim.device.chip import chip
    from dumpsim.device.device import Device
    from dumpsim.device.scheduler import Scheduler
    from dumpsim.device.task import Task, TaskKind

    before, tables = status("VmRSS"), status("VmPTE")
    begin = perf_counter()
    scheduler, environment = Scheduler(), {}
    devices = []
    for rank in range(count):
        device = Device(chip("910B"), rank=rank, device_id=rank, scheduler=scheduler, environment=environment)
        buffer = device.memory.allocate(512)
        buffer.write(np.full(512, rank % 251, np.uint8))
        device.stream(0).launch(Task(kind=TaskKind.AICORE, name="Default/Add-op0", cost_ns=1_000))
        devices.append(device)
    for device in devices:
        device.synchronize()
    seconds = perf_counter() - begin
    used = status("VmRSS") - before
    print(
        f"{count:>8,} {seconds:>8.2f} {seconds / count * 1e6:>10.0f} {used / 2**20:>13.1f} "
        f"{used / count / 1024:>11.1f} {(status('VmPTE') - tables) / 2**20:>13.1f} {status('VmSize') / 2**40:>12.2f}"
    )


def main() -> None:
    """Measure each size in a process of its own."""
    if sys.argv[1:2] == ["--one"]:
        measure(int(sys.argv[2]))
        return
    print(
        f"{'devices':>8} {'seconds':>8} {'us/device':>10} {'resident MiB':>13} {'KiB/device':>11} "
        f"{'page tab. MiB':>13} {'address TiB':>12}"
    )
    for size in [int(text) for text in sys.argv[1:]] or SIZES:
        sys.stdout.flush()
        subprocess.run([sys.executable, __file__, "--one", str(size)], check=False)


if __name__ == "__main__":
    main()
