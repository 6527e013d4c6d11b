"""What of the recorded nets the emulation gets right.

``python tests/corpus/rates.py`` prints the rates of the whole corpus, per feature, and the causes of differences;
``--from FOLDER`` takes the recorded folders below it instead. ``--net NAME`` shows for one net (a name of the corpus,
or a recorded folder) what differs, at the earliest stage: operators, scopes, graphs, numbers, order, files, values.
"""

import argparse
import difflib
import json
import os
import pickle
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from corpus import compare, emulated, pack


def rates(results: Iterable[compare.Result]) -> dict[str, tuple[int, int]]:
    """Sums of the counts of several nets by measure."""
    found = dict.fromkeys(compare.MEASURES, (0, 0))
    for result in results:
        for measure, (equal, total) in result.counts.items():
            found[measure] = (found[measure][0] + equal, found[measure][1] + total)
    return found


def measure(nets: Mapping[str, Mapping[str, Any]], keep: Path | None = None) -> dict[str, compare.Result]:
    """Run the nets under the emulation and compare each with its record."""
    with emulated.Emulator() as emulator:
        return _compared(emulator, nets, keep)


def _compared(
    emulator: emulated.Emulator, nets: Mapping[str, Mapping[str, Any]], keep: Path | None = None
) -> dict[str, compare.Result]:
    scripts = {name: net["script"] for name, net in nets.items()}
    return {name: compare.compare(nets[name], tree) for name, tree in emulator.run(scripts, keep)}


class Measured:
    """Results of nets of the corpus.

    Parameters
    ----------
    emulator : Emulator
    shared : Path, optional
        A folder for the results of this run of tests, so that no other process of it measures the same net again.
    """

    def __init__(self, emulator: emulated.Emulator, shared: Path | None = None) -> None:
        self._emulator = emulator
        self._shared = shared

    def __call__(self, names: Iterable[str]) -> dict[str, compare.Result]:
        """Results by name; see `measure`."""
        found = {name: self._known(name) for name in names}
        missing = {name: pack.load(name) for name, result in found.items() if result is None}
        measured = _compared(self._emulator, missing) if missing else {}
        for name, result in measured.items():
            self._keep(name, result)
        return {name: result or measured[name] for name, result in found.items()}

    def _known(self, name: str) -> compare.Result | None:
        if self._shared is None:
            return None
        try:
            found: compare.Result = pickle.loads((self._shared / name).read_bytes())
        except FileNotFoundError:
            return None
        return found

    def _keep(self, name: str, result: compare.Result) -> None:
        if self._shared is None:
            return
        self._shared.mkdir(exist_ok=True)
        unfinished = self._shared / f"{name}.{os.getpid()}"
        unfinished.write_bytes(pickle.dumps(result))
        unfinished.replace(self._shared / name)


def by_feature(nets: Mapping[str, Mapping[str, Any]], results: Mapping[str, compare.Result]) -> dict[str, list[str]]:
    """Names of the nets of each feature."""
    found: dict[str, list[str]] = {}
    for name in results:
        for feature in nets[name]["features"]:
            found.setdefault(feature, []).append(name)
    return dict(sorted(found.items()))


FLOORS = Path(__file__).with_name("floors.json")


def floors() -> dict[str, Any]:
    """Nets, and floors in percent by feature and measure, of the ``sample`` and of the ``corpus``."""
    found: dict[str, Any] = json.loads(FLOORS.read_text())
    return found


def percentages(
    nets: Mapping[str, Mapping[str, Any]], results: Mapping[str, compare.Result]
) -> dict[str, dict[str, float]]:
    """Rates in percent, rounded down to a tenth, by feature and measure; what was compared nowhere is left out."""
    found = {}
    for feature, names in [("all", list(results)), *by_feature(nets, results).items()]:
        sums = rates(results[name] for name in names)
        found[feature] = {name: 1000 * equal // total / 10 for name, (equal, total) in sums.items() if total}
    return found


def raise_floors(nets: Mapping[str, Mapping[str, Any]], results: Mapping[str, compare.Result]) -> None:
    """Write floors that are as high as the rates and, where the nets are the same, nowhere lower than they were.

    ``different`` lists the nets that are not exact: how many of each measure are equal, where not all of them are.
    """
    known = floors()
    known["different"] = different(results)
    for kind, names in (("sample", known["sample"]["nets"]), ("corpus", sorted(nets))):
        before = known[kind]["floors"] if known[kind]["nets"] == names else {}
        found = percentages(nets, {name: results[name] for name in names})
        known[kind] = {
            "nets": names,
            "floors": {
                feature: {name: max(value, before.get(feature, {}).get(name, 0)) for name, value in row.items()}
                for feature, row in found.items()
            },
        }
    FLOORS.write_text(json.dumps(known, indent=1) + "\n")


def different(results: Mapping[str, compare.Result]) -> dict[str, dict[str, int]]:
    """Numbers of equal things by net and measure, where some differ; without times, and values, which vary there."""
    found = {}
    for name, result in sorted(results.items()):
        counts = {measure: equal for measure, (equal, total) in result.counts.items() if equal < total}
        if result.causes or counts:
            found[name] = {measure: equal for measure, equal in counts.items() if measure not in ("time", "values")}
    return found


def _percent(count: tuple[int, int]) -> str:
    return f"{100 * count[0] / count[1]:6.1f}" if count[1] else "     -"


def table(nets: Mapping[str, Mapping[str, Any]], results: Mapping[str, compare.Result]) -> str:
    """Rates per feature in percent."""
    lines = [f"{'feature':<22}{'nets':>5} " + " ".join(f"{name:>7}" for name in compare.MEASURES)]
    for feature, names in [("all", list(results)), *by_feature(nets, results).items()]:
        sums = rates(results[name] for name in names)
        row = " ".join(f"{_percent(sums[name]):>7}" for name in compare.MEASURES)
        lines.append(f"{feature:<22}{len(names):>5} {row}")
    return "\n".join(lines)


def causes(results: Mapping[str, compare.Result]) -> str:
    """First causes of differences, the most frequent first, with nets and an example each."""
    found: dict[str, list[str]] = {}
    for name, result in results.items():
        if result.causes:
            found.setdefault(next(iter(result.causes)), []).append(name)
    lines = []
    for kind, names in sorted(found.items(), key=lambda item: -len(item[1])):
        lines.append(f"{len(names):>4} {kind}")
        lines += [f"       {name}: {results[name].causes[kind][:150]}" for name in names]
    return "\n".join(lines)


def _diff(title: str, expected: list[str], found: list[str]) -> list[str]:
    lines = list(difflib.unified_diff(expected, found, "real", "emulated", lineterm="", n=2))
    return [f"== {title}", *lines[2:]] if lines else []


def explain(net: Mapping[str, Any], tree: Mapping[str, Any]) -> str:
    """What differs for one net, graph by graph, then in files, global orders, times and values."""
    result = compare.compare(net, tree)
    lines = [f"{name:<8}{_percent(count)} %  {count[0]} of {count[1]}" for name, count in result.counts.items()]
    lines += [f"cause: {kind}: {text}" for kind, text in result.causes.items()]
    if "refused" in tree:
        return "\n".join([*lines, tree["refused"]])
    real = net["tree"]
    expected, found = compare.graph_orders(real), compare.graph_orders(tree)
    for graph in sorted(expected.keys() | found.keys()):
        here = expected.get(graph, ["(no file)"])
        lines += _diff(f"graph {graph}", here, found.get(graph, ["(no file)"]))
    left, right = (Counter(record[0] for record in side["npy"]) for side in (real, tree))
    lines += [f"missing {count} x {name}" for name, count in sorted((left - right).items())]
    lines += [f"extra   {count} x {name}" for name, count in sorted((right - left).items())]
    lines += _diff("files", sorted(real["others"]), sorted(tree["others"]))
    for name in sorted(real["orders"].keys() | tree["orders"].keys()):
        if "global" in name:
            lines += _diff(name, real["orders"].get(name, []), tree["orders"].get(name, []))
    one, two = compare.launches(real), compare.launches(tree)
    seen: set[str] = set()
    for folder in one:
        if compare.one_thread(net, folder, seen):
            lines += _diff(f"time order of {folder} (one thread)", one[folder], two.get(folder, []))
        seen.add(folder.split("/")[0])
    by_name: dict[str, list[Any]] = {}
    for record in tree["npy"]:
        by_name.setdefault(record[0], []).append(record)
    unwritten = compare.garbage(real)
    for record in real["npy"]:
        if record[0] in unwritten:
            continue
        if by_name.get(record[0]) and not compare.close(record, other := by_name[record[0]].pop(0)):
            lines.append(f"value {record[0]}: {record[1:]} is {other[1:]}")
    return "\n".join(lines)


def print_stage(compiles: list[dict[str, Any]], stage: str) -> None:
    """Print the recorded text of a stage, or of a final kernel graph, of each compile that has it."""
    for compiled in compiles:
        text = compiled["final"].get(stage) if stage.isdecimal() else compiled[stage]
        if text:
            print(text)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", help="show what differs for this net")
    parser.add_argument(
        "--stage", help="with --net, print what the real one printed: opt_a, backend_pass or a graph id"
    )
    parser.add_argument("--from", dest="folder", type=Path, help="take the recorded folders below this one")
    parser.add_argument("--feature", help="only nets with this feature")
    parser.add_argument("--keep", type=Path, help="leave the emulation's trees below this folder")
    parser.add_argument("--json", type=Path, help="write counts and causes of each net to this file")
    parser.add_argument("--floors", action="store_true", help="raise the floors of the tests to what was measured")
    options = parser.parse_args()
    if options.net:
        source = options.folder / options.net if options.folder else options.net
        if options.stage:
            print_stage(pack.load_stages(source), options.stage)
            return
        net = pack.load(source)
        ((_, tree),) = emulated.run({"net": net["script"]}, options.keep)
        print(explain(net, tree))
        return
    if options.folder:
        found = sorted(path.parent for path in options.folder.glob("*/net.py"))
        nets = {path.name: pack.load(path) for path in found if not (path / "refused.txt").exists()}
    else:
        nets = {name: pack.load(name) for name in pack.names()}
    nets = {name: net for name, net in nets.items() if options.feature in (None, *net["features"])}
    results = measure(nets, options.keep)
    print(table(nets, results), causes(results), sep="\n\n")
    if options.floors:
        raise_floors(nets, results)
    if options.json:
        texts = {name: {"counts": result.counts, "causes": result.causes} for name, result in results.items()}
        options.json.write_text(json.dumps(texts, indent=1) + "\n")


if __name__ == "__main__":
    main()
