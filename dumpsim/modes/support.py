"""What each profile supports, as a table; it is made from the profiles, so it cannot be wrong about them."""

from collections.abc import Callable, Iterable

from dumpsim.modes.profile import Profile, find, names

__all__ = ["FEATURES", "markdown", "support_matrix"]

_YES, _NO = "yes", "no"


def _flag(name: str) -> Callable[[Profile], str]:
    return lambda profile: _YES if getattr(profile, name) else _NO


def _word(name: str, **words: str) -> Callable[[Profile], str]:
    return lambda profile: words[getattr(profile, name)]


# feature -> what a profile has of it; the first rows are those of the seed's own table [seed 001]
FEATURES: tuple[tuple[str, Callable[[Profile], str]], ...] = (
    ("Full network dump", lambda profile: _YES),
    ("Statistics", _word("statistics", device="host and device", host="host", error="error")),
    ("Sampling", _flag("sampling")),
    (
        "Overflow operators (op_debug_mode 3)",
        _word("overflow_check", finite=_YES, flags="by the device's flags", none=_NO),
    ),
    (
        "Inputs of a failed operator (op_debug_mode 4)",
        _word("exception", inputs=_YES, lite="exception dump of CANN", none=_NO),
    ),
    ("Operators by name", lambda profile: _YES),
    ("Iterations", lambda profile: "with blanks" if profile.iteration_blanks else _YES),
    ("Devices", _flag("device_filter")),
    ("set_dump (dump_mode 2)", _flag("set_dump")),
    ("trans_flag", _flag("trans_flag")),
    ("save_kernel_args", _flag("kernel_arguments")),
    ("Graph IR and execution order", lambda profile: _YES),
    ("Execution history", _flag("global_order")),
    (".dump_metadata", _flag("metadata")),
    ("Parameter files", _flag("parameters")),
    ("Constants", _flag("constants")),
    ("Number type in names", _word("dtype_in_name", lower="float32", title="Float32", none=_NO)),
    ("bfloat16 is stored as", _word("bfloat16", float32="float32", raw="raw")),
    ("Complex numbers", _word("complex_numbers", save="npy", skip64="complex128", error="error")),
    ("Iteration numbers", _word("iteration_rule", process="one count", graph="a count per graph")),
    ("Inputs are read", _word("inplace", before="before the kernel", after="after the kernel")),
)


def support_matrix(profiles: Iterable[str] | None = None) -> list[dict[str, str]]:
    """Rows of ``{"feature": ..., profile: ...}``.

    Parameters
    ----------
    profiles : iterable of str, optional
        Names such as ``seed/cpu``; all of them by default.

    Examples
    --------
    >>> rows = support_matrix(["seed/ascend_o0", "seed/cpu"])
    >>> next(row for row in rows if row["feature"] == "Statistics")
    {'feature': 'Statistics', 'seed/ascend_o0': 'host and device', 'seed/cpu': 'error'}
    """
    pairs = (name.partition("/")[::2] for name in (names() if profiles is None else profiles))
    chosen = [find(release, device) for release, device in pairs]
    return [{"feature": title, **{p.name: tell(p) for p in chosen}} for title, tell in FEATURES]


def markdown(profiles: Iterable[str] | None = None) -> str:
    """The matrix as a Markdown table.

    Examples
    --------
    >>> print(markdown(["seed/cpu"]).splitlines()[0])
    | | seed/cpu |
    """
    rows = support_matrix(profiles)
    columns = [key for key in rows[0] if key != "feature"]
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    lines += ["| " + " | ".join((row["feature"], *(row[c] for c in columns))) + " |" for row in rows]
    return "\n".join(lines)
