"""The ``iteration`` grammar of MindSpore's dump config: ``all``, or numbers and ranges between bars.

The grammar is looser than it looks: a token that is neither a number nor a range is accepted and never matches.
[spec mindspore 2.1, spec observed 1.5]
"""

from dataclasses import dataclass

from dumpsim.core.errors import DumpConfigError

__all__ = ["Steps"]

_ALPHABET = frozenset("0123456789-|")
_ULONG_MAX = 2**64 - 1
_ULONG_DIGITS = len(str(_ULONG_MAX))  # Python refuses to read numbers of thousands of digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The iterations that a config selects.

    Attributes
    ----------
    text : str
        The text in the config.
    every : bool
        The text is ``all``.
    ranges : tuple of (int, int)
        Inclusive bounds; a pair whose low end is above its high end matches nothing, as on the real system.
    oversized : tuple of str
        Numbers beyond 64 bits: their tokens never match, and the vendor logs an error at each check.
    idle : tuple of str
        Tokens that match no iteration: ``8-5``, ``1-``.

    Examples
    --------
    >>> steps = Steps.parse("0|2-3|5")
    >>> [n for n in range(8) if n in steps]
    [0, 2, 3, 5]
    >>> 1 in Steps.parse("0-1-2|-1|1-"), 7 in Steps.parse("all")
    (False, True)
    """

    text: str
    every: bool = False
    ranges: tuple[tuple[int, int], ...] = ()
    oversized: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text

    @classmethod
    def parse(cls, text: str, *, blanks: bool = False) -> "Steps":
        """Read an ``iteration`` text.

        Parameters
        ----------
        text : str
        blanks : bool
            Whether blanks around numbers are legal, as in the seed's own example; the observed releases reject them.
            [decisions]

        Raises
        ------
        DumpConfigError
            For a character that the grammar does not allow; the message is the vendor's text.

        Examples
        --------
        >>> 6 in Steps.parse("0 | 5-8 | 100-120", blanks=True)
        True
        """
        bare = _without_blanks(text) if blanks else text
        if bare == "all":
            return cls(text=text, every=True)
        if not bare or not _ALPHABET.issuperset(bare):
            allowed = '"all", or numbers and ranges separated by |, such as 0|5-8|100-120'
            raise DumpConfigError(
                f"{text!r} is not an iteration text",
                where="$.common_dump_settings.iteration",
                allowed=(allowed,),
                nearest=_nearest(text),
                vendor=f"iteration only supports digits, {{'-', '|'}}, or just \"all\" but got: {text}",
                code="DS-CFG-020",
            )
        ranges: list[tuple[int, int]] = []
        oversized: list[str] = []
        idle: list[str] = []
        for token in bare.split("|"):
            sides = token.split("-")
            if len(sides) > 2 or not all(sides):
                idle.append(token)
                continue  # accepted, never matches
            large = [
                side
                for side in sides
                if len(side.lstrip("0")) > _ULONG_DIGITS or int(side[-_ULONG_DIGITS:]) > _ULONG_MAX
            ]
            if large:
                oversized += large
                continue
            low, high = int(sides[0][-_ULONG_DIGITS:]), int(sides[-1][-_ULONG_DIGITS:])
            ranges.append((low, high))
            if low > high:
                idle.append(token)
        return cls(text=text, ranges=tuple(ranges), oversized=tuple(oversized), idle=tuple(idle))

    def __contains__(self, iteration: object) -> bool:
        """Whether the iteration is selected."""
        if self.every:
            return True
        return isinstance(iteration, int) and any(low <= iteration <= high for low, high in self.ranges)

    @property
    def never(self) -> bool:
        """Whether the text is legal but matches no iteration."""
        return not self.every and not any(low <= high for low, high in self.ranges)


def _without_blanks(text: str) -> str:
    """Remove the blanks around numbers; a blank inside a number remains, so that the text is rejected."""
    tokens = ("-".join(side.strip() for side in token.split("-")) for token in text.split("|"))
    return "|".join(tokens)


def _nearest(text: str) -> str | None:
    """Return the legal text that was probably meant."""
    bare = text.replace(" ", "").replace(",", "|").lower()
    if bare == "all":
        return "all"
    return bare if bare and _ALPHABET.issuperset(bare) else None
