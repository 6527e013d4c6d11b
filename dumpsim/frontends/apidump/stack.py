"""Stacks of calls: frames are stored as (code, offset), and formatted as text when the dump stops."""

import linecache
import re
import struct
from types import CodeType, FrameType
from typing import Any

from dumpsim._ext.frames import Frames

__all__ = ["HIDDEN", "Stacks", "layer_key"]

# frames of files whose path contains one of these are omitted [spec api_dump 1.5; list read from 1.0.17]
HIDDEN = (
    "/torch/autograd/",
    "/torch/backends/",
    "/torch/cuda/",
    "/torch/distributed/",
    "/torch/distributions/",
    "/torch/fft/",
    "/torch/fx/",
    "/torch/jit/",
    "/torch/linalg/",
    "/torch/nn/",
    "/torch/onnx/",
    "/torch/optim/",
    "/torch/profiler/",
    "/torch/quantization/",
    "/troubleshooter/migrator/api_dump/",
)
_OWN = "dumpsim/frontends/apidump/"
# torch's own dispatch to an interception, which is not in the real tool's stacks
_DISPATCH = "/torch/overrides.py"
_LAYER = re.compile(r"(.*?)_(\d)(.?)")

_PLACE = struct.Struct("=qq")  # id of a code object that is kept alive, and the offset of its instruction


def layer_key(name: str) -> str:
    """Return the key of a module's stack, which is cut after the first digit that follows ``_``. [spec api_dump 1.5]

    Examples
    --------
    >>> layer_key("features_0"), layer_key("layers_0_conv1"), layer_key("head_d")
    ('LAYER: features.0 forward', 'LAYER: layers.0_ forward', 'LAYER: head_d forward')
    """
    found = _LAYER.match(name)
    return f"LAYER: {'{}.{}{}'.format(*found.groups()) if found else name} forward"


class Stacks(Frames):
    """The stacks of a dump by key; equal ones are stored once.

    Parameters
    ----------
    hidden : tuple of str
        Frames of files whose path contains one of these are omitted from filtered stacks.
    """

    def __init__(self, hidden: tuple[str, ...] = HIDDEN) -> None:
        super().__init__()
        self._directories = hidden
        # by id: hashing a code object hashes all of its content
        self._codes: dict[int, CodeType] = {}
        self._texts: dict[tuple[Any, ...], str] = {}

    def keep(self, key: str, frame: FrameType | None, *, filtered: bool) -> None:
        """Store the stack from `frame` outwards."""
        self.put(key, self.places(frame, filtered))

    def texts(self) -> dict[str, list[str]]:
        """Return the frames by key, in the order of the first call of each key."""
        self.changed = False
        stacks = self.keys.copy().items()  # other threads may add stacks meanwhile; `copy` is atomic
        return {key: [self._text(place) for place in _PLACE.iter_unpack(stack)] for key, stack in stacks}

    def classify(self, code: CodeType) -> int:
        self._codes[id(code)] = code
        kind = self.kinds[id(code)] = _kind(code, self._directories)
        return kind

    def _text(self, place: tuple[Any, ...]) -> str:
        text = self._texts.get(place)
        if text is None:
            code = self._codes[place[0]]
            line = _line(code, place[1])
            source = linecache.getline(code.co_filename, line).strip()
            text = self._texts[place] = f"File {code.co_filename}, line {line}, in {code.co_name}, \n {source}"
        return text


def _line(code: CodeType, offset: int) -> int:
    """Return the line of an instruction, as the frame would."""
    return next((line or 0 for start, end, line in code.co_lines() if start <= offset < end), code.co_firstlineno)


def _kind(code: CodeType, hidden: tuple[str, ...]) -> int:
    # 0 the user's, 1 in a hidden directory, 2 ours, 3 torch's dispatch to us
    path = code.co_filename
    if path.endswith(_DISPATCH):
        return 3
    if _OWN in path.replace("\\", "/"):
        return 2
    return int(any(part in path for part in hidden))
