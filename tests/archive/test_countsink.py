"""The sink that writes nothing counts what one that writes leaves on the disk."""

import os

import numpy as np
import pytest

from dumpsim.archive.countsink import OTHER, CountingSink
from dumpsim.archive.longname import MAPPING
from dumpsim.archive.sink import Sink

HEADER = "Op Type,Op Name,Max Value\n"


def step_of(directory):
    last = directory.rpartition("/")[2]
    return int(last) if last.isdecimal() else None


def dump(sink, root):
    """What a dump of two steps writes."""
    values = memoryview(np.ones(5, np.float32))
    sink.write(f"{root}/graphs", "g.ir", [b"graph"], mode=0o600)
    sink.write(f"{root}/graphs", "g.ir", [b"a longer graph"], mode=0o600)
    sink.write(f"{root}/constants", "Parameter.data-1.0.0.1.output.0.npy", [b"c"])
    for step in (0, 3):
        directory = f"{root}/Net/0/{step}"
        sink.write(directory, "Add.Default_Add-op0.0.0.1.output.0.npy", [b"head", values])
        sink.write(directory, "Add.Default_Add-op1.0.0.1.output.0.npy", [values])
        sink.append(directory, MAPPING, "123.npy,MatMul.Default_x-op0.0.0.1.output.0.npy\n")
        sink.write(directory, "123.npy", [b"12"])
        sink.append(directory, "statistic.csv", HEADER + "Add,a,1\n")
        sink.append(directory, "statistic.csv", "Müll,b,2\n")
        sink.append(f"{root}/execution_order", "ms_global_execution_order_graph_0.csv", f"{step}\n")
    sink.settle()


def on_disk(root):
    return {
        folder: (len(names), sum(os.path.getsize(f"{folder}/{name}") for name in names))
        for folder, _, names in os.walk(root)
        if names
    }


@pytest.fixture
def counted(tmp_path):
    sink = CountingSink(step_of)
    dump(sink, tmp_path)
    assert not any(tmp_path.iterdir())
    return sink


def test_both_sinks_count_the_files_and_bytes_of_the_disk(tmp_path, counted):
    sink = Sink()
    dump(sink, tmp_path)
    found = on_disk(tmp_path)
    assert len(found) == 5
    assert counted.written == found
    assert {folder: amount for folder, amount in sink.written.items() if "graphs" not in folder} == {
        folder: amount for folder, amount in found.items() if "graphs" not in folder
    }


def test_steps_and_types_add_up(counted):
    graphs, order, constant = len(b"a longer graph"), len("0\n"), 1
    assert {kind: (one.files, one.bytes) for kind, one in counted.steps[None].types.items()} == {
        OTHER: (2, graphs),
        "Parameter": (1, constant),
    }
    for step in (0, 3):
        types = {kind: (one.files, one.bytes) for kind, one in counted.steps[step].types.items()}
        assert types == {
            "Add": (3, 4 + 20 + 20 + len(HEADER) + len("Add,a,1\n")),
            "MatMul": (2, 2 + len("123.npy,MatMul.Default_x-op0.0.0.1.output.0.npy\n")),
            "Müll": (0, len("Müll,b,2\n".encode())),
            OTHER: (0, order),
        }
    assert sum(bytes_ for _, bytes_ in counted.written.values()) == sum(
        one.bytes for step in counted.steps.values() for one in step.types.values()
    )


def test_what_was_counted_is_there(tmp_path, counted):
    directory = f"{tmp_path}/Net/0/0"
    assert counted.has_directory(directory)
    assert not counted.has_directory(f"{tmp_path}/Net/0/1")
    assert not counted.is_new(directory, "statistic.csv")
    assert counted.is_new(directory, "other.csv")
    assert counted.exists(f"{tmp_path}/graphs", "g.ir")
    assert not counted.exists(f"{tmp_path}/graphs", "h.ir")


def test_both_sinks_answer_alike(tmp_path):
    def answers(sink):
        directory, found = f"{tmp_path}/Net/0/3", []
        for _ in range(2):
            found += [sink.has_directory(directory), sink.is_new(directory, "s.csv"), sink.exists(directory, "s.csv")]
            found += [sink.append(directory, "s.csv", "Müll,b,2\n"), sink.exists(directory, "a.json")]
            found += [sink.write(directory, "a.json", [b"12", memoryview(b"345")], mode=0o600)]
            found += [sink.exists(directory, name) for name in ("s.csv", "a.json", "b")] + [sink.is_new(directory, "b")]
        sink.settle()
        return found, sink.written

    assert answers(CountingSink(step_of)) == answers(Sink())
