"""Tables of supported features, which are made from the profiles that runs and checks use.

`support_matrix` is the table of the documents, by feature and mode, in their words. [seed 001] `profile_matrix` is more
detailed: every feature in every profile.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dumpsim.modes.conditions import COMMON
from dumpsim.modes.configfile import dialect
from dumpsim.modes.dialect import Field
from dumpsim.modes.profile import Profile, find, names

__all__ = [
    "COLUMNS",
    "FEATURES",
    "NOTES",
    "Support",
    "markdown",
    "profile_markdown",
    "profile_matrix",
    "support_matrix",
]

_YES, _NO, _NOT_APPLICABLE = "Supported", "Not Supported", "Not Applicable"
Tell = Callable[[Profile], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """A row of the documents' table: a feature, and its support in the modes of `COLUMNS`."""

    group: str
    feature: str
    cells: tuple[str, ...]


# columns of the documents' table, and their profiles
COLUMNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Ascend O0/Ascend O1", ("ascend_o0",)),
    ("Ascend O2", ("ascend_o2",)),
    ("CPU/GPU", ("cpu", "gpu")),
)
NOTES = (
    "The device computes statistics faster than the host (on Ascend only), the host has more of them: see "
    "`statistic_category`.",
)


def _yes(test: Callable[[Profile], bool]) -> Tell:
    return lambda profile: _YES if test(profile) else _NO


def _knows(field: str) -> Callable[[Profile], bool]:
    """Return a test whether a profile's config has a field."""
    return lambda profile: any(
        isinstance(row, Field) and (row.section, row.name) == (COMMON, field) for row in dialect(profile)[0]
    )


_STATISTICS = {
    "device": "Supports both host and device modes1",  # 1: the first of `NOTES`
    "host": "Supports only host mode",
    "error": _NO,
}

# group, feature, its support in a profile [seed 001]
_ROWS: tuple[tuple[str, str, Tell], ...] = (
    ("Full Dump", "Full network data dump", _yes(_knows("dump_mode"))),
    ("Partial Data Dump", "Statistics Dump", lambda profile: _STATISTICS[profile.statistics]),
    ("Partial Data Dump", "Data Sampling Dump", _yes(lambda profile: profile.sampling)),
    ("Overflow Dump", "Dump overflow operators", _yes(lambda profile: profile.overflow_check != "none")),
    ("Conditional Dump", "Specify Operator Name", _yes(_knows("kernels"))),
    ("Conditional Dump", "Specify Iteration", _yes(_knows("iteration"))),
    ("Conditional Dump", "Specify Device", _yes(_knows("support_device"))),
    (
        "Conditional Dump",
        "Specify File Format",
        lambda profile: _YES if _knows("file_format")(profile) else _NOT_APPLICABLE,
    ),
    ("Conditional Dump", "set_dump", _yes(lambda profile: profile.set_dump)),
    ("Auxiliary Information Dump", "Graph IR Dump", _yes(lambda profile: profile.graph_files)),
    ("Auxiliary Information Dump", "Execution Sequence Dump", _yes(lambda profile: profile.graph_files)),
)


def support_matrix(release: str = "seed") -> tuple[Support, ...]:
    """Return the table of the documents.

    Parameters
    ----------
    release : str
        ``seed`` for the documents, or another release, which does not support modes that it has removed.

    Examples
    --------
    >>> next(row.cells for row in support_matrix() if row.feature == "Statistics Dump")[1:]
    ('Supports only host mode', 'Not Supported On CPU, GPU Supports only host mode')
    """
    present = set(names())

    def cell(tell: Tell, devices: tuple[str, ...]) -> str:
        texts = [tell(find(release, device)) if f"{release}/{device}" in present else _NO for device in devices]
        if len(set(texts)) == 1:
            return texts[0]
        cpu, gpu = texts
        return f"{cpu} On CPU, GPU {gpu}"

    return tuple(
        Support(group=group, feature=feature, cells=tuple(cell(tell, devices) for _, devices in COLUMNS))
        for group, feature, tell in _ROWS
    )


def markdown(release: str = "seed") -> str:
    """Return the documents' table as Markdown, with its notes.

    Examples
    --------
    >>> print(markdown().splitlines()[0])
    | Feature | | Ascend O0/Ascend O1 | Ascend O2 | CPU/GPU |
    """
    lines = ["| Feature | | " + " | ".join(title for title, _ in COLUMNS) + " |", "|---" * (len(COLUMNS) + 2) + "|"]
    before = ""
    for row in support_matrix(release):
        group = "" if row.group == before else row.group
        before = row.group
        cells = " | ".join(cell.replace("modes1", "modes<sup>1</sup>") for cell in row.cells)
        lines.append(f"| {group} | {row.feature} | {cells} |")
    return "\n".join([*lines, "", *(f"<sup>{number}</sup> {note}" for number, note in enumerate(NOTES, 1))])


# -- the detailed table


def _flag(name: str) -> Tell:
    return lambda profile: "yes" if getattr(profile, name) else "no"


def _word(name: str, **words: str) -> Tell:
    return lambda profile: words[getattr(profile, name)]


FEATURES: tuple[tuple[str, Tell], ...] = (
    ("Statistics", _word("statistics", device="host and device", host="host", error="error")),
    ("Sampling", _flag("sampling")),
    ("Overflow operators (op_debug_mode 3)", _word("overflow_check", finite="not finite", flags="flags", none="no")),
    ("Failed operator (op_debug_mode 4)", _word("exception", inputs="inputs", lite="lite", none="no")),
    ("Iterations", lambda profile: "with blanks" if profile.iteration_blanks else "yes"),
    ("Devices", _flag("device_filter")),
    ("Binary files", lambda profile: "yes" if _knows("file_format")(profile) else "no"),
    ("Data sink", _word("sink", any="yes", one="size 1", error="error")),
    ("set_dump (dump_mode 2)", _flag("set_dump")),
    ("trans_flag", _flag("trans_flag")),
    ("save_kernel_args", _flag("kernel_arguments")),
    ("Graph IR and execution order", _flag("graph_files")),
    ("Execution history", _flag("global_order")),
    (".dump_metadata", _flag("metadata")),
    ("Parameter files", _word("parameters", none="no", weights="weights", all="graph inputs")),
    ("Constants", _flag("constants")),
    ("Number type in names", lambda p: {"lower": "float32", "title": "Float32", "none": "no"}[p.names.dtype_in_name]),
    ("bfloat16 is stored as", _word("bfloat16", float32="float32", raw="raw")),
    ("Complex numbers", _word("complex_numbers", save="npy", skip64="complex128", error="error")),
    ("Iteration numbers", _word("iteration_rule", process="one count", graph="a count per graph")),
    ("Inputs are read", _word("inplace", before="before the kernel", after="after the kernel")),
)


def profile_matrix(profiles: Iterable[str] | None = None) -> list[dict[str, str]]:
    """Return the rows of the detailed table: ``{"feature": ..., profile: ...}``.

    Parameters
    ----------
    profiles : iterable of str, optional
        Names such as ``seed/cpu``; by default all.

    Examples
    --------
    >>> rows = profile_matrix(["seed/ascend_o0", "seed/cpu"])
    >>> next(row for row in rows if row["feature"] == "Statistics")
    {'feature': 'Statistics', 'seed/ascend_o0': 'host and device', 'seed/cpu': 'error'}
    """
    pairs = (name.partition("/")[::2] for name in (names() if profiles is None else profiles))
    chosen = [find(release, device) for release, device in pairs]
    return [{"feature": title, **{p.name: tell(p) for p in chosen}} for title, tell in FEATURES]


def profile_markdown(profiles: Iterable[str] | None = None) -> str:
    """Return the detailed table as Markdown.

    Examples
    --------
    >>> print(profile_markdown(["seed/cpu"]).splitlines()[0])
    | | seed/cpu |
    """
    rows = profile_matrix(profiles)
    columns = [key for key in rows[0] if key != "feature"]
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    lines += ["| " + " | ".join((row["feature"], *(row[c] for c in columns))) + " |" for row in rows]
    return "\n".join(lines)
