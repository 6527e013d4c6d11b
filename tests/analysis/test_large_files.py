"""The largest files that each reader takes: one byte more is refused before it is read. All files are sparse."""

import numpy as np
import pytest
from smalltree import chain, write

import dumpsim
from dumpsim.analysis.derivedlayouts import derived
from dumpsim.analysis.msaccucmp import fusion
from dumpsim.analysis.namemap import read_names
from dumpsim.analysis.overflow import overflows
from dumpsim.analysis.place import Place
from dumpsim.analysis.slicing import layouts_of
from dumpsim.core.errors import DumpsimError

X = np.ones((2, 2), np.float32)
MIB, GIB = 1 << 20, 1 << 30


def grown(path, size):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.truncate(size)
    return path


def graph(root, name):
    write(root, chain(X, X))
    return root / "rank_0" / "graphs" / name


def documents(root):
    return next(iter(dumpsim.open(root))).graphs.documents


READERS = {
    "text of a graph": (512 * MIB, lambda root: graph(root, "ms_output_trace_code_graph_0.ir"), documents),
    "protobuf of a graph": (512 * MIB, lambda root: graph(root, "ms_output_trace_code_graph_0.pb"), documents),
    "text for layouts": (
        256 * MIB, lambda root: root / "rank_0" / "graphs" / "ms_output_trace_code_graph_0.ir",
        lambda root: list(derived(root)),
    ),
    "map of names": (16 * MIB, lambda root: root / "names.json", lambda root: read_names(root / "names.json")),
    "compiled model": (GIB, lambda root: root / "model.json", lambda root: fusion.load(str(root / "model.json"))),
    "manifest": (GIB, lambda root: root / "dumpsim-manifest.json", layouts_of),
    "record of an overflow": (
        MIB, lambda root: root / "Opdebug.Node_OpDebug.9.2.1700000000000100.output.0.json",
        lambda root: list(overflows(Place(path=root))),
    ),
    "statistics of an operator": (
        MIB, lambda root: root / "Add.a.1.2.1700000000000000.csv", lambda root: list(dumpsim.open(root)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_a_file_of_one_byte_more_than_its_limit_is_refused(tmp_path, name):
    limit, place, read = READERS[name]
    grown(place(tmp_path), limit + 1)
    with pytest.raises(DumpsimError, match=f"is larger than {limit} bytes"):
        read(tmp_path)
