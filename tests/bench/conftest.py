"""Ratios of functions that are timed in turn, in one run.

`DUMPSIM_BENCH_MB` is the size of the input (256). No test asserts a time: a ratio depends
on the machine and on who else uses it.
"""

import os
from time import perf_counter, thread_time

import pytest

ROUNDS = 7


@pytest.fixture
def bench_bytes():
    """Bytes of the benchmark's input."""
    return int(float(os.environ.get("DUMPSIM_BENCH_MB", "256")) * 2**20)


@pytest.fixture
def race(benchmark, capsys):
    """race(size, subject, **rivals): best seconds of each, alternating; ratios go to extra_info and to the terminal.

    A ratio above 1 means that the subject is faster than the rival. What runs in one thread is timed by that thread's
    own clock, so that other work on the machine counts less.
    """

    def run(size, subject, *, threads=1, **rivals):
        clock = thread_time if threads == 1 else perf_counter
        functions = {"dumpsim": subject, **rivals}
        best = dict.fromkeys(functions, float("inf"))
        for function in functions.values():
            function()  # warm up: page tables, tables, threads
        for _ in range(ROUNDS):
            for name, function in functions.items():
                start = clock()
                function()
                best[name] = min(best[name], clock() - start)
        text = [f"dumpsim {size / best['dumpsim'] / 1e9:.2f} GB/s"]
        for name in rivals:
            ratio = best[name] / best["dumpsim"]
            benchmark.extra_info[f"speed / {name}"] = round(ratio, 3)
            text.append(f"{name} {size / best[name] / 1e9:.2f} GB/s (ratio {ratio:.2f})")
        benchmark.pedantic(subject, rounds=1)
        with capsys.disabled():
            print(f"\n  {benchmark.name}: {', '.join(text)}")
        return best

    return run
