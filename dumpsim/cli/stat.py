"""``dumpsim stat``: print statistics of every tensor, computed in one pass if they were not dumped."""

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dumpsim.cli.output import echo, print_rows, progress
from dumpsim.cli.selection import Json, Unreadable, nothing, reads
from dumpsim.core.errors import BadInputError, nearest
from dumpsim.core.statistic import MEASURED, NAMES, NOT_FINITE

if TYPE_CHECKING:
    from dumpsim.analysis.dumpset import DumpSet

__all__ = ["stat"]

_DEFAULT = ",".join(MEASURED)


@reads
def stat(
    dump: "DumpSet",
    columns: Annotated[str, typer.Option(help=f"Statistics, of {', '.join(NAMES)}; or all.")] = _DEFAULT,
    bad: Annotated[
        bool,
        typer.Option(
            "--bad",
            help="List only tensors with NaN or infinity; exit code 1 if there are any, or if none can be checked.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Print max, min, average, norm and counts of tensors."""
    from dumpsim.analysis.condition import condition_of_row
    from dumpsim.codecs.apidump import LAYER

    names = NAMES if columns == "all" else tuple(columns.split(","))
    for name in names:
        if name not in NAMES:
            raise BadInputError(
                f"unknown statistic {name!r}", where="--columns", allowed=NAMES, nearest=nearest(name, NAMES)
            )
    wanted = (*names, *(NOT_FINITE if bad else ()))
    unreadable = Unreadable()
    dump = dump.lenient(unreadable)
    rows = progress(dump.rows(wanted, broken=unreadable), what="statistics", total=dump.__len__)
    known: Counter[bool] = Counter()

    def chosen(row: dict[str, Any]) -> bool:
        if row["op_type"] == LAYER:  # in an API dump: the row of a module, not of a tensor
            return False
        state = condition_of_row(row, row["dtype"], row["shape"])
        known[state.known] += 1
        return state.bad

    shown = (row for row in rows if not bad or chosen(row))
    count = print_rows(
        ("iteration", "op_type", "op_name", "io", "slot", "dtype", "shape", *names), shown, as_json=as_json
    )
    if known[False]:
        what = "1 tensor has" if known[False] == 1 else f"{known[False]} tensors have"
        echo(f"dumpsim: {what} neither values nor statistics: not checked for NaN and infinity", err=True)
    unreadable.exit()
    if bad and (count or not known[True]):
        raise typer.Exit(1)
    if not count and not bad:
        nothing(dump)
