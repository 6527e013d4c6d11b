"""The scheduler of a job of `dumpsim msrun`: its hub, in a process of its own.

Run as ``python -m dumpsim.emulate.scheduler`` in the environment of the launcher, which writes a line for each of its
workers that has ended (``3 exit code 7``) to the standard input. The job ends with its last rank, or with the launcher.
The temporary directories of a launcher that was killed are removed here.
"""

import json
import os
import shutil
import sys
import threading
import time

from dumpsim.core.errors import BadInputError
from dumpsim.world.exchange import Ending
from dumpsim.world.hub import ADDRESS, TOKEN, Hub

__all__ = ["LAUNCHER", "main"]

LAUNCHER = "DUMPSIM_JOB_LAUNCHER"  # JSON: the launcher's process id and its temporary directories
_END_S = 10.0  # seconds for a launcher to end after its last report


def main() -> None:
    """Serve until the job is over."""
    size = int(os.environ["MS_WORKER_NUM"])
    try:
        hub = Hub(size, address=os.environ[ADDRESS], token=os.environ[TOKEN], report=_report)
    except BadInputError as error:
        print(f"ERROR: {error}", flush=True)
        raise SystemExit(2) from None
    print(f"The scheduler of {size} workers listens at {hub.address}.", flush=True)
    threading.Thread(target=_listen, args=[hub], daemon=True).start()
    with hub:
        hub.serve()
    print("The job is over.", flush=True)
    if any("has not come" in ending.text for ending in hub.endings.values()):
        raise SystemExit(1)  # later ranks cannot connect


def _listen(hub: Hub) -> None:
    """Read the launcher's reports on workers; its end is the end of the job."""
    for line in sys.stdin:
        rank, _, how = line.rstrip("\n").partition(" ")
        hub.lost(int(rank), how)
    launcher, directories = json.loads(os.environ[LAUNCHER])
    until = time.monotonic() + _END_S
    while os.getppid() == launcher and time.monotonic() < until:
        time.sleep(0.01)
    if os.getppid() != launcher:
        for directory in directories:
            shutil.rmtree(directory, ignore_errors=True)
        os._exit(1)  # processes of other launchers end by themselves
    hub.close()


def _report(rank: int, ending: Ending) -> None:
    """Log the end of a rank; a script that never connects ends without a report to the hub."""
    if ending.kind == "left" or ending.text == "exit code 0":
        print(f"rank {rank} has ended", flush=True)
    else:
        print(f"ERROR: rank {rank} has {ending.kind}: {ending.text}", flush=True)


if __name__ == "__main__":
    main()
