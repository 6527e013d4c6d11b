"""A sink that counts files and writes nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dumpsim.archive.longname import MAPPING
from dumpsim.archive.sink import Sink
from dumpsim.archive.tree import CONSTANTS, STATISTIC

__all__ = ["OTHER", "Amount", "CountingSink"]

OTHER = "graphs, orders, config"  # files that belong to no operator
_HISTORY = "ms_global_execution_order_"


@dataclass(slots=True)
class Amount:
    """Number and size of files.

    Examples
    --------
    >>> amount = Amount()
    >>> amount.add(1, 128)
    >>> amount
    Amount(files=1, bytes=128)
    """

    files: int = 0
    bytes: int = 0

    def add(self, files: int, size: int) -> None:
        """Add files and bytes."""
        self.files += files
        self.bytes += size


@dataclass(slots=True)
class _Step:
    """The files of a step, by operator type."""

    types: dict[str, Amount] = field(default_factory=dict)

    def add(self, op_type: str, files: int, size: int) -> None:
        self.types.setdefault(op_type, Amount()).add(files, size)


class CountingSink(Sink):
    """Counts files and bytes of a dump by directory, step and operator type.

    Parameters
    ----------
    step_of : callable
        Returns the step of a directory's files; None if they do not belong to a step.

    Attributes
    ----------
    written : dict of str to (int, int)
        Number and size of files by directory, as `Sink.written`.
    steps : dict of int or None to _Step
        Files and bytes by step, then by operator type; those of None are written once.

    Examples
    --------
    >>> sink = CountingSink(lambda directory: int(directory[-1]))
    >>> sink.write("/d/Net/0/3", "Add.Default_Add-op0.0.0.1.output.0.npy", [b"12345678"])
    8
    >>> sink.written, sink.steps[3].types
    ({'/d/Net/0/3': (1, 8)}, {'Add': Amount(files=1, bytes=8)})
    """

    def __init__(self, step_of: Callable[[str], int | None]) -> None:
        super().__init__()
        self.steps: dict[int | None, _Step] = {}
        self._step_of = step_of
        self._with_lines: set[str] = set()  # paths of files that grow
        self._originals: dict[str, str] = {}  # names that are too long, by short name

    def write(
        self, directory: str, name: str, parts: Sequence["bytes | memoryview"], *, mode: int | None = None
    ) -> int:
        """Count a whole file."""
        size = sum(part.nbytes if isinstance(part, memoryview) else len(part) for part in parts)
        path = f"{directory}/{name}"
        before = self._sizes.get(path) if mode is not None else None
        if mode is not None:
            self._sizes[path] = size
        step = self._step_of(directory)
        data = step is not None or directory.endswith(f"/{CONSTANTS}")
        op_type = self._originals.pop(path, name).partition(".")[0] if data else OTHER
        self._add(directory, step, op_type, int(before is None), size - (before or 0))
        return size

    def append(self, directory: str, name: str, line: str) -> int:
        """Count a line."""
        path = f"{directory}/{name}"
        size, first = len(line.encode()), path not in self._with_lines
        self._with_lines.add(path)
        step, op_type = self._step_of(directory), OTHER
        if name == MAPPING:
            short, _, original = line.partition(",")
            self._originals[f"{directory}/{short}"] = original
            op_type = original.partition(".")[0]
        elif name == STATISTIC and first:  # the first line comes with the header
            op_type = line.partition("\n")[2].partition(",")[0]
        elif name == STATISTIC:
            op_type = line.partition(",")[0]
        elif name.startswith(_HISTORY):
            step = int(line)
        if first:
            self._add(directory, None if name.startswith(_HISTORY) else step, op_type, 1, 0)
        self._add(directory, step, op_type, 0, size)
        return size

    def exists(self, directory: str, name: str) -> bool:
        """Return whether a file that may be written again or grows was counted; other files are always new."""
        path = f"{directory}/{name}"
        return path in self._sizes or path in self._with_lines

    def has_directory(self, directory: str) -> bool:
        """Return whether something was counted in a directory."""
        return directory in self.written

    def is_new(self, directory: str, name: str) -> bool:
        """Return whether a file that grows has no line yet."""
        return f"{directory}/{name}" not in self._with_lines

    def make(self, directory: str) -> None:
        """Do nothing: no directory is made."""

    def settle(self) -> None:
        """Do nothing: no file is open."""

    def _add(self, directory: str, step: int | None, op_type: str, files: int, size: int) -> None:
        self._count(directory, files, size)
        self.steps.setdefault(step, _Step()).add(op_type, files, size)
