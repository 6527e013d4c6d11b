"""The scheduler: which task of which stream runs next, and the report where none can."""

from typing import TYPE_CHECKING

from dumpsim.core.errors import DeviceError
from dumpsim.device.stream import Stream

if TYPE_CHECKING:
    from dumpsim.device.device import Device

__all__ = ["Scheduler"]


class Scheduler:
    """Steps the streams of all devices of all ranks until nobody progresses.

    Of the tasks that could start, the one with the smallest (time, rank, device, stream, serial) runs, so that one
    program has one order. There are no threads: work happens when the scheduler reaches it. [design; spec parallel 4.2]
    """

    def __init__(self) -> None:
        self._devices: list[Device] = []
        self._running = False

    def add(self, device: "Device") -> None:
        """Step the streams of that device too."""
        self._devices.append(device)
        self._devices.sort(key=lambda d: (d.rank, d.device_id))

    def run(self) -> None:
        """Run until no stream has work.

        Raises
        ------
        DeviceError
            Where work is left and nobody can progress; the text says who waits for what.
        """
        if self._running:  # asked by a task's own work: the outer loop goes on anyway
            return
        self._running = True
        try:
            while True:
                chosen: Stream | None = None
                best = (0, 0, 0, 0, 0)
                waiting = False
                for device in self._devices:
                    for stream in device.streams:
                        if not stream.tasks:
                            continue
                        waiting = True
                        start = stream.ready_ns()
                        if start is None:
                            continue
                        key = (start, device.rank, device.device_id, stream.stream_id, stream.tasks[0].serial)
                        if chosen is None or key < best:
                            chosen, best = stream, key
                if chosen is not None:
                    chosen.step(best[0])
                elif waiting:
                    raise self._stuck()
                else:
                    return
        finally:
            self._running = False

    def _stuck(self) -> DeviceError:
        streams = [s for device in self._devices for s in device.streams]
        lines = []
        for stream in streams:
            if not stream.tasks:
                continue
            task = stream.tasks[0]
            missing = task.gate.waits_for() if task.gate is not None else "nothing"
            lines.append(
                f"  {stream.describe()}: task {task.task_id} ({task.kind}, {task.name}) waits for {missing}; "
                f"{len(stream.tasks) - 1} tasks behind it"
            )
            stream.drop()
        failed = next((s for s in streams if s.error is not None), None)
        if failed is not None and failed.error is not None:
            failed.error.add_note("streams that waited for it:\n" + "\n".join(lines))
            return failed.error
        return DeviceError("deadlock: no stream can progress and work is left\n" + "\n".join(lines), code="DS-DEV-002")
