"""A JSON parser that behaves as MindSpore's C++ library: accepted texts, values, and error messages.

Python's parser differs: it accepts NaN, refuses text after the first value, and has other messages. [spec observed 2,
rows 6-13, 23-24]
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

__all__ = ["JsonTextError", "parse"]

_DIGITS = "0123456789"  # str.isdigit() also takes superscripts
_BLANKS = " \t\n\r"
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LITERALS = {"true": True, "false": False, "null": None}
_PUNCTUATION = {"[": "'['", "]": "']'", "{": "'{'", "}": "'}'", ":": "':'", ",": "','"}
_CONTROL = (
    *("NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "HT", "LF", "VT", "FF", "CR", "SO", "SI"),
    *("DLE", "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB", "ESC", "FS", "GS", "RS", "US"),
)
_SHORT = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r"}
_EXPECTED = {"object key": "string literal", "object separator": "':'", "object": "'}'", "array": "']'"}
_EMPTY = "attempting to parse an empty input; check that your input string or stream contains the expected JSON"


class JsonTextError(ValueError):
    """A text that the C++ library refuses; the message is the library's."""


def parse(data: bytes) -> object:
    """Parse the first JSON value of a file; any text after it is ignored.

    Raises
    ------
    JsonTextError
        If the C++ library refuses the text, with its message.

    Examples
    --------
    >>> parse(b'{"a": 1, "a": [true]} and more')
    {'a': [True]}
    """
    return _Reader(data).document()


@dataclass(frozen=True, slots=True)
class _Token:
    """A token: its name in messages, and its value."""

    name: str
    value: object = None


_Stack: TypeAlias = list[tuple[dict[str, object] | list[object], str]]


class _Reader:
    """A parser of bytes, decoded as latin-1, so that positions are byte positions, as in the library."""

    __slots__ = ("at", "shown", "text", "token")

    def __init__(self, data: bytes) -> None:
        self.text = data.decode("latin-1")
        self.at = 0
        self.shown = 0  # start of "last read" in messages: the last string or number, not the last token
        self.token = _Token("<uninitialized>")

    def document(self) -> object:
        """Skip a byte order mark and read one value."""
        if self.text.startswith("\xef"):
            if not self.text.startswith("\xef\xbb\xbf"):
                self.at = 2 if self.text[1:2] != "\xbb" else 3  # also at the end of the file, which counts as a byte
                raise self.invalid("invalid BOM; must be 0xEF 0xBB 0xBF if given", "value")
            self.at = 3
        if not self.text:
            self.at = 1
            raise self.error(_EMPTY)
        self.advance("value")
        return self.value()

    def blanks(self) -> None:
        """Skip white space."""
        while self.at < len(self.text) and self.text[self.at] in _BLANKS:
            self.at += 1

    def error(self, what: str) -> JsonTextError:
        """Make an error at the last byte that was read."""
        before = self.text[: self.at]
        line = before.count("\n") + 1
        column = self.at - (before.rfind("\n") + 1)
        where = f"parse error at line {line}, column {column}"
        return JsonTextError(f"[json.exception.parse_error.101] {where}: {what}")

    def invalid(self, what: str, context: str) -> JsonTextError:
        """Make an error of the lexer, with the text that was read; control characters are shown as <U+XXXX>."""
        read = "".join(c if c >= " " else f"<U+{ord(c):04X}>" for c in self.text[self.shown : self.at])
        read = read.encode("latin-1").decode("utf-8", "replace")
        expected = f"; expected {_EXPECTED[context]}" if context in _EXPECTED else ""
        return self.error(f"syntax error while parsing {context} - {what}; last read: '{read}'{expected}")

    def unexpected(self, context: str) -> JsonTextError:
        """Make an error of the parser: an unexpected token."""
        expected = _EXPECTED.get(context, "'[', '{', or a literal")
        return self.error(f"syntax error while parsing {context} - unexpected {self.token.name}; expected {expected}")

    def advance(self, context: str) -> None:
        """Read the next token."""
        self.blanks()
        start = self.at
        if start >= len(self.text):
            self.at = len(self.text) + 1  # the library counts the end of the file as a byte
            self.token = _Token("end of input")
            return
        char = self.text[start]
        self.at += 1
        if char in _PUNCTUATION:
            self.token = _Token(_PUNCTUATION[char])
        elif char == '"':
            self.shown = start
            self.token = _Token("string literal", self.string(context))
        elif char == "-" or char in _DIGITS:
            self.shown = start
            self.token = _Token("number literal", self.number(start, context))
        else:
            self.token = self.literal(start, context)

    def literal(self, start: int, context: str) -> _Token:
        """Read true, false or null."""
        word = next((w for w in _LITERALS if w[0] == self.text[start]), None)
        if word is None:
            raise self.invalid("invalid literal", context)
        for expected in word[1:]:
            self.at += 1
            if self.text[self.at - 1 : self.at] != expected:
                raise self.invalid("invalid literal", context)
        return _Token(f"{word} literal", _LITERALS[word])

    def number(self, start: int, context: str) -> int | float:
        """Read a number; integers beyond 64 bits become floats, as in the library."""
        text = self.text
        end = start + (text[start] == "-")
        if text[end : end + 1] not in _DIGITS or end == len(text):
            self.at = end + 1
            raise self.invalid("invalid number; expected digit after '-'", context)
        end = end + 1 if text[end] == "0" else self.digits(end)
        whole = True
        if text[end : end + 1] == ".":
            whole = False
            end = self.some_digits(end + 1, "invalid number; expected digit after '.'", context)
        if text[end : end + 1] in ("e", "E"):
            whole = False
            end += 1
            what = "invalid number; expected '+', '-', or digit after exponent"
            if text[end : end + 1] in ("+", "-"):
                end += 1
                what = "invalid number; expected digit after exponent sign"
            end = self.some_digits(end, what, context)
        self.at = end
        word = text[start:end]
        if whole and -(2**63) <= Decimal(word) < 2**64:  # an int has a limit of digits
            return int(word)
        value = float(word)
        if value in (float("inf"), float("-inf")):
            raise JsonTextError(f"[json.exception.out_of_range.406] number overflow parsing '{word}'")
        return value

    def digits(self, at: int) -> int:
        """Return the end of the digits from `at`."""
        while at < len(self.text) and self.text[at] in _DIGITS:
            at += 1
        return at

    def some_digits(self, at: int, what: str, context: str) -> int:
        """Return the end of at least one digit from `at`."""
        end = self.digits(at)
        if end == at:
            self.at = at + 1
            raise self.invalid(what, context)
        return end

    def string(self, context: str) -> str:
        """Read a string after its opening quote."""
        parts: list[str] = []
        while True:
            if self.at >= len(self.text):
                self.at = len(self.text) + 1
                raise self.invalid("invalid string: missing closing quote", context)
            char = self.text[self.at]
            self.at += 1
            if char == '"':
                break
            if char == "\\":
                parts.append(self.escape(context))
            elif char < " ":
                code = ord(char)
                short = f" or {_SHORT[code]}" if code in _SHORT else ""
                what = f"control character U+{code:04X} ({_CONTROL[code]}) must be escaped to \\u{code:04X}"
                raise self.invalid(f"invalid string: {what}{short}", context)
            elif char < "\x80":
                parts.append(char)
            else:
                parts.append(self.wide(context))
        return "".join(parts)

    def wide(self, context: str) -> str:
        """Read the rest of a character of several UTF-8 bytes."""
        first = self.at - 1
        lead = ord(self.text[first])
        length = 2 if 0xC2 <= lead <= 0xDF else 3 if 0xE0 <= lead <= 0xEF else 4 if 0xF0 <= lead <= 0xF4 else 1
        for end in range(first + 2, first + length + 1):
            self.at = end
            if not _is_prefix(self.text[first:end].encode("latin-1")) or end > len(self.text):
                break
        else:
            if length > 1:
                return self.text[first : self.at].encode("latin-1").decode("utf-8")
        raise self.invalid("invalid string: ill-formed UTF-8 byte", context)

    def escape(self, context: str) -> str:
        """Read an escape sequence after its backslash."""
        char = self.text[self.at : self.at + 1]
        self.at += 1
        if char in _ESCAPES:
            return _ESCAPES[char]
        if char != "u":
            raise self.invalid("invalid string: forbidden character after backslash", context)
        code = self.hex_digits(context)
        if 0xD800 <= code <= 0xDBFF:
            what = "invalid string: surrogate U+D800..U+DBFF must be followed by U+DC00..U+DFFF"
            for expected in "\\u":
                self.at += 1
                if self.text[self.at - 1 : self.at] != expected:
                    raise self.invalid(what, context)
            low = self.hex_digits(context)
            if not 0xDC00 <= low <= 0xDFFF:
                raise self.invalid(what, context)
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
        elif 0xDC00 <= code <= 0xDFFF:
            what = "invalid string: surrogate U+DC00..U+DFFF must follow U+D800..U+DBFF"
            raise self.invalid(what, context)
        return chr(code)

    def hex_digits(self, context: str) -> int:
        """Read four hexadecimal digits."""
        code = 0
        for _ in range(4):
            self.at += 1
            digit = self.text[self.at - 1 : self.at]
            if not digit or digit not in "0123456789abcdefABCDEF":
                raise self.invalid("invalid string: '\\u' must be followed by 4 hex digits", context)
            code = code * 16 + int(digit, 16)
        return code

    def value(self) -> object:
        """Read the value that begins with the current token; without recursion, since the library reads any depth."""
        root: list[object] = []
        stack: _Stack = [(root, "")]  # open objects, with the key of their next value, and open lists
        while True:
            name = self.token.name
            made: dict[str, object] | list[object] | None = None
            if name == "'{'":
                made = {}
            elif name == "'['":
                made = []
            elif not name.endswith(" literal"):
                raise self.unexpected("value")
            holder, key = stack[-1]
            if isinstance(holder, dict):
                holder[key] = self.token.value if made is None else made  # of equal keys the last one counts
            else:
                holder.append(self.token.value if made is None else made)
            if made is not None:
                stack.append((made, ""))
                self.advance("object key" if isinstance(made, dict) else "value")
                if self.token.name != ("'}'" if isinstance(made, dict) else "']'"):
                    self.member(stack)
                    continue
                stack.pop()
            if not self.next_member(stack):
                return root[0]

    def next_member(self, stack: "_Stack") -> bool:
        """Continue with the next member of the innermost object or list; return False if the document is complete."""
        while len(stack) > 1:
            context, end = ("object", "'}'") if isinstance(stack[-1][0], dict) else ("array", "']'")
            self.advance(context)
            if self.token.name == "','":
                self.advance("object key" if context == "object" else "value")
                self.member(stack)
                return True
            if self.token.name != end:
                raise self.unexpected(context)
            stack.pop()
        return False

    def member(self, stack: "_Stack") -> None:
        """Read the key of an object's member, up to its value; members of lists have no key."""
        holder, _ = stack[-1]
        if not isinstance(holder, dict):
            return
        if self.token.name != "string literal":
            raise self.unexpected("object key")
        stack[-1] = (holder, str(self.token.value))
        self.advance("object separator")
        if self.token.name != "':'":
            raise self.unexpected("object separator")
        self.advance("value")


def _is_prefix(data: bytes) -> bool:
    """Return whether the bytes are the beginning of a valid UTF-8 character."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True
