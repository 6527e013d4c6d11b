"""The files of ``save_graphs``: which are written at which level, their numbers, forms and modes."""

import stat

import pytest

from dumpsim.codecs.irtext import render
from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype
from dumpsim.core.irdoc import IrDoc, IrNode
from dumpsim.runtime.irsave import GraphSaver, dot


def graph(name):
    kind = TensorType(dtype=dtype("float32"), shape=(2,))
    node = IrNode(
        index=0, name="CNode_0", op_type="Neg", prim_func=False, operands=(), operand_types=(), output=kind,
        full_name="Default/Neg-op0",
    )  # fmt: skip
    return IrDoc(name=name, graph_id=0, params=(), nodes=(node,))


DOCS = (graph("kernel_graph0"), graph("kernel_graph1"))


@pytest.mark.parametrize("release", ["seed", "2.7", "2.10"])
@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_files_by_level_and_release(tmp_path, release, level):
    """The documented releases write .dot at level 2 [seed 004], later ones at level 3 [2.10 observed]."""
    saver = GraphSaver(directory=tmp_path / "graphs", level=level, release=release)
    with_dot = level >= (2 if release == "seed" else 3)
    suffixes = [] if not level else [".ir", ".dot"] if with_dot else [".ir"]
    assert saver.active is bool(level)
    assert saver.save("graph_build", ()) == []  # takes no number
    expected, texts = [], {}
    for stage, docs in (("graph_build", DOCS), ("kernel_graph_0", DOCS[:1])):
        found = saver.save(stage, docs)
        names = [f"{stage}_{len(expected) + at:04d}{suffix}" for at, suffix in enumerate(suffixes)]
        assert found == [tmp_path / "graphs" / name for name in names]
        for path in found:
            assert stat.S_IMODE(path.stat().st_mode) == 0o400
            form = "old" if release == "seed" else "new"
            text = "".join(render(doc, form) if path.suffix == ".ir" else dot(doc) for doc in docs)
            texts[path.suffix, len(docs)] = path.read_text()
            assert texts[path.suffix, len(docs)] == text
        expected += names
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == sorted(expected)
    assert all(text.count("Neg") >= count for (_, count), text in texts.items())


def test_by_default_graphs_have_the_form_of_the_documented_releases(tmp_path):
    (path,) = GraphSaver(directory=tmp_path, level=1).save("stage", DOCS[:1])
    assert path.name == "stage_0000.ir"
    assert path.read_text() == render(DOCS[0], "old") != render(DOCS[0], "new") == render(DOCS[0])
