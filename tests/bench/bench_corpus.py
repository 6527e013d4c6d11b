"""What of the recorded nets the emulation gets right, per feature, and how long a net takes.

`DUMPSIM_BENCH_NETS` is the number of nets, spread over the corpus (60); `python tests/corpus/rates.py` takes them all
and lists the causes of differences.
"""

import os

from corpus import compare, pack, rates


def test_rates_of_recorded_nets(benchmark, capsys):
    names = pack.names()
    count = min(int(os.environ.get("DUMPSIM_BENCH_NETS", "60")), len(names))
    nets = {name: pack.load(name) for name in (names[at * len(names) // count] for at in range(count))}
    results = benchmark.pedantic(rates.measure, (nets,), rounds=1)
    percent = rates.percentages(nets, results)["all"]
    benchmark.extra_info.update(percent)
    assert set(percent) == set(compare.MEASURES)
    with capsys.disabled():
        print(f"\n{rates.table(nets, results)}")
