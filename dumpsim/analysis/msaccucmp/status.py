"""Exit codes of the tool, and the list of what it gets wrong. [spec ge 4.4, 8.3]"""

from dataclasses import dataclass
from enum import IntEnum

from dumpsim.core.errors import DumpsimError

__all__ = ["DEFECTS", "Defect", "Status", "ToolError"]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """Something that the real tool does wrong or not at all, and what is done here."""

    where: str
    real: str
    here: str
    source: str


DEFECTS = (
    Defect(
        where="convert, HIFLOAT8",
        real="49 of 256 codes are wrong: the blocks 0x08-0x1F of both signs, and 0xEF, which becomes +inf",
        here="every code has its value",
        source="spec ge 8.3",
    ),
    Defect(
        where="convert, FLOAT8_E4M3FN",
        real="0x7F and 0xFF become 480 and -480",
        here="NaN",
        source="spec ge 8.3",
    ),
    Defect(where="convert, FLOAT8_E5M2", real="0xFC becomes +inf", here="-inf", source="spec ge 8.3"),
    Defect(
        where="convert -f NCHW, FRACTAL_Z in groups",
        real="the converter is called with an argument that it does not take: exit code 26",
        here="converted, groups as sub_format says",
        source="spec ge 4.3",
    ),
    Defect(
        where="convert -f FRACTAL_Z, groups that fill more than one block",
        real="later blocks overwrite earlier ones",
        here="GE's own index rule",
        source="spec ge 5.4",
    ),
    Defect(
        where="convert -f, original shapes",
        real="the result is cut to the numbers of the original shape whatever their order: NHWC and HWCN lose elements "
        "or keep their padding, FRACTAL_Z is cut to the shape of the host",
        here="the original shape is taken in the target's order or, where only that fits, as NCHW; what has no padding "
        "is not cut",
        source="spec ge 4.3, seen with 26.2.0",
    ),
    Defect(
        where="convert -f, FRACTAL_NZ with more than three dimensions",
        real="leading dimensions are merged and the tensor cannot be sliced to its shape any more",
        here="all dimensions are kept",
        source="seen with 26.2.0",
    ),
    Defect(
        where="convert, UINT1 whose last byte is partly used",
        real="no file, a line in the log, exit code 0",
        here="converted",
        source="spec ge 4.2",
    ),
    Defect(
        where="convert, data that are not whole elements",
        real="the process ends with an exception: exit code 1",
        here="exit code 40, the other files are converted",
        source="seen with 26.2.0",
    ),
    Defect(
        where="convert -v 1",
        real="listed, without effect: such files fail with exit code 11",
        here="both containers are told apart by their first bytes",
        source="spec ge 3.9",
    ),
    Defect(
        where="overflow, an operator with an empty tensor",
        real="no summary, exit code 11",
        here="the tensor's values are nan",
        source="seen with 26.2.0",
    ),
    Defect(
        where="compare -overflow_detection, operators that cannot be compared",
        real="their lines lack a column",
        here="every line has all columns",
        source="seen with 26.2.0",
    ),
    Defect(
        where="compare, files that mapping.csv names",
        real="OpType is NaN",
        here="the type in the real name",
        source="seen with 26.2.0",
    ),
    Defect(
        where="compare, file_compare of complex tensors",
        real="imaginary parts are dropped",
        here="both parts are compared",
        source="spec ge 4.5",
    ),
    Defect(
        where="file_compare of bool, RelativeEuclideanDistance",
        real="numpy refuses to subtract booleans: NaN",
        here="computed, as compare does",
        source="seen with 26.2.0",
    ),
)
