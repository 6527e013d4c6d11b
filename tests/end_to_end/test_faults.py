"""Fault plans on real scripts: what the script sees, what is on disk, and how the run ends."""

import dumprun
import numpy as np
import pytest

CAUGHT = (
    dumprun.NET.split("    ms.set_seed")[0]
    + """
    ms.set_seed(1)
    net = Net()
    for step in range(3):
        x = Tensor(np.random.RandomState(step).randn(2, 3, 4, 4).astype(np.float32))
        try:
            print("step", step, np.isfinite(net(x).asnumpy()).all())
        except RuntimeError as error:
            print("step", step, type(error).__name__, str(error).splitlines()[0])
            sys.exit(7)
"""
)


def whole(run):
    """Every tensor on disk can be read, and nothing unfinished lies beside it."""
    for path in run.files():
        assert not path.name.startswith(".dumpsim"), path
        if path.suffix == ".npy":
            np.load(path)
        elif path.name == "statistic.csv":
            text = path.read_text()
            assert text.endswith("\n")
            assert len({line.count('"') for line in text.splitlines()[1:]}) == 1


def test_an_overflow_spreads_and_the_overflow_dump_finds_it(tmp_path):
    faults = [{"kind": "overflow", "op": "ReLU", "nth": 2}, {"kind": "overflow", "op": "ReLUU"}]
    run = dumprun.dump(tmp_path, CAUGHT, faults=faults, op_debug_mode=3, iteration="all")
    assert run.out.splitlines() == ["step 0 True", "step 1 False", "step 2 True"]
    assert {name.rsplit("/", 1)[0] for name in run.names()} == {"Net/0/1"}
    assert run.names()[:2] == [
        "Net/0/1/ReLU.Default_relu-ReLU_ReLU-op0.0.0.input.0.DefaultFormat.float32.npy",
        "Net/0/1/ReLU.Default_relu-ReLU_ReLU-op0.0.0.output.0.DefaultFormat.float32.npy",
    ]
    assert np.isinf(np.load(run.tensor("ReLU.Default_relu-ReLU_ReLU-op0.0.0.output.0.", 1))).sum() == 1
    assert run.types() == ["Add", "BiasAdd", "Flatten", "MatMul", "ReLU"]  # those that pass it on count, too
    assert "fault plan: overflow of 'ReLUU' never struck: 0 launches matched" in run.err
    assert f"dumpsim stat {run.root} --bad" in run.err
    limited = dumprun.dump(
        tmp_path, CAUGHT, name="limited", faults=faults[:1], op_debug_mode=3, iteration="all", overflow_number=2
    )
    assert limited.types() == ["Flatten", "ReLU"]


@pytest.mark.parametrize(("chip", "largest"), [("910A", 65504.0), ("910B", np.inf)])
def test_a_value_beyond_the_range_saturates_on_one_chip_and_not_on_the_other(tmp_path, chip, largest):
    script = dumprun.NET.replace("self.relu(self.conv(x))", "self.relu(ops.cast(self.conv(x), ms.float16))").replace(
        "self.fc(self.flat(x))", "self.fc(ops.cast(self.flat(x), ms.float32))"
    )
    faults = [{"kind": "overflow", "op": "ReLU", "value": 1e6}]
    run = dumprun.dump(tmp_path, script, faults=faults, options=("--chip", chip))
    found = np.load(run.tensor("ReLU.Default_relu-ReLU_ReLU-op0.0.0.output.0."))
    assert (found.dtype, float(found.max())) == (np.float16, largest)


def test_a_stomp_changes_what_later_readers_see(tmp_path):
    faults = [{"kind": "stomp", "after": "ReLU", "target": "ReLU", "nbytes": 8, "byte": 64}]
    run = dumprun.dump(tmp_path, faults=faults)
    written = np.load(run.tensor("ReLU.Default_relu-ReLU_ReLU-op0.0.0.output.0.")).reshape(-1)
    read = np.load(run.tensor("Flatten.Default_flat-Flatten_Flatten-op0.0.0.input.0.")).reshape(-1)
    trampled = np.frombuffer(bytes([64] * 8), np.float32)
    assert np.array_equal(read[:2], trampled)
    assert np.array_equal(written[2:], read[2:])


def test_an_ai_core_error_ends_the_script_and_mode_4_saves_the_operands(tmp_path):
    faults = [{"kind": "aicore_error", "op": "*/fc-Dense/MatMul-op0", "nth": 2}]
    run = dumprun.dump(tmp_path, CAUGHT, faults=faults, op_debug_mode=4, code=7)
    first, last = run.out.splitlines()
    assert first == "step 0 True"
    assert last.startswith("step 1 DeviceError Sync stream failed, error code 507015")
    assert "fault kernel_name=Default/fc-Dense/MatMul-op0" in last
    fields = [name.rsplit("/", 1)[-1].split(".")[:6] for name in run.names()]
    assert {(kind, io) for kind, _, _, _, io, _ in fields} == {("MatMul", "input")}
    assert [slot for *_, slot in fields] == ["0", "1", "2", "3"]
    assert {name.rsplit("/", 1)[0] for name in run.names()} == {"Net/0/1"}
    whole(run)
    plain = dumprun.dump(tmp_path, CAUGHT, name="plain", faults=faults, saved_data="full", iteration="all", code=7)
    types = [name.split("/")[-1].split(".")[0] for name in plain.names() if name.startswith("Net/0/1/")]
    assert list(dict.fromkeys(types))[:3] == ["Conv2D", "ReLU", "Flatten"]
    assert not [name for name in plain.names() if "/1/MatMul" in name and "output" in name]
    assert len([name for name in plain.names() if name.startswith("Net/0/0/")]) == 19
    whole(plain)


@pytest.mark.parametrize("fault", [{"op": "MatMul", "nth": 2}, {"bytes": 9000}])
def test_memory_that_runs_out_shows_the_plan(tmp_path, fault):
    run = dumprun.dump(tmp_path, faults=[{"kind": "out_of_memory", **fault}], iteration="all", code=1)
    assert "OutOfMemoryError: Memory not enough: Device(id:0) memory isn't enough and alloc failed" in run.err
    assert "memory plan of device 0:" in run.err
    assert "weight" in run.err
    assert run.out == ""
    assert len([name for name in run.names() if name.startswith("Net/0/0/")]) == (19 if "op" in fault else 0)
    whole(run)


def test_a_full_disk_keeps_what_is_written_and_stops_the_run(tmp_path):
    free = dumprun.dump(tmp_path, name="free", saved_data="full", iteration="all")
    sizes = sum(path.stat().st_size for path in free.files())
    faults = [{"kind": "disk_full", "after_bytes": 40_000}]
    run = dumprun.dump(tmp_path, faults=faults, saved_data="full", iteration="all", code=1)
    assert "DumpWriteError" in run.err
    assert "the disk is full" in run.err
    assert "not everything is written" in run.err
    assert sum(path.stat().st_size for path in run.files()) <= 40_000 < sizes
    whole(run)
    for path in run.files():
        there = free.rank / path.relative_to(run.rank)
        if path.name == "statistic.csv":
            assert there.read_bytes().startswith(path.read_bytes())
        elif path.name != "data_dump.json":  # the config, with another path
            assert there.read_bytes() == path.read_bytes()
    # releases log it and go on
    released = dumprun.dump(
        tmp_path, CAUGHT, name="released", faults=faults, iteration="all", options=("--mindspore", "2.10")
    )
    assert released.out.splitlines()[-1] == "step 2 True"
    assert "the disk is full" in released.err
    whole(released)


def test_a_slow_disk_takes_time_of_the_virtual_clock(tmp_path):
    fast = dumprun.dump(tmp_path, name="fast")
    slow = dumprun.dump(tmp_path, name="slow", faults=[{"kind": "slow_disk", "mb_per_s": 0.01}])
    assert fast.names() == slow.names()
    spans = []
    for run in (fast, slow):
        stamps = sorted(dumprun.stamp(path) for path in run.rank.rglob("*.npy"))
        spans.append(stamps[-1] - stamps[0])
    written = sum(path.stat().st_size for path in slow.rank.rglob("*.npy"))
    assert spans[1] - spans[0] > 0.8 * written / 10_000 * 1e6  # microseconds at 10 kB/s
