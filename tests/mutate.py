"""Draw mutations of dumpsim and see which of them no test notices: ``python tests/mutate.py --sample 20 --seed 7``.

Each mutation changes one place of one module in a copy of the checkout: an operator, a comparison, a constant, a
condition, a statement that is removed, a value that is returned. The tests run in three stages until one fails: the
module's doctests and the test files that name what it defines; the tests of its room; those of the rooms above. A test
that fails is run again without the mutation, so that a test that fails anyway kills nothing.

With a recording of which tests execute which lines (``--record lines.db tests dumpsim -n 2`` once, then ``--covered
lines.db``) exactly those that execute the mutated line run, the quickest first. They run in forks of a warm process
(``forkrun.py``), about a second a mutation, and where that cannot be, in a fresh interpreter. What survives under a
``--budget`` of few seconds gives a lower bound. Slow tests take part if they are recorded (``-m slow``).

Mutations that change nothing that anybody could observe are listed, with the reason, in ``equivalent_mutants.json``.
"""

import argparse
import ast
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import forkrun
import linemap

ROOT = Path(__file__).resolve().parents[1]
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.json")

# room -> tests of the rooms above it that would notice; its own are tests/<room>
ABOVE: dict[str, tuple[str, ...]] = {
    "analysis": ("msaccucmp", "cli"),
    "archive": ("dump", "analysis"),
    "cli": ("end_to_end/test_dump_check.py", "end_to_end/test_dump_summary.py"),
    "codecs": ("analysis", "dump", "msaccucmp"),
    "core": ("modes", "codecs", "analysis", "dump"),
    "device": ("runtime", "dump"),
    "dump": ("end_to_end",),
    "emulate": ("testing", "cli"),
    "frontends": ("end_to_end",),
    "graph": ("runtime", "frontends/mindspore", "end_to_end"),
    "modes": ("cli", "dump", "end_to_end"),
    "ops": ("frontends/mindspore",),
    "replay": ("cli",),
    "runtime": ("dump", "frontends/mindspore", "end_to_end"),
    "tensor": ("analysis", "dump"),
    "testing": (),
    "world": ("runtime", "frontends/mindspore"),
}
_NAMED = 4  # test files that name most of what a module defines
_QUICKEST = 60  # tests of a line that run first
_EVEN_SLOW = ("-m", "")  # tests that a recording names run whatever their marks are
_PATIENCE = 20  # seconds that any test may take, however quick it was

_BINARY = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"), ast.Pow: ("**", "*"), ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"), ast.BitXor: ("^", "&"),
}  # fmt: skip  # no BitOr: it joins types
_COMPARISON = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}  # fmt: skip
_WORDS = ("BadInputError", "Error", "Warning", "_log", "log", "note", "warn", "print", "echo", "_M", "add_note")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One mutation.

    Attributes
    ----------
    path : str
        The module, relative to the checkout.
    start, stop : int
        Characters that are replaced.
    new : str
        What stands there instead.
    kind : str
        ``arithmetic``, ``comparison``, ``constant``, ``condition``, ``statement`` or ``return``.
    """

    path: str
    line: int
    start: int
    stop: int
    new: str
    kind: str
    old_line: str
    new_line: str

    @property
    def room(self) -> str:
        """The room of the module."""
        parts = Path(self.path).parts
        return parts[1] if len(parts) > 2 else "emulate"

    @property
    def key(self) -> tuple[str, str, str]:
        """What names it in the list of equivalent ones, whatever its line's number is."""
        return self.path, self.old_line, self.new_line

    def apply(self, text: str) -> str:
        """The module with the mutation."""
        return text[: self.start] + self.new + text[self.stop :]

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.kind}\n    - {self.old_line}\n    + {self.new_line}"


def sites(path: str, text: str) -> list[Site]:
    """All mutations of a module, in the order of its text.

    Examples
    --------
    >>> [(site.kind, site.new_line) for site in sites("x.py", "def f(a):\\n    return a + 1")]
    [('return', 'return None'), ('arithmetic', 'return a - 1'), ('constant', 'return a + 2')]
    """
    finder = _Finder(text)
    finder.visit(ast.parse(text))
    found = []
    for start, stop, new, kind in finder.found:
        first, last = text.rfind("\n", 0, start) + 1, text.find("\n", stop)
        head, tail = text[first:start], text[stop : last if last >= 0 else None]
        found.append(
            Site(
                path=path,
                line=text.count("\n", 0, start) + 1,
                start=start,
                stop=stop,
                new=new,
                kind=kind,
                old_line=(head + text[start:stop] + tail).strip(),
                new_line=(head + new + tail).strip(),
            )
        )
    return sorted(found, key=lambda site: (site.start, -site.stop, site.new))


class _Finder(ast.NodeVisitor):
    """Collects replacements; skips annotations, decorators, names that a module exports and words for people."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: list[tuple[int, int, str, str]] = []
        self._lines = [0]
        for line in text.encode().split(b"\n"):
            self._lines.append(self._lines[-1] + len(line) + 1)
        self._bytes = text.encode()
        self._ascii = text.isascii()

    def _at(self, line: int, column: int) -> int:
        """Characters before a place that the parser counts in bytes."""
        end = self._lines[line - 1] + column
        return end if self._ascii else len(self._bytes[:end].decode())

    def _span(self, node: ast.AST) -> tuple[int, int]:
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def _replace(self, node: ast.AST, new: str, kind: str) -> None:
        self.found.append((*self._span(node), new, kind))

    def _between(self, left: ast.AST, right: ast.AST, old: str, new: str, kind: str) -> None:
        """Replace the operator between two operands."""
        start, stop = self._span(left)[1], self._span(right)[0]
        match = re.search(r"(?<![\w<>=!*/])" + re.escape(old) + r"(?![\w<>=*/])", self.text[start:stop])
        if match:
            self.found.append((start + match.start(), start + match.end(), new, kind))

    # -- what is left alone

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        for statement in node.body:
            self.visit(statement)

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_Assign(self, node: ast.Assign) -> None:
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        if not names & {"__all__", "__slots__"}:
            self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_TypeAlias(self, node: ast.AST) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_Raise(self, node: ast.Raise) -> None:
        pass  # wording; that it is raised depends on the condition before it

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "strict":  # of `zip`: an assertion
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name.endswith(_WORDS) or name in ("TypeVar", "cast"):
            return
        self.visit(node.func)
        for argument in (*node.args, *node.keywords):
            if name == "reshape" and ast.unparse(argument) == "-1":
                self._replace(argument, "1", "arithmetic")  # numpy takes -2 for -1
            else:
                self.visit(argument)

    # -- what is changed

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in ast.dump(node.test) or "__main__" in ast.dump(node.test):
            return
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self.generic_visit(node)

    def _negate(self, test: ast.expr) -> None:
        simple = isinstance(test, ast.Name | ast.Attribute | ast.Call)
        if simple:
            start, stop = self._span(test)
            self.found.append((start, stop, f"not ({self.text[start:stop]})", "condition"))

    def visit_BinOp(self, node: ast.BinOp) -> None:
        formats = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        if type(node.op) in _BINARY and not formats:
            self._between(node.left, node.right, *_BINARY[type(node.op)], "arithmetic")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._replace(node, "pass", "statement")
        self.visit(node.value)

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, op, right in zip(operands, node.ops, operands[1:], strict=False):
            self._between(left, right, *_COMPARISON[type(op)], "comparison")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between(left, right, old, new, "condition")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        start, stop = self._span(node.operand)
        if isinstance(node.op, ast.Not):
            self._replace(node, self.text[start:stop], "condition")
        elif isinstance(node.op, ast.USub):
            self._replace(node, self.text[start:stop], "arithmetic")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._replace(node, str(not node.value), "constant")
        elif isinstance(node.value, int):
            self._replace(node, str(node.value + 1), "constant")
        elif isinstance(node.value, float):
            self._replace(node, repr(node.value * 2 + 1), "constant")

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call | ast.Await):
            name = (
                getattr(node.value.func, "attr", getattr(node.value.func, "id", ""))
                if hasattr(node.value, "func")
                else ""
            )
            if name.endswith(_WORDS):
                return
            self._replace(node, "pass", "statement")
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Break(self, node: ast.Break) -> None:
        self._replace(node, "pass", "statement")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace(node, "pass", "statement")

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is None:
            return
        constant = isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool | None)
        if not constant:
            self._replace(node, "return None", "return")
        self.generic_visit(node)


# -- drawing -----------------------------------------------------------------------------------------------------------


def population(root: Path, rooms: Sequence[str] = ()) -> dict[str, list[Site]]:
    """Sites by room; examples for users are no part of it."""
    found: dict[str, list[Site]] = {}
    for path in sorted((root / "dumpsim").rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if "/examples/" in name or "/site/" in name:
            continue
        for site in sites(name, path.read_text("utf-8")):
            if not rooms or site.room in rooms:
                found.setdefault(site.room, []).append(site)
    return found


def draw(found: Mapping[str, Sequence[Site]], count: int, seed: int) -> list[Site]:
    """Draw sites without repetition; a room's chance grows with the square root of its size."""
    generator = random.Random(seed)
    left = {room: list(sites) for room, sites in found.items()}
    weights = {room: len(sites) ** 0.5 for room, sites in left.items()}
    drawn: list[Site] = []
    while len(drawn) < count and any(left.values()):
        rooms = [room for room in left if left[room]]
        (room,) = generator.choices(rooms, [weights[room] for room in rooms])
        drawn.append(left[room].pop(generator.randrange(len(left[room]))))
    return drawn


# -- running -----------------------------------------------------------------------------------------------------------


class Copy:
    """A copy of the checkout in which one module at a time is mutated."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.path = folder
        self._stamp = time.time()
        self._names: dict[Path, str] | None = None
        for entry in root.iterdir():
            if entry.name in (".git", "build", "__pycache__") or entry.name.endswith(".egg-info"):
                continue
            if entry.name in ("dumpsim", "tests"):
                shutil.copytree(entry, folder / entry.name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                (folder / entry.name).symlink_to(entry)

    def write(self, name: str, text: str) -> None:
        """Write a module with a time that no compiled file has."""
        self._stamp += 2
        (self.path / name).write_text(text, "utf-8")
        os.utime(self.path / name, (self._stamp, self._stamp))

    def stages(self, site: Site) -> Iterator[list[str]]:
        """Tests that may notice a mutation, nearest first, each once."""
        seen: set[str] = set()
        above = [f"tests/{name}" for name in ABOVE.get(site.room, ())]
        nearest = [site.path, *self._naming(site.path)]
        for stage in (nearest, [f"tests/{site.room}"], *([name] for name in above)):
            chosen = [name for name in stage if name not in seen and (self.path / name).exists()]
            seen.update(chosen)
            if chosen:
                yield chosen

    def _naming(self, module: str) -> list[str]:
        """Test files that import a module or name what it defines, those with most names first."""
        if self._names is None:
            paths = (self.path / "tests").rglob("test_*.py")
            self._names = {path: path.read_text("utf-8") for path in paths}
        dotted = module.removesuffix(".py").replace("/", ".")
        tree = ast.parse((self.path / module).read_text("utf-8"))
        kinds = (ast.FunctionDef, ast.ClassDef)
        names = [node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]
        pattern = re.compile(r"\b(?:" + "|".join(map(re.escape, [*names, "\0"])) + r")\b")
        counts = {path: 1000 * (dotted in text) + len(set(pattern.findall(text))) for path, text in self._names.items()}
        own = Path(module).stem
        best = sorted((path for path in counts if counts[path] or path.stem == f"test_{own}"), key=str)
        best.sort(key=lambda path: -counts[path] - 500 * (path.stem == f"test_{own}"))
        return [path.relative_to(self.path).as_posix() for path in best[:_NAMED]]

    def _command(self, tests: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("MS_", "DUMPSIM"))}
        environment |= {"PYTHONPATH": str(self.path), "PWD": str(self.path), "OMP_NUM_THREADS": "1"}
        environment["OPENBLAS_NUM_THREADS"] = "1"
        return [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:xdist", *tests], environment

    def warm(self, tests: Sequence[str]) -> forkrun.Warm:
        """A process that has collected the tests of some files."""
        command, environment = self._command(tests)
        return forkrun.Warm([*command, *_EVEN_SLOW], self.path, environment)

    def run(self, tests: Sequence[str], timeout: float, *, only: Sequence[str] = ()) -> tuple[str, str]:
        """Run tests (`only` some of them) until one fails: ``passed``, ``failed`` with its name, or ``timeout``."""
        command, environment = self._command(tests)
        command += ["-x", "-rfE"]
        if only:
            (self.path / "chosen").write_text("\n".join(only), "utf-8")
            environment |= linemap.choice(self.path / "chosen")
            command += ["-p", "tests.linemap", *_EVEN_SLOW]
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(
                command, cwd=self.path, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                return "timeout", tests[0]
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # also what the tests have left
                process.wait()
            output.seek(0)
            text = output.read()
        if code in (0, 5):
            return "passed", ""
        match = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", text, re.MULTILINE)
        return "failed", match[1] if match else text[-500:].strip().rpartition("\n")[2]


@dataclass(slots=True)
class Verdict:
    """What became of a mutation: ``killed``, ``survived`` or ``unclear``, by which test, after how many seconds."""

    site: Site
    result: str
    test: str
    seconds: float


def try_site(copy: Copy, site: Site, timeout: float, *, most: int | None = None) -> Verdict:
    """Run at most so many stages on the mutated copy, and give the module back."""
    start = time.monotonic()
    original = (copy.path / site.path).read_text("utf-8")
    result, test = "survived", ""
    stages = list(copy.stages(site))[:most]
    again: list[str] = []
    copy.write(site.path, site.apply(original))
    try:
        for stage in stages:
            outcome, test = copy.run(stage, timeout)
            if outcome != "passed":
                result = "killed"
                again = stage if outcome == "timeout" or not test.startswith(("tests/", "dumpsim/")) else [test]
                break
    finally:
        copy.write(site.path, original)
    if again and copy.run(again, timeout)[0] != "passed":
        result = "unclear"  # the test fails, or takes as long, without the mutation as well
    return Verdict(site, result, test, time.monotonic() - start)


@dataclass(slots=True)
class Covered:
    """Tests that execute a mutated line, in the order to run them.

    Attributes
    ----------
    tests : list of str
        Those that fit into the budget of seconds.
    near, far : int
        How many execute the line, and how many stand beside them.
    """

    tests: list[str]
    near: int
    far: int

    @classmethod
    def of(cls, site: Site, lines: linemap.LineMap, root: Path, budget: float) -> "Covered":
        near, far = lines.tests(site.path, site.line)
        chosen, left = [], budget
        for name in [*near, *far]:
            left -= lines.seconds[name]
            if left >= 0 and (root / name.partition("::")[0]).exists():
                chosen.append(name)
        return cls(chosen, len(near), len(far))

    @property
    def files(self) -> list[str]:
        """The files of the tests."""
        return _files(self.tests)

    def survived(self) -> str:
        """What to say of a mutation that none of them noticed."""
        if not self.near:
            return f"no test executes this line; {len(self.tests)} of {self.far} beside it"
        return f"{len(self.tests)} tests of {self.near} that execute the line and {self.far} beside them"


def _files(tests: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name.partition("::")[0] for name in tests))


def try_covered(copy: Copy, site: Site, covered: Covered, timeout: float) -> Verdict:
    """Run the tests in fresh interpreters, and give the module back."""
    start = time.monotonic()
    if not covered.tests:
        return Verdict(site, "survived", covered.survived(), 0.0)
    original = (copy.path / site.path).read_text("utf-8")
    result, test = "survived", covered.survived()
    copy.write(site.path, site.apply(original))
    try:
        for group in (covered.tests[:_QUICKEST], covered.tests[_QUICKEST:]):
            outcome, failed = copy.run(_files(group), timeout, only=group) if group else ("passed", "")
            if outcome != "passed":
                result, test = "killed", failed
                break
    finally:
        copy.write(site.path, original)
    if result == "killed":
        again = [test] if test in group else group
        if copy.run(_files(again), timeout, only=again)[0] != "passed":
            result = "unclear"
    return Verdict(site, result, test, time.monotonic() - start)


def try_warm(
    copy: Copy, warm: forkrun.Warm, site: Site, covered: Covered, seconds: Mapping[str, float]
) -> Verdict | None:
    """Run the tests in a fork of a warm process; None where that takes a fresh interpreter."""
    start = time.monotonic()
    original = (copy.path / site.path).read_text("utf-8")
    mutated = site.apply(original)
    left = [(name, _PATIENCE + 5 * seconds[name]) for name in covered.tests if name in warm.tests]
    while left:
        copy.write(site.path, mutated)
        try:
            outcome, test = warm.run(left, path=site.path, old=original, new=mutated)
        finally:
            copy.write(site.path, original)
        if outcome == "cold":
            return None
        if outcome == "passed":
            break
        until = [name for name, _ in left].index(test) + 1
        outcome, bad = warm.run(left[:until])  # the same tests without the mutation
        if outcome == "passed":
            return Verdict(site, "killed", test, time.monotonic() - start)
        left = [entry for entry in left if entry[0] != bad]
    return Verdict(site, "survived", covered.survived(), time.monotonic() - start)


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw, try and report; the exit code is 1 below the goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=100, help="how many mutations (100)")
    parser.add_argument("--seed", type=int, default=0, help="which ones (0)")
    parser.add_argument("--room", action="append", default=[], help="only of this room; may be given again")
    parser.add_argument(
        "--at", action="append", default=[], metavar="PATH:LINE", help="all mutations of a line instead"
    )
    parser.add_argument("--timeout", type=float, default=600, help="seconds of one stage of tests (600)")
    parser.add_argument("--stages", type=int, help="only so many stages of tests: faster, and kills fewer")
    parser.add_argument("--goal", type=float, default=0.97, help="share that must be killed (0.97)")
    parser.add_argument("--list", action="store_true", help="show the mutations, run nothing")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout")
    parser.add_argument("--record", type=Path, metavar="FILE", help="run tests and record the lines they execute")
    parser.add_argument("--covered", type=Path, metavar="FILE", help="run the tests that execute the line")
    parser.add_argument("--budget", type=float, default=300, help="seconds of --covered's tests of a line (300)")
    parser.add_argument("--forks", action="store_true", help="leave out mutations that take a fresh interpreter")
    parser.add_argument("--jobs", type=int, default=1, help="mutations at a time (1)")
    options, rest = parser.parse_known_args(arguments)
    if options.record:
        with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
            return linemap.record(Copy(options.root, Path(folder)).path, options.record.resolve(), rest)
    if rest:
        parser.error(f"unknown arguments: {' '.join(rest)}")
    if options.covered and not options.covered.is_file():
        parser.error(f"--covered: no such file: {options.covered} (--record writes it)")
    found = population(options.root, options.room)
    if options.at:
        drawn = [site for sites in found.values() for site in sites if f"{site.path}:{site.line}" in options.at]
    else:
        drawn = draw(found, options.sample, options.seed)
    equivalent = {(entry["path"], entry["old"], entry["new"]): entry["reason"] for entry in _known(options.root)}
    if options.list:
        print(*drawn, f"{len(drawn)} of {sum(map(len, found.values()))} mutations", sep="\n")
        return 0
    left = list(enumerate(drawn, 1))[::-1]
    verdicts: list[Verdict] = []
    covered: dict[Site, Covered] = {}
    if options.covered:
        lines = linemap.LineMap(options.covered, options.root)
        covered = {
            site: Covered.of(site, lines, options.root, options.budget) for site in drawn if site.key not in equivalent
        }
        seconds = lines.seconds
    files = list(dict.fromkeys(name for one in covered.values() for name in one.files))

    def work() -> None:
        """Take one mutation after the other, with a copy of the checkout of its own."""
        with contextlib.ExitStack() as stack:
            copy = Copy(options.root, Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mutate-"))))
            warm = stack.enter_context(contextlib.closing(copy.warm(files))) if files else None
            while True:
                with lock:
                    if not left:
                        return
                    number, site = left.pop()
                    if site.key in equivalent:
                        print(f"{number}: equivalent: {site}\n    {equivalent[site.key]}", flush=True)
                        continue
                if options.covered:
                    done = try_warm(copy, warm, site, covered[site], seconds) if warm else None
                    if done is None and warm and options.forks:
                        print(f"{number}: left out: {site}", flush=True)
                        continue
                    verdict = done or try_covered(copy, site, covered[site], options.timeout)
                else:
                    verdict = try_site(copy, site, options.timeout, most=options.stages)
                with lock:
                    verdicts.append(verdict)
                    text = f"{number}: {verdict.result} ({verdict.seconds:.0f} s) {site}\n    {verdict.test}"
                    print(text, flush=True)

    lock = threading.Lock()
    with ThreadPoolExecutor(options.jobs) as pool:
        for worker in [pool.submit(work) for _ in range(options.jobs)]:
            worker.result()
    return _report(verdicts, sum(site.key in equivalent for site in drawn), options.goal)


def _report(verdicts: Sequence[Verdict], equivalent: int, goal: float) -> int:
    clear = [verdict for verdict in verdicts if verdict.result != "unclear"]
    killed = sum(verdict.result == "killed" for verdict in clear)
    share = killed / len(clear) if clear else 1.0
    print(f"\nkilled {killed} of {len(clear)} ({share:.1%}); {equivalent} equivalent", end="")
    print(f", {len(verdicts) - len(clear)} unclear, since the test fails without the mutation as well")
    for verdict in clear:
        if verdict.result == "survived":
            print(f"survived: {verdict.site}")
    return int(share < goal)


def _known(root: Path) -> list[dict[str, str]]:
    """The mutations that change nothing, with reasons."""
    path = root / "tests" / EQUIVALENT.name
    entries: list[dict[str, str]] = json.loads(path.read_text("utf-8")) if path.exists() else []
    return entries


if __name__ == "__main__":
    sys.exit(main())
