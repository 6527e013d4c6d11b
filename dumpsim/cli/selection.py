"""Options that select tensors, shared by all commands that read a dump."""

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, get_type_hints

import typer

from dumpsim.cli.output import echo
from dumpsim.core.errors import UnreadableError

if TYPE_CHECKING:
    from dumpsim.analysis.dumpset import DumpSet

__all__ = ["Json", "Unreadable", "nothing", "reads"]

Json = Annotated[bool, typer.Option("--json", help="Print JSON, one value per line.")]

# parameter of DumpSet.filter -> its command-line form
_OPTIONS: dict[str, Any] = {
    "op": Annotated[
        str | None, typer.Option(help="Part of the operator's full name, or a glob on it: conv3, '*/conv3-*'.")
    ],
    "op_type": Annotated[str | None, typer.Option("--type", help="Operator type, e.g. Conv2D.")],
    "io": Annotated[str | None, typer.Option(help="input or output.")],
    "slot": Annotated[int | None, typer.Option(help="Index of the input or output.")],
    "dtype": Annotated[str | None, typer.Option(help="Number type, e.g. float16.")],
    "rank": Annotated[int | None, typer.Option(help="Rank.")],
    "graph": Annotated[int | None, typer.Option(help="Graph id.")],
    "iteration": Annotated[int | None, typer.Option(help="Iteration.")],
    "step": Annotated[int | None, typer.Option(help="Training step (O2 dumps only).")],
    "source": Annotated[str | None, typer.Option(help="Script line that created the operator, such as train.py:175.")],
}
_PATH = Annotated[Path, typer.Argument(help="Root of a dump, a directory inside it, or one of its files.")]


class Unreadable:
    """Collects files that cannot be read: each is reported on stderr, and the command ends with exit code 3."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(self, error: UnreadableError) -> None:
        if str(error) not in self._said:
            self._said.add(str(error))
            echo(f"dumpsim: {error}", err=True)

    def exit(self) -> None:
        """End the command with exit code 3 if a file could not be read."""
        if self._said:
            raise typer.Exit(3)


def nothing(dump: "DumpSet") -> NoReturn:
    """Report that nothing matches, with the values that the dump has; exit code 1."""
    echo("nothing matches", err=True)
    for line in dump.absent():
        echo(f"  {line}", err=True)
    raise typer.Exit(1)


def reads(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command a PATH and the options that select tensors; its first parameter gets the selected `DumpSet`."""

    def run(path: Path, **options: Any) -> None:
        from dumpsim.analysis.dumpset import open as open_dump

        chosen = {name: options.pop(name) for name in _OPTIONS}
        command(open_dump(path).filter(**chosen), **options)

    own = list(signature(command).parameters.values())[1:]
    hints = get_type_hints(command, localns={"DumpSet": Any}, include_extras=True)
    keyword = Parameter.KEYWORD_ONLY
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {"path": _PATH, **_OPTIONS, **{parameter.name: hints[parameter.name] for parameter in own}}
    run.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter("path", Parameter.POSITIONAL_OR_KEYWORD, annotation=_PATH),
            *(Parameter(name, keyword, default=None, annotation=hint) for name, hint in _OPTIONS.items()),
            *(Parameter(p.name, keyword, default=p.default, annotation=hints[p.name]) for p in own),
        ]
    )
    return run
