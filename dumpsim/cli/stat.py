"""``dumpsim stat``: statistics of every tensor, computed in one pass where they were not dumped."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dumpsim.cli.output import print_rows, progress
from dumpsim.cli.selection import Json, Unreadable, reads
from dumpsim.core.errors import BadInputError, nearest
from dumpsim.core.record import STATISTICS

if TYPE_CHECKING:
    from dumpsim.analysis.dumpset import DumpSet

__all__ = ["stat"]

_DEFAULT = "max,min,avg,l2norm,nan,positive_inf,negative_inf"


@reads
def stat(
    dump: "DumpSet",
    columns: Annotated[str, typer.Option(help=f"Statistics, of {', '.join(STATISTICS)}; or all.")] = _DEFAULT,
    bad: Annotated[
        bool, typer.Option("--bad", help="Only tensors with NaN or infinity; exit code 1 if there are any.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print max, min, average, norm and counts of tensors."""
    names = STATISTICS if columns == "all" else tuple(columns.split(","))
    for name in names:
        if name not in STATISTICS:
            raise BadInputError(
                f"{name!r} is not a statistic", where="--columns", allowed=STATISTICS, nearest=nearest(name, STATISTICS)
            )
    wanted = (*names, *(("nan", "positive_inf", "negative_inf") if bad else ()))
    unreadable = Unreadable()
    rows = progress(dump.rows(wanted, broken=unreadable), what="statistics", total=dump.__len__)
    shown = (row for row in rows if not bad or _is_bad(row))
    count = print_rows(
        ("iteration", "op_type", "op_name", "io", "slot", "dtype", "shape", *names), shown, as_json=as_json
    )
    unreadable.exit()
    if bad and count:
        raise typer.Exit(1)
    if not count and not bad:
        typer.echo("nothing matches", err=True)
        raise typer.Exit(1)


def _is_bad(row: dict[str, Any]) -> bool:
    return any(row[name] for name in ("nan", "positive_inf", "negative_inf"))
