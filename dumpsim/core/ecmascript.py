"""ECMAScript patterns, as the C++ standard library reads them, turned into Python patterns.

``name-regex(...)`` of a dump config is such a pattern. Python's own syntax differs in what it accepts (lookbehind,
named groups, flags, possessive quantifiers) and in what the same text means (``[[:alpha:]]``, ``[]``, ``$``), so the
text is parsed, not passed on. The error texts are those of the library, since users see them. [spec mindspore 2.2,
spec observed 1.7]
"""

import re

__all__ = ["PatternError", "compile_pattern"]

# character classes of the "C" locale, as the inside of a Python bracket
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "d": "0-9",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "s": r" \t\n\r\f\v",
    "space": r" \t\n\r\f\v",
    "upper": "A-Z",
    "w": "a-zA-Z0-9_",
    "xdigit": "0-9A-Fa-f",
}
_SIMPLE_ESCAPES = {"0": "\0", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_TOO_LARGE = (
    "Number of NFA states exceeds limit. Please use shorter regex string, or use smaller brace expression, or make "
    "_GLIBCXX_REGEX_STATE_LIMIT larger."
)
_QUANTIFIERS = "*+?{"


class PatternError(ValueError):
    """A pattern that the C++ library rejects; the message is the library's."""


def compile_pattern(text: str) -> "re.Pattern[str]":
    r"""Compile an ECMAScript pattern.

    Raises
    ------
    PatternError
        With the text of the C++ library.

    Examples
    --------
    >>> bool(compile_pattern("Default/.+dd-op[0-9]+").fullmatch("Default/Add-op0"))
    True
    >>> compile_pattern("(a")
    Traceback (most recent call last):
    dumpsim.core.ecmascript.PatternError: Parenthesis is not closed.
    """
    try:
        return re.compile(_Parser(text).pattern(), re.ASCII)
    except (RecursionError, OverflowError):  # nested deeper, or with more repetitions, than Python supports
        raise PatternError(_TOO_LARGE) from None


class _Parser:
    """Recursive descent over one pattern; every method returns Python pattern text."""

    __slots__ = ("at", "closed", "opened", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.opened = 0
        self.closed: set[int] = set()

    def pattern(self) -> str:
        """Translate the whole text."""
        found = self.disjunction()
        if self.at != len(self.text):
            # a lone ")", or a quantifier with nothing before it
            raise PatternError("Mismatched '(' and ')' in regular expression")
        return found

    def peek(self) -> str:
        """The next character, empty at the end."""
        return self.text[self.at : self.at + 1]

    def take(self, ending: str) -> str:
        """Consume the next character; at the end of the text raise an error with the text `ending`."""
        if self.at == len(self.text):
            raise PatternError(ending)
        self.at += 1
        return self.text[self.at - 1]

    def disjunction(self) -> str:
        """Alternatives between bars."""
        branches = [self.alternative()]
        while self.peek() == "|":
            self.at += 1
            branches.append(self.alternative())
        return "|".join(branches)

    def alternative(self) -> str:
        """Terms one after the other."""
        parts: list[str] = []
        while self.peek() not in "|)" + _QUANTIFIERS:  # the empty text at the end is in every text
            parts.append(self.term())
        return "".join(parts)

    def term(self) -> str:
        """An assertion, or an atom and its quantifiers."""
        char = self.take("")
        if char == "^":
            return r"\A"
        if char == "$":
            return r"\Z"
        if char == "(":
            atom, is_assertion = self.group()
            if is_assertion:
                return atom
        elif char == "\\":
            atom = self.escape()
            if atom in (r"\b", r"\B"):
                return atom
        elif char == "[":
            atom = self.bracket()
        else:
            atom = r"[^\n\r]" if char == "." else re.escape(char)
        while self.at < len(self.text) and self.peek() in _QUANTIFIERS:
            atom = f"(?:{atom}{self.quantifier()})"  # "a**" is legal and means (a*)*
        return atom

    def quantifier(self) -> str:
        """One quantifier with its lazy mark."""
        sign = self.brace() if self.peek() == "{" else self.take("")
        if self.peek() == "?":
            self.at += 1
            sign += "?"
        return sign

    def brace(self) -> str:
        """``{n}``, ``{n,}`` or ``{n,m}``, one token at a time, since the first wrong token decides the error."""
        self.at += 1
        low = self.brace_number()
        if not low:
            raise PatternError("Unexpected token in brace expression.")
        bounds, high = low, ""
        if self.peek() == ",":
            self.at += 1
            high = self.brace_number()
            bounds = f"{low},{high}"
        if self.peek() != "}":
            raise PatternError("Unexpected end of brace expression.")
        self.at += 1
        if high and int(high) < int(low):
            raise PatternError("Invalid range in brace expression.")
        return f"{{{bounds}}}"

    def brace_number(self) -> str:
        """Read digits; return an empty text if a comma, a brace or the end comes first."""
        digits = ""
        while self.peek() and self.peek() in "0123456789":
            digits += self.take("")
        if self.peek() and self.peek() not in ",}":
            raise PatternError("Unexpected character in brace expression.")
        return digits

    def group(self) -> tuple[str, bool]:
        """What follows an opening parenthesis; True marks a look-ahead."""
        head = "("
        number = 0
        if self.peek() == "?":
            self.at += 1
            kind = self.take("Unexpected end of regex when in an open parenthesis.")
            if kind not in ":=!":
                raise PatternError("Invalid special open parenthesis.")
            head = f"(?{kind}"
        else:
            self.opened += 1
            number = self.opened
        inside = self.disjunction()
        if self.peek() != ")":
            raise PatternError("Parenthesis is not closed.")
        self.at += 1
        if number:
            self.closed.add(number)
        return f"{head}{inside})", head in ("(?=", "(?!")

    def escape(self) -> str:
        """What follows a backslash outside brackets."""
        char = self.take("Unexpected end of regex when escaping.")
        if char in "bB":
            return f"\\{char}"
        if char in "dswDSW":
            inside = _CLASSES[char.lower()]
            return f"[^{inside}]" if char.isupper() else f"[{inside}]"
        if char.isdigit() and char != "0":
            while self.peek().isdigit():
                char += self.take("")
            number = int(char)
            if number > self.opened:
                raise PatternError("Back-reference index exceeds current sub-expression count.")
            if number not in self.closed:
                raise PatternError("Back-reference referred to an opened sub-expression.")
            return f"(?:\\{number})"
        return re.escape(self.character(char))

    def character(self, char: str) -> str:
        """The character that an escape stands for."""
        if char in _SIMPLE_ESCAPES:
            return _SIMPLE_ESCAPES[char]
        if char == "c":
            return self.take("Unexpected end of regex when reading control code.")
        if char in "xu":
            digits = ""
            for _ in range(2 if char == "x" else 4):
                digit = self.take("Unexpected end of regex when ascii character.")
                if digit not in "0123456789abcdefABCDEF":
                    raise PatternError("Unexpected end of regex when ascii character.")
                digits += digit
            return chr(int(digits, 16))
        return char

    def bracket(self) -> str:
        """A bracket expression whose opening bracket has been read."""
        negated = self.peek() == "^"
        if negated:
            self.at += 1
        members: list[str] = []
        last: str | None = None  # the character that a following dash would make a range of
        while True:
            kind, value = self.member()
            if kind == "end":
                break
            if kind == "class":
                members.append(value)
                last = None
            elif kind == "char" or last is None:
                members.append(_inside(value))
                last = value if kind == "char" else "-"
            else:
                last = self.range_after_dash(members, last)
                if last == "]":
                    break
        inside = "".join(members)
        if not inside:
            return r"[\s\S]" if negated else r"(?!)"
        return f"[^{inside}]" if negated else f"[{inside}]"

    def range_after_dash(self, members: list[str], low: str) -> str | None:
        """Finish ``low-``; returns "]" when the dash was the bracket's last character."""
        kind, high = self.member()
        if kind == "end":
            members.append(_inside("-"))
            return "]"
        if kind == "class":
            raise PatternError("Character is expected after a dash.")
        if high < low:
            raise PatternError("Invalid range in bracket expression.")
        members[-1] = f"{_inside(low)}-{_inside(high)}"
        return None

    def member(self) -> tuple[str, str]:
        """The next member of a bracket: ("char" | "class" | "dash" | "end", value)."""
        char = self.take("Unexpected character in bracket expression.")
        if char == "]":
            return "end", ""
        if char == "-":
            return "dash", "-"
        if char == "[":
            return self.named_member()
        if char != "\\":
            return "char", char
        char = self.take("Unexpected end of regex when escaping.")
        if char in "dsw":
            return "class", _CLASSES[char]
        if char in "DSW":
            return "class", f"\\{char}"
        if char == "b":
            return "char", "\b"
        if char.isdigit() and char != "0":
            raise PatternError("Unexpected character in bracket expression.")
        return "char", self.character(char)

    def named_member(self) -> tuple[str, str]:
        """``[:alpha:]``, ``[.x.]``, ``[=x=]``, or a plain opening bracket."""
        mark = self.peek()
        if not mark:
            raise PatternError("Unexpected character in bracket expression.")
        if mark not in ":.=":
            return "char", "["
        end = self.text.find(f"{mark}]", self.at + 1)
        if end == -1:
            raise PatternError("Unexpected end of character class.")
        name = self.text[self.at + 1 : end]
        self.at = end + 2
        if mark == ":":
            if name.lower() not in _CLASSES:
                raise PatternError("Invalid character class.")
            return "class", _CLASSES[name.lower()]
        if len(name) != 1:
            raise PatternError("Invalid collate element." if mark == "." else "Invalid equivalence class.")
        return ("char" if mark == "." else "class"), (name if mark == "." else _inside(name))


def _inside(char: str) -> str:
    """A character as a member of a Python bracket."""
    return f"\\{char}" if char in r"\]^-[&~|" else char
