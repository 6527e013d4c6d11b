"""Ctrl-C during work on gigabytes, and how much memory strided work takes."""

import os
import signal
import subprocess
import sys
import textwrap
import tracemalloc

import numpy as np
import pytest

from dumpsim.tensor.digest import digest
from dumpsim.tensor.stats import statistics

# Each call works for minutes if nobody stops it; the timer fires while it runs.
WORK = {
    "statistics": "statistics(zeros)",
    "statistics-threads": "statistics(zeros, threads=2)",
    "statistics-strided": "statistics(np.broadcast_to(np.float32(1), (1 << 38,)))",
    "statistics-strided-threads": "statistics(np.broadcast_to(np.float32(1), (1 << 38,)), threads=2)",
    "digest": "digest([zeros] * 3, 'sha1')",
    "digest-threads": "digest([zeros] * 4, 'md5', threads=2)",
    "digest-strided": "digest([np.broadcast_to(np.uint8(1), (1 << 40,))], 'md5')",
}
SCRIPT = """
import mmap, os, signal, threading
import numpy as np
from dumpsim.tensor.digest import digest
from dumpsim.tensor.stats import statistics
pages = mmap.mmap(-1, 64 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
zeros = np.frombuffer(pages, np.uint8)
statistics([1.0])
print("ready", flush=True)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    {work}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT to itself")
@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_ctrl_c(work):
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT).replace("{work}", work)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout.split() == ["ready", "interrupted"], process.stderr
    assert process.returncode == 0


@pytest.mark.parametrize("order", ["strided", "transposed", "big-endian"])
def test_no_full_copy(order):
    x = np.zeros((4096, 4096), np.float32)  # 64 MiB
    x = {"strided": x[:, ::2], "transposed": x.T, "big-endian": x.view(">f4")}[order]
    tracemalloc.start()
    try:
        statistics(x)
        if order != "big-endian":
            digest([x], "md5")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20
