"""Exit codes of the tool, and the list of what it gets wrong. [spec ge 4.4, 8.3]

Where the real tool (26.2.0) is wrong or refuses, and what is done here:

* convert, HIFLOAT8: 49 of 256 codes are wrong: the blocks 0x08-0x1F of both signs, and 0xEF, which becomes +inf.
  Here: every code has its value. [spec ge 8.3]
* convert, FLOAT8_E4M3FN: 0x7F and 0xFF become 480 and -480. Here: NaN. [spec ge 8.3]
* convert, FLOAT8_E5M2: 0xFC becomes +inf. Here: -inf. [spec ge 8.3]
* convert -f NCHW, FRACTAL_Z in groups: the converter is called with an argument that it does not take: exit code 26.
  Here: converted, groups as sub_format says. [spec ge 4.3]
* convert -f FRACTAL_Z, groups that fill more than one block: later blocks overwrite earlier ones. Here: GE's own
  index rule. [spec ge 5.4]
* convert -f, original shapes: the result is cut to the numbers of the original shape whatever their order: NHWC and
  HWCN lose elements or keep their padding, FRACTAL_Z is cut to the shape of the host. Here: the original shape is
  taken in the target's order or, where only that fits, as NCHW; what has no padding is not cut. [spec ge 4.3, seen
  with 26.2.0]
* convert -f, FRACTAL_NZ with more than three dimensions: leading dimensions are merged and the tensor cannot be
  sliced to its shape any more. Here: all dimensions are kept. [seen with 26.2.0]
* convert, UINT1 whose last byte is partly used: no file, a line in the log, exit code 0. Here: converted. [spec ge
  4.2]
* convert, data that are not whole elements: the process ends with an exception: exit code 1. Here: exit code 40, the
  other files are converted. [seen with 26.2.0]
* convert -v 1: listed, without effect: such files fail with exit code 11. Here: both containers are recognised by
  their first bytes. [spec ge 3.9]
* overflow, an operator with an empty tensor: no summary, exit code 11. Here: the tensor's values are nan. [seen with
  26.2.0]
* compare -overflow_detection, operators that cannot be compared: their lines lack a column. Here: every line has all
  columns. [seen with 26.2.0]
* compare, files that mapping.csv names: OpType is NaN. Here: the type in the real name. [seen with 26.2.0]
* compare, file_compare of complex tensors: imaginary parts are dropped. Here: both parts are compared. [spec ge 4.5]
* file_compare of bool, RelativeEuclideanDistance: numpy refuses to subtract booleans: NaN. Here: computed, as compare
  does. [seen with 26.2.0]
"""

from enum import IntEnum

from dumpsim.core.errors import DumpsimError

__all__ = ["Status", "ToolError"]


class Status(IntEnum):
    """What the process returns."""

    OK = 0
    UNKNOWN = 1
    NO_DUMP_FILE = 2
    INVALID_PATH = 3
    PARSE_DUMP_FILE = 4
    MALLOC = 5
    INVALID_PARAM = 6
    OPEN_FILE = 7
    CLOSE_FILE = 8
    OPEN_DIR = 9
    CLOSE_DIR = 10
    INVALID_DUMP_DATA = 11
    INDEX_OUT_OF_BOUNDS = 12
    PARSE_JSON = 13
    MEMSET = 14
    LEFT_ZERO = 15
    RIGHT_ZERO = 16
    MATCH_MORE_FILES = 17
    DUMP_FILE = 18
    WRITE_FILE = 19
    INVALID_DUMP_TYPE = 20
    INVALID_DATA_TYPE = 21
    INVALID_FORMAT = 22
    INVALID_SHAPE = 23
    INVALID_TYPE = 24
    INVALID_TARGET = 25
    INVALID_CONVERT_FUNCTION = 26
    SHAPE_CONVERT = 27
    INVALID_GOLDEN_ENVIRONMENT = 28
    INVALID_JSON_FILE = 29
    UNSUPPORTED_COMPARE = 30
    INVALID_ALGORITHM = 31
    DELETE_FILE = 32
    INVALID_FILE = 33
    INVALID_FRACTAL_NZ = 34
    INVALID_OVERFLOW_TYPE = 35
    INVALID_OVERFLOW_STATUS = 36
    INVALID_TASK_TYPE = 37
    MISSING_FILE = 38
    SIZE_MISMATCH = 39
    SHAPE_MISMATCH = 40
    SLICE_DATA = 41
    INPUT_MAPPING = 42
    FILE_TOO_LARGE = 43
    SYMLINK = 44
    FILE_EXISTS = 45
    DANGEROUS_FILE = 46
    PARSE_NANO = 47
    INVALID_NAME = 48


class ToolError(DumpsimError):
    """What ends a command, or one file of it: a text for the log and an exit code."""

    def __init__(self, status: Status, what: str) -> None:
        super().__init__(what)
        self.status = status
