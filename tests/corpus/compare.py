"""Rates of one net: what of the recorded tree the emulation's tree has, and the causes of what it has not."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MEASURES = ("names", "trees", "orders", "graphs", "global", "time", "values")
TOLERANCE = 2e-5
ROUNDING = 5e-5  # absolute; gradients that are zero but for rounding, scaled up by Adam
# not written by the CPU, so what was in memory: outputs of Adam, AdamWeightDecay and ApplyRMSProp, two of BatchNorm
# (one of which its gradient takes), and what follows the result where values decide its shape [observed 2.10]
_GARBAGE = re.compile(
    r"/(?:(?:Adam(?:WeightDecay)?|ApplyRMSProp)\..*\.output\.|(?:MaskedSelect|NonZero|Unique)\..*\.output\.0\.|"
    r"BatchNorm\..*\.output\.[12]\.|BatchNormGrad\..*\.input\.5\.)"
)
_STATISTICS = re.compile(r"(?P<node>.*/BatchNorm\..*)\.output\.[34]\.")  # BatchNorm writes them in training only
_NUMBER = re.compile(r"-op\d+")
_ORDER = re.compile(r"ms_execution_order_graph_(\d+)\.csv")


@dataclass(slots=True)
class Result:
    """Counts of what is equal and of what was compared by measure, and causes with an example each."""

    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    causes: dict[str, str] = field(default_factory=dict)  # in the order of the stages that they belong to


def unnumbered(names: Iterable[str]) -> Counter[str]:
    """Names without the operators' numbers."""
    return Counter(_NUMBER.sub("", name) for name in names)


def graph_orders(tree: Mapping[str, Any]) -> dict[int, list[str]]:
    """Kernels of each graph in their order, by graph id."""
    found = {}
    for name, lines in tree["orders"].items():
        if match := _ORDER.fullmatch(name):
            found[int(match[1])] = lines[1:]
    return dict(sorted(found.items()))


def _overlap(left: Iterable[Any], right: Iterable[Any]) -> tuple[int, int]:
    one, two = Counter(left), Counter(right)
    return (one & two).total(), (one | two).total()


def _parts(label: str) -> tuple[str, str, str]:
    """Folder, operator and rest of an npy name.

    >>> _parts("0/1/ReLU.Default_ReLU-op0.0.0.~.output.0.DefaultFormat.Float32")
    ('0/1', 'ReLU.Default_ReLU-op0', 'output.0.DefaultFormat.Float32')
    """
    graph, iteration, name = label.split("/", 2)
    operator, rest = name.split(".0.0.~.")
    return f"{graph}/{iteration}", operator, rest


def launches(tree: Mapping[str, Any]) -> dict[str, list[str]]:
    """Operators (``Parameter`` files aside) of each folder in the order of their first time stamps."""
    found: dict[str, list[str]] = {}
    for label, *_ in tree["npy"]:
        folder, operator, _ = _parts(label)
        if operator.startswith("Parameter."):
            continue
        order = found.setdefault(folder, [])
        if not order or order[-1] != operator:
            order.append(operator)
    return found


def garbage(tree: Mapping[str, Any]) -> set[str]:
    """Names of the npy files whose values are what happened to be in the memory."""
    inference = {
        name.split(".input.5.")[0] for name, *_, values in tree["npy"] if ".input.5." in name and not any(values)
    }
    names = {name for name, *_ in tree["npy"]}
    found = {name for name in names if (match := _STATISTICS.match(name)) and match["node"] in inference}
    return found | {name for name in names if _GARBAGE.search(name)}


def close(expected: Sequence[Any], found: Sequence[Any]) -> bool:
    """Whether two npy records (label, descr, shape, signature) have the same type, shape and nearly the same values."""
    if expected[1:3] != found[1:3]:
        return False
    if expected[3] == found[3]:
        return True
    if "f" not in expected[1] and "E" not in expected[1]:
        return False
    (norm, total), (other_norm, other_total) = expected[3], found[3]
    if any(number != number or abs(number) == float("inf") for number in (*expected[3], *found[3])):
        return str(expected[3]) == str(found[3])
    half = expected[1] in ("<f2", "<E2")
    gap = (2e-3 if half else TOLERANCE) * max(norm, other_norm) + ROUNDING
    return abs(norm - other_norm) <= gap and abs(total - other_total) <= gap


def _first(differences: Iterable[Any]) -> str:
    return next((str(item) for item in differences), "")


def _operators(expected: dict[int, list[str]], found: dict[int, list[str]]) -> Iterator[tuple[str, str]]:
    """Causes that show in the execution orders: operators, scopes, graphs, numbers, order."""
    all_expected = [name for names in expected.values() for name in names]
    all_found = [name for names in found.values() for name in names]
    left, right = unnumbered(all_expected), unnumbered(all_found)
    if left != right:
        types_left = Counter(name.rpartition("/")[2] for name in left.elements())
        types_right = Counter(name.rpartition("/")[2] for name in right.elements())
        missing, extra = types_left - types_right, types_right - types_left
        if missing or extra:
            text = [f"-{name}" for name in sorted(missing)] + [f"+{name}" for name in sorted(extra)]
            yield "operators", " ".join(text[:8])
        else:
            missing, extra = left - right, right - left
            gradients = all(name.startswith("Gradients/") for name in missing)
            name = min(missing)
            others = [other for other in extra if other.rpartition("/")[2] == name.rpartition("/")[2]]
            yield "gradient scope" if gradients else "scope", f"{name} is {min(others)}"
        return
    if {graph: unnumbered(names) for graph, names in expected.items()} != {
        graph: unnumbered(names) for graph, names in found.items()
    }:
        sets = (
            sorted(sorted(unnumbered(names).items()) for names in side.values() if names) for side in (expected, found)
        )
        kind = "graph ids" if len({str(item) for item in sets}) == 1 else "graph cut"
        sizes = (" ".join(f"{graph}:{len(names)}" for graph, names in side.items()) for side in (expected, found))
        yield kind, " is ".join(sizes)
        return
    for graph, names in expected.items():
        if Counter(names) != Counter(found[graph]):
            missing, extra = Counter(names) - Counter(found[graph]), Counter(found[graph]) - Counter(names)
            yield "operator number", f"graph {graph}: {min(missing)} is {min(extra)}"
            return
    for graph, names in expected.items():
        if names != found[graph]:
            if [_NUMBER.sub("", name) for name in names] == [_NUMBER.sub("", name) for name in found[graph]]:
                kind = "operator number"
            else:
                kind = "order"
            at = next(at for at, (one, two) in enumerate(zip(names, found[graph], strict=True)) if one != two)
            yield kind, f"graph {graph}, kernel {at}: {names[at]} is {found[graph][at]}"
            return


def _files(expected: Counter[str], found: Counter[str]) -> Iterator[tuple[str, str]]:
    """Causes that show in the names of npy files."""
    missing, extra = expected - found, found - expected
    for kind, names in (("missing", missing), ("extra", extra)):
        if parameters := [name for name in names if "/Parameter." in name]:
            yield f"{kind} Parameter file", min(parameters)
    missing = Counter({name: count for name, count in missing.items() if "/Parameter." not in name})
    extra = Counter({name: count for name, count in extra.items() if "/Parameter." not in name})
    if not missing and not extra:
        return
    if unnumbered(missing) == unnumbered(extra):
        yield "file number", f"{min(missing)} is {min(extra)}"
        return
    inputs = [name for name in missing if ".input." in name and name not in found]
    more = [name for name in extra if ".input." in name and name not in expected]
    if inputs and not any(".output." in name for name in missing):
        yield "missing input file", min(inputs)
    elif more and not any(".output." in name for name in extra):
        yield "extra input file", min(more)
    else:
        yield "other files", f"-{min(missing, default='')} +{min(extra, default='')}"


def one_thread(net: Mapping[str, Any], folder: str, seen: set[str]) -> bool:
    """Whether the files of a folder (``graph/iteration``) were written by one thread. [spec vendor 6.2]

    From the second step of a model without control flow and with at most 100 kernels.
    """
    graph = int(folder.split("/")[0])
    for model in net["models"]:
        if graph in model["graphs"]:
            return len(model["graphs"]) == 1 and model["kernels"] <= 100 and str(graph) in seen
    return False


def compare(net: Mapping[str, Any], found: Mapping[str, Any]) -> Result:
    """Compare the emulation's tree with the recorded net's."""
    result = Result()
    recorded = net["tree"]
    refused = "refused" in found
    if refused:
        last = [line for line in found["refused"].splitlines() if line.strip()] or ["killed"]
        text = next((line for line in reversed(last) if re.match(r"[\w.]*(Error|Exception|Exit)\b", line)), last[-1])
        result.causes["refused"] = text
        found = {"npy": [], "orders": {}, "others": []}
    names, others = [record[0] for record in recorded["npy"]], [record[0] for record in found["npy"]]
    result.counts["names"] = _overlap(names, others)
    same = Counter([*names, *recorded["others"]]) == Counter([*others, *found["others"]])
    result.counts["trees"] = (int(same), 1)

    expected, got = graph_orders(recorded), graph_orders(found)
    equal = [graph for graph, order in expected.items() if got.get(graph) == order]
    result.counts["orders"] = (len(equal), len(expected.keys() | got.keys()))
    if any(len(model["graphs"]) > 1 for model in net["models"]):
        equal = [g for g, order in expected.items() if g in got and unnumbered(got[g]) == unnumbered(order)]
        result.counts["graphs"] = (len(equal), len(expected.keys() | got.keys()))
    orders = ({k: v for k, v in tree["orders"].items() if not _ORDER.fullmatch(k)} for tree in (recorded, found))
    result.counts["global"] = _overlap(*((f"{name}: {text}" for name, text in side.items()) for side in orders))

    if not refused:
        for kind, text in _operators(expected, got):
            result.causes[kind] = text
        if not result.causes:  # what lies in other files follows from that
            for kind, text in _files(Counter(names), Counter(others)):
                result.causes[kind] = text
            if not same and not result.causes:
                left, right = set(recorded["others"]), set(found["others"])
                result.causes["other files"] = _first(sorted(left ^ right))
        if result.counts["global"][0] < result.counts["global"][1]:
            result.causes.setdefault("global order", "")

    left, right = launches(recorded), launches(found)
    equal_time = compared = 0
    seen: set[str] = set()
    for folder, order in left.items():
        if one_thread(net, folder, seen):
            compared += 1
            equal_time += right.get(folder) == order
            if right.get(folder) != order and not result.causes:
                result.causes["time order"] = folder
        seen.add(folder.split("/")[0])
    if compared:
        result.counts["time"] = (equal_time, compared)

    by_name: dict[str, list[Any]] = {}
    for record in found["npy"]:
        by_name.setdefault(record[0], []).append(record)
    unwritten = garbage(recorded)
    good = bad = 0
    for record in recorded["npy"]:
        if not by_name.get(record[0]) or record[0] in unwritten:
            continue
        if close(record, other := by_name[record[0]].pop(0)):
            good += 1
        else:
            bad += 1
            if len(result.causes) == 0 or "values" in result.causes:
                result.causes.setdefault("values", f"{record} is {other[1:]}")
    result.counts["values"] = (good, good + bad)
    return result
