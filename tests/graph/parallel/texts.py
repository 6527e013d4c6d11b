"""Our texts of the stages around sharding, of the script itself, against the recorded ones.

``python tests/graph/parallel/texts.py [NET...]`` prints the first differences of each net.
"""

import contextlib
import io
import re
import sys
import tempfile
import types
from collections import Counter
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

from graph.parallel.replay import load
from graph.parallel.stages import Line, Stage, read

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import context
from dumpsim.frontends.mindspore.common.api import _cell_graph_executor
from dumpsim.runtime.session import Session

__all__ = ["FIELDS", "difference", "operators_of", "same", "texts_of", "trains"]

FIELDS = ("call", "operands", "name", "instance", "strategy", "types", "scope", "attrs")


def trains(net: dict[str, str]) -> bool:
    """Whether a net is a training step."""
    return "TrainOneStepCell" in net["script"]


def operators_of(text: str, *, names_weights: bool) -> Counter[tuple[object, ...]]:
    """The operators of the forward pass and what was inserted for them, with numbers, strategies and attributes."""
    found: Counter[tuple[object, ...]] = Counter()
    for line in (line for stage in read(text) for line in stage.lines):
        if not (line.instance or line.strategy) or line.instance in ("assignadd", "opt"):
            continue
        attrs = dict(line.attrs.get("primitive_attrs", {}))
        attrs.pop("rank_size", None)  # 1 where only one rank of a pretended cluster compiles
        if (line.instance or "").startswith("parallel_optimizer"):  # a placeholder until gradients are expanded
            found["AllGather", *(attrs[name] for name in ("group", "group_ranks", "mirror_user_id"))] += 1
            continue
        if line.strategy and not names_weights:
            attrs.pop("mirror_user_id", None)
        numbers = tuple(text for text in line.operands if text[0] not in "%$")
        found[line.call, re.sub(r"\d{6,}", "", line.instance or ""), line.strategy, numbers, str(attrs)] += 1
    return found


def texts_of(script: str) -> dict[str, str]:
    """The texts ``begin`` and ``end`` of a script, which is compiled for a pretended world and not run."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        Session.use(Session(RunSettings(quiet=True, mindspore="2.10")))
        ms.set_device("Ascend")
        context.set_context(mode=ms.GRAPH_MODE, save_graphs=2, save_graphs_path=folder)
        context.reset_auto_parallel_context()
        source = script.replace("import mindspore as ms", "import dumpsim.frontends.mindspore as ms")
        source = source.replace("from mindspore", "from dumpsim.frontends.mindspore")
        path = Path(folder) / "net.py"
        path.write_text(source)
        module = types.ModuleType("net")
        exec(compile(source, str(path), "exec"), module.__dict__)
        context.set_auto_parallel_context(parallel_mode="semi_auto_parallel", **module.SETTINGS)
        try:
            _cell_graph_executor.compile(module.network(), *module.inputs())
        finally:
            context.reset_auto_parallel_context()
        return {
            name: text.read_text()
            for name in ("begin", "end")
            for text in Path(folder).rglob(f"step_parallel_{name}*.ir")
        }


def _value(line: Line, name: str):
    if name != "attrs":
        return getattr(line, name)
    shown = dict(line.attrs.get("primitive_attrs", {}))
    shown.pop("rank_size", None)  # one in a pretended world, whatever the group
    return sorted(shown.items()) if "redistribution" in (line.instance or "") else []


def difference(mine: Stage, real: Stage, fields: tuple[str, ...] = FIELDS) -> str:
    """The first difference of a function graph; "" where there is none."""
    for one, two in zip(mine.lines, real.lines, strict=False):
        for name in fields:
            if _value(one, name) != _value(two, name):
                return f"%{two.index} {two.call} {name}\n  got  {_value(one, name)}\n  want {_value(two, name)}"
    return "" if len(mine.lines) == len(real.lines) else f"{len(mine.lines)} lines, not {len(real.lines)}"


def same(net: dict[str, str], fields: tuple[str, ...] = FIELDS) -> str:
    """The first difference of all function graphs of both texts."""
    mine = texts_of(net["script"])
    for text in ("begin", "end"):
        ours, theirs = read(mine[text]), read(net[text])
        if len(ours) != len(theirs):
            return f"{text}: {len(ours)} function graphs, not {len(theirs)}"
        for one, two in zip(ours, theirs, strict=True):
            problem = difference(one, two, fields)
            if problem:
                return f"{text} @{two.name} {problem}"
    return ""


def main() -> None:
    """Command line."""
    nets = load("nets", "moving")
    chosen = sys.argv[1:] or list(nets)
    equal = {False: 0, True: 0}
    counts = {False: 0, True: 0}
    for name in chosen:
        kind = trains(nets[name])
        counts[kind] += 1
        try:
            problem = same(nets[name])
        except Exception as error:  # a net that is not compiled is a difference, too
            problem = repr(error)
        equal[kind] += not problem
        if problem:
            print(name, problem[:600])
    for kind, title in ((False, "evaluation"), (True, "training")):
        print(title, equal[kind], "of", counts[kind])


if __name__ == "__main__":
    main()
