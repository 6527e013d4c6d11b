"""From a command line to an exit code."""

import os
import re
from argparse import Namespace
from collections.abc import Sequence

from dumpsim.analysis.msaccucmp.arguments import parser
from dumpsim.analysis.msaccucmp.compare import Comparison, compare
from dumpsim.analysis.msaccucmp.convert import Conversion, convert
from dumpsim.analysis.msaccucmp.filecompare import file_compare
from dumpsim.analysis.msaccucmp.journal import Journal
from dumpsim.analysis.msaccucmp.overflow import overflow
from dumpsim.analysis.msaccucmp.reformat import check_target, custom_converters
from dumpsim.analysis.msaccucmp.safepath import existing
from dumpsim.analysis.msaccucmp.status import Status, ToolError
from dumpsim.core.errors import DumpsimError

__all__ = ["run"]

_SHAPE = re.compile(r"([0-9]+,)+[0-9]+")


def run(arguments: Sequence[str], *, program: str = "msaccucmp.py", journal: Journal | None = None) -> int:
    """Run the tool; its lines go to standard error, as the real one has it.

    Returns
    -------
    int
        A number of `Status`; 2 from argparse for a command line that is not one.

    Examples
    --------
    >>> import io
    >>> log = io.StringIO()
    >>> run(["convert", "-d", "/nonexistent"], journal=Journal(log, lambda: 0))
    3
    >>> "does not exist" in log.getvalue()
    True
    """
    journal = journal or Journal()
    start = journal.now()
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        journal.warning("Running as root; an ordinary user is enough and safer.")
    made = parser(program)
    try:
        options = made.parse_args(list(arguments))
    except SystemExit as end:
        return int(end.code or 0)
    try:
        if options.cmd is None:
            made.print_help()
            status = Status.INVALID_PARAM
        else:
            status = _COMMANDS[options.cmd](options, journal)
    except ToolError as error:
        journal.error(str(error))
        status = error.status
    except DumpsimError as error:
        journal.error(str(error))
        status = Status.INVALID_DUMP_DATA
    except OSError as error:
        journal.error(f"{error.filename}: {error.strerror}")
        status = Status.OPEN_FILE
    journal.info(f"The command was completed and took {int(journal.now() - start)} seconds.")
    return int(status)


def _convert(options: Namespace, journal: Journal) -> Status:
    for value, flag in (
        (options.shape, '"-s" or "--shape"'),
        (options.output, '"-o" or "--output_tensor"'),
        (options.input, '"-i" or "--input_tensor"'),
    ):
        if value is not None and options.format is None:
            raise ToolError(Status.INVALID_PARAM, f"The argument '{flag}' takes effect only when the \"'-f'\" exists.")
    what = Conversion(
        out=options.output_path or os.getcwd(),
        type=options.type,
        format=None if options.format is None else check_target(options.format),
        shape=_shape(options.shape),
        input=_index(options.input),
        output=_index(options.output),
        custom=custom_converters(existing(options.custom_script_path, "directory"), journal)
        if options.custom_script_path
        else {},
    )
    return convert([path for path in options.dump_path.split(",") if path], what, journal)


def _shape(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    if _SHAPE.fullmatch(text) is None:
        raise ToolError(Status.INVALID_PARAM, f"The shape('{text}') is invalid. It has the form 1,3,224,224.")
    shape = tuple(int(n) for n in text.split(","))
    if 0 in shape:
        raise ToolError(Status.INVALID_SHAPE, f"The shape('{text}') is invalid. Each dimension must be greater than 0.")
    return shape


def _index(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise ToolError(
            Status.INVALID_PARAM, f"The tensor index '{text}' is invalid. It only supports 'natural number'."
        )
    return int(text)


def _overflow(options: Namespace, journal: Journal) -> Status:
    return overflow(options.dump_path, options.output_path, options.top_n, journal)


def _file_compare(options: Namespace, journal: Journal) -> Status:
    return file_compare(options.my_dump_path, options.golden_dump_path, options.output_path, journal)


# options of compare that are parsed, so that they can be named, and refused
_REFUSED = {
    "quant_fusion_rule_file": "-q",
    "close_fusion_rule_file": "-cf",
    "post_process": "-p 1",
    "max_cmp_size": "-max",
    "advisor": "-advisor",
    "op_name": "-op",
    "output": "-o",
    "input": "-i",
    "ignore_single_op_result": "--ignore_single_op_result",
    "topn": "-n",
    "max_line": "-ml",
    "ffts": "-ffts",
}


def _compare(options: Namespace, journal: Journal) -> Status:
    for name, flag in _REFUSED.items():
        if getattr(options, name) not in (None, "", 0, False):
            raise ToolError(Status.UNSUPPORTED_COMPARE, f"dumpsim does not support {flag} of compare.")
    if options.range is not None and options.select is not None:
        raise ToolError(Status.INVALID_PARAM, 'The argument "-r" and "-s" can not be used at the same time')
    for value, flag in ((options.range, '"-r" or "--range"'), (options.select, '"-s" or "--select"')):
        if value is not None and not options.fusion_rule_file:
            raise ToolError(Status.INVALID_PARAM, f'The argument {flag} takes effect only when the "-f" exists.')
    if options.mapping and not options.fusion_rule_file:
        raise ToolError(Status.INVALID_PARAM, "When --mapping or -map exists, -f is needed too.")
    return compare(
        Comparison(
            own=options.my_dump_path,
            golden=options.golden_dump_path,
            out=options.output_path or os.getcwd(),
            fusion=options.fusion_rule_file or None,
            custom=options.custom_script_path or None,
            algorithm=options.algorithm,
            algorithm_options=options.algorithm_options,
            mapping=options.mapping,
            overflow_detection=options.overflow_detection,
            range=options.range,
            select=options.select,
        ),
        journal,
    )


_COMMANDS = {"compare": _compare, "convert": _convert, "overflow": _overflow, "file_compare": _file_compare}
