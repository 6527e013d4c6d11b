"""The modules of dumpsim import each other in one direction."""

import subprocess
import sys
from collections.abc import Callable, Iterable

import pytest

grimp = pytest.importorskip("grimp", reason="needs the extra dev")
pytestmark = pytest.mark.dev


def circles(modules: Iterable[str], imported: Callable[[str], Iterable[str]]) -> list[list[str]]:
    """Groups of modules that import each other: the strongly connected components of more than one (Tarjan)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []
    for root in modules:
        if root in number:
            continue
        number[root] = lowest[root] = len(number)
        path.append(root)
        pending = [(root, iter(sorted(imported(root))))]
        while pending:
            module, rest = pending[-1]
            following = next(rest, None)
            if following is None:
                pending.pop()
                if pending:
                    lowest[pending[-1][0]] = min(lowest[pending[-1][0]], lowest[module])
                if lowest[module] == number[module]:
                    group = path[path.index(module) :]
                    del path[path.index(module) :]
                    if len(group) > 1:
                        found.append(sorted(group))
            elif following not in number:
                number[following] = lowest[following] = len(number)
                path.append(following)
                pending.append((following, iter(sorted(imported(following)))))
            elif following in path:
                lowest[module] = min(lowest[module], number[following])
    return found


def shortest_circle(group: list[str], imported: Callable[[str], Iterable[str]]) -> list[str]:
    """One shortest way from the first module of a group back to it."""
    ways = [[group[0]]]
    seen = set()
    for way in ways:  # grows while it is read: breadth first
        for module in sorted(imported(way[-1])):
            if module == group[0]:
                return [*way, module]
            if module in group and module not in seen:
                seen.add(module)
                ways.append([*way, module])
    raise AssertionError(f"{group} is no circle")


@pytest.fixture(scope="module")
def graph():
    """All imports of the package, also those inside of functions; those under TYPE_CHECKING are left out."""
    return grimp.build_graph("dumpsim", exclude_type_checking_imports=True, cache_dir=None)


def test_no_import_circles(graph):
    """No two modules import each other, directly or through others."""
    found = circles(sorted(graph.modules), graph.find_modules_directly_imported_by)
    shown = [" -> ".join(shortest_circle(group, graph.find_modules_directly_imported_by)) for group in found]
    assert not found, "modules import each other in circles:\n" + "\n".join(shown)


def test_a_circle_is_found_and_shown():
    """The search finds a circle through several modules, and one behind another."""
    imports = {"a": ["b", "d"], "b": ["c"], "c": ["a", "e"], "d": [], "e": ["f"], "f": ["e"], "g": ["a"]}
    found = circles(sorted(imports), imports.__getitem__)
    assert sorted(found) == [["a", "b", "c"], ["e", "f"]]
    assert shortest_circle(["a", "b", "c"], imports.__getitem__) == ["a", "b", "c", "a"]


def test_importing_networks_loads_no_compiler_and_no_runtime():
    """What a script imports comes at once; session, pipelines and rewriting come where they are first used."""
    code = "import sys; from dumpsim.frontends.mindspore import Tensor, nn, ops; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    late = {"runtime.session", "graph.pipeline", "frontends.mindspore._capture.rewrite"}
    assert late & {name.removeprefix("dumpsim.") for name in done.stdout.split()} == set()
