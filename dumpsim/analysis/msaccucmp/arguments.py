"""The command line, flag by flag. [spec ge 4.1, 4.6]"""

import argparse

from dumpsim.analysis.msaccucmp.convert import TYPES
from dumpsim.analysis.msaccucmp.safepath import safe_path_list_string, safe_path_string

__all__ = ["parser"]


def parser(program: str = "msaccucmp.py") -> argparse.ArgumentParser:
    """The parser of all four commands."""
    top = argparse.ArgumentParser(prog=program, description="Convert and compare dumps as CANN's tool does.")
    commands = top.add_subparsers(dest="cmd", help="commands")
    _compare(commands.add_parser("compare", help="compare two dumps, operator by operator"))
    _convert(commands.add_parser("convert", help="convert dump files to npy, bin or pt files"))
    _overflow(commands.add_parser("overflow", help="show which operators overflowed"))
    _file_compare(commands.add_parser("file_compare", help="compare two npy files"))
    return top


def _convert(to: argparse.ArgumentParser) -> None:
    add = to.add_argument
    add("-d", "--dump_file", dest="dump_path", type=safe_path_list_string, required=True,
        help="a dump file, several with commas between them, or a directory without its subdirectories")  # fmt: skip
    add("-f", "--format", dest="format", help="the layout to convert to, such as NCHW")
    add("-s", "--shape", dest="shape", help="the shape on the host, such as 1,3,224,224; for FRACTAL_NZ, with -f")
    one = to.add_mutually_exclusive_group()
    one.add_argument("-o", "--output_tensor", dest="output", help="only the output of this number; with -f")
    one.add_argument("-i", "--input_tensor", dest="input", help="only the input of this number; with -f")
    add("-c", "--custom_script_path", dest="custom_script_path", type=safe_path_string,
        help="a directory with converters of your own in format_convert/; they are run")  # fmt: skip
    add("-out", "--output", dest="output_path", default=None, type=safe_path_string,
        help="the directory of the results; the working directory if it is left out")  # fmt: skip
    add("-v", "--version", dest="dump_version", type=int, choices=(1, 2),
        help="1: a bare protobuf, 2: header and data; the file itself tells which it is")  # fmt: skip
    add("-t", "--type", dest="type", choices=TYPES, default="npy", help="the kind of the results; npy by default")


def _overflow(to: argparse.ArgumentParser) -> None:
    add = to.add_argument
    add("-d", "--dump_path", dest="dump_path", type=safe_path_string, required=True, help="the root of the dump")
    add(
        "-out",
        "--output",
        dest="output_path",
        type=safe_path_string,
        required=True,
        help="the directory of the results",
    )
    add(
        "-n",
        "--top_n",
        dest="top_n",
        type=int,
        choices=(1, 2, 3, 4, 5),
        default=1,
        help="how many to show; 1 by default",
    )


def _file_compare(to: argparse.ArgumentParser) -> None:
    add = to.add_argument
    add("-m", "--my_dump_path", dest="my_dump_path", type=safe_path_string, required=True, help="the npy file to check")
    add("-g", "--golden_dump_path", dest="golden_dump_path", type=safe_path_string, required=True,
        help="the npy file to compare with")  # fmt: skip
    add(
        "-out", "--output", dest="output_path", type=safe_path_string, required=True, help="the directory of the result"
    )


def _compare(to: argparse.ArgumentParser) -> None:
    add = to.add_argument
    add("-m", "--my_dump_path", dest="my_dump_path", type=safe_path_string, required=True, help="the dump to check")
    add("-g", "--golden_dump_path", dest="golden_dump_path", type=safe_path_string, required=True,
        help="the dump to compare with")  # fmt: skip
    add("-f", "--fusion_rule_file", dest="fusion_rule_file", default=None, type=safe_path_string,
        help="the compiled model as JSON, which tells what was fused; needed against npy files")  # fmt: skip
    add("-q", "--quant_fusion_rule_file", dest="quant_fusion_rule_file", default=None, type=safe_path_string,
        help="the quantised model as JSON (not supported)")  # fmt: skip
    add("-cf", "--close_fusion_rule_file", dest="close_fusion_rule_file", default=None, type=safe_path_string,
        help="the model without fusion as JSON (not supported)")  # fmt: skip
    add("-out", "--output", dest="output_path", default=None, type=safe_path_string, help="the directory of the result")
    add("-c", "--custom_script_path", dest="custom_script_path", default=None, type=safe_path_string,
        help="a directory with converters and measures of your own; they are run")  # fmt: skip
    add("-a", "--algorithm_options", dest="algorithm_options", default="",
        help='parameters of measures of your own: "Name:key=value,key=value;Name:..."')  # fmt: skip
    add("-alg", "--algorithm", dest="algorithm", default="all",
        help="measures by number or name with commas between them, or all, which is the default")  # fmt: skip
    add("-map", "--mapping", dest="mapping", action="store_true",
        help="only write which tensor belongs to which; with -f")  # fmt: skip
    add("-overflow_detection", dest="overflow_detection", action="store_true",
        help="a column that tells whether a float16 tensor reached its limit")  # fmt: skip
    add("-r", "--range", dest="range", help="operators start,end,step of the model; with -f")
    add("-s", "--select", dest="select", help="operators by number with commas between them; with -f")
    add("-p", "--post_process", dest="post_process", type=int, choices=(0, 1), default=0,
        help="1: extract the result of PyTorch dumps (not supported)")  # fmt: skip
    add("-max", "--max_cmp_size", dest="max_cmp_size", type=int, default=0,
        help="the largest tensor to compare (not supported)")  # fmt: skip
    add("-advisor", dest="advisor", action="store_true", help="advice on the result (not supported)")
    add("-v", "--version", dest="dump_version", type=int, choices=(1, 2),
        help="1: a bare protobuf, 2: header and data; the file itself tells which it is")  # fmt: skip
    add("-op", "--op_name", dest="op_name", default="", help="one operator, element by element (not supported)")
    one = to.add_mutually_exclusive_group()
    one.add_argument("-o", "--output_tensor", dest="output", help="with -op")
    one.add_argument("-i", "--input_tensor", dest="input", help="with -op")
    add("--ignore_single_op_result", dest="ignore_single_op_result", action="store_true", help="with -op")
    add("-n", "--topn", dest="topn", type=int, default=None, help="with -op")
    add("-ml", "--max_line", dest="max_line", type=int, default=None, help="with -op")
    add("-ffts", dest="ffts", action="store_true", help="FFTS+ dumps without joining their slices (not supported)")
