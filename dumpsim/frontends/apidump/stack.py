"""Where a call came from: frames are kept as (code, offset), turned into lines and text once, when the dump stops."""

import linecache
import re
from types import CodeType, FrameType

__all__ = ["HIDDEN", "Stacks", "layer_key"]

# frames of files whose path holds one of these are left out [spec api_dump 1.5; list asked of 1.0.17]
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
# torch's own path to an interception, which the real tool's frames do not hold
_DISPATCH = "/torch/overrides.py"
_LAYER = re.compile(r"(.*?)_(\d)(.?)")

Place = tuple[int, int]  # id of a code object that is kept alive, and the offset of its instruction


def layer_key(name: str) -> str:
    """Key of a module's stack; only the first digit after a ``_`` and the character behind it stay. [spec api_dump 1.5]

    Examples
    --------
    >>> layer_key("features_0"), layer_key("layers_0_conv1"), layer_key("head_d")
    ('LAYER: features.0 forward', 'LAYER: layers.0_ forward', 'LAYER: head_d forward')
    """
    found = _LAYER.match(name)
    return f"LAYER: {'{}.{}{}'.format(*found.groups()) if found else name} forward"


class Stacks:
    """The stacks of a dump by key, each distinct one once.

    Parameters
    ----------
    hidden : tuple of str
        Frames of files whose path holds one of these are left out of filtered stacks.
    """

    def __init__(self, hidden: tuple[str, ...] = HIDDEN) -> None:
        self._directories = hidden
        self._keys: dict[str, tuple[tuple[Place, ...], bool]] = {}
        # by id: hashing a code object hashes all that it holds
        self._hidden: dict[int, int] = {}
        self._codes: dict[int, CodeType] = {}
        self._distinct: dict[tuple[Place, ...], tuple[Place, ...]] = {}
        self._texts: dict[Place, str] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def keep(self, key: str, frame: FrameType | None, *, filtered: bool) -> None:
        """Remember the stack from `frame` outwards."""
        places: list[Place] = []
        hidden = self._hidden
        while frame is not None:
            code = frame.f_code
            number = id(code)
            kind = hidden.get(number)
            if kind is None:
                self._codes[number] = code
                kind = hidden[number] = _kind(code, self._directories)
            if kind == 3 and frame.f_back is not None:  # the function that asked for overrides is the API itself
                frame = frame.f_back.f_back
                continue
            # 0 the user's, 1 of a hidden directory, 2 ours
            if kind == 0 or (kind == 1 and not filtered):
                places.append((number, frame.f_lasti))  # its line takes a search
            frame = frame.f_back
        key_places = tuple(places)
        self._keys[key] = (self._distinct.setdefault(key_places, key_places), filtered)

    def texts(self) -> dict[str, list[str]]:
        """The frames by key, in the order of the first call of each key."""
        return {key: [self._text(place) for place in places] for key, (places, _) in self._keys.items()}

    def _text(self, place: Place) -> str:
        text = self._texts.get(place)
        if text is None:
            code = self._codes[place[0]]
            line = _line(code, place[1])
            source = linecache.getline(code.co_filename, line).strip()
            text = self._texts[place] = f"File {code.co_filename}, line {line}, in {code.co_name}, \n {source}"
        return text


def _line(code: CodeType, offset: int) -> int:
    """The line of an instruction, as the frame would tell it."""
    return next((line or 0 for start, end, line in code.co_lines() if start <= offset < end), code.co_firstlineno)


def _kind(code: CodeType, hidden: tuple[str, ...]) -> int:
    path = code.co_filename
    if path.endswith(_DISPATCH):
        return 3
    if _OWN in path.replace("\\", "/"):
        return 2
    return int(any(part in path for part in hidden))
