"""dumpsim convert of 1,000 bin files against the disk's own write speed: `pytest tests/bench/bench_convert.py`.

The rival writes files of the same sizes, whose bytes lie in memory, without sync, in the same run and in turn.
`DUMPSIM_BENCH_FILE_KB` is the size of a tensor (256).
"""

import os
import shutil
from time import perf_counter

import numpy as np
import pytest
from binfile import bin_bytes, item

from dumpsim.analysis.convert import convert

FILES = 1000
ROUNDS = 3


@pytest.mark.parametrize("layout", ["ND", "NC1HWC0"])
def test_against_the_disk(tmp_path, capsys, layout):
    elements = int(os.environ.get("DUMPSIM_BENCH_FILE_KB", "256")) * 512
    channels = max(1, elements // (28 * 28))
    host = (np.arange(channels * 28 * 28) % 999).astype(np.float16).reshape(1, channels, 28, 28)
    if layout == "ND":
        tensor = item(host)
    else:
        blocks = -(-channels // 16)
        padded = np.zeros((1, blocks * 16, 28, 28), np.float16)
        padded[:, :channels] = host
        device = np.ascontiguousarray(padded.reshape(1, blocks, 16, 28, 28).transpose(0, 1, 3, 4, 2))
        tensor = item(device, format=layout, original_shape=host.shape)
    dump = tmp_path / "dump"
    dump.mkdir()
    content = bin_bytes([tensor])
    for number in range(FILES):
        (dump / f"Relu.relu{number}.1.2.{1700000000000000 + number}").write_bytes(content)
    result = bytes(128 + host.nbytes)

    def plain(out):
        out.mkdir()
        for number in range(FILES):
            with open(out / f"Relu.relu{number}.1.2.{1700000000000000 + number}.input.0.ND.float16.npy", "wb") as file:
                file.write(result)

    def ours(out):
        summary = convert(dump, out)
        assert summary.nbytes == FILES * len(result)

    best = {}
    for turn in range(ROUNDS):
        for name, work in (("disk", plain), ("dumpsim", ours)):
            out = tmp_path / f"{name}{turn}"
            start = perf_counter()
            work(out)
            best[name] = min(best.get(name, float("inf")), perf_counter() - start)
            shutil.rmtree(out)
    rate = {name: FILES * len(result) / seconds / 1e9 for name, seconds in best.items()}
    with capsys.disabled():
        text = [f"{name} {seconds:.2f} s ({rate[name]:.2f} GB/s)" for name, seconds in best.items()]
        ratio = best["disk"] / best["dumpsim"]
        print(f"\n  {layout}: {FILES} files of {len(result)} bytes: {', '.join(text)}, ratio {ratio:.2f}")
