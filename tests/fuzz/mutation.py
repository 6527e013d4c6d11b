"""Changes of an input that find what readers forget: bits, numbers at the edge, lengths, cuts, repetitions."""

from dataclasses import dataclass

__all__ = ["KINDS", "Change", "mutate"]

KINDS = ("flip", "byte", "edge", "cut", "drop", "repeat", "insert", "digits", "swap")
_EDGES = tuple(
    value.to_bytes(size, "little")
    for size in (1, 2, 4, 8)
    for value in (0, 1, (1 << 8 * size - 1) - 1, 1 << 8 * size - 1, (1 << 8 * size) - 1)
)
_DIGITS = (
    b"-1",
    b"0",
    b"99999999999999999999",
    b"1e309",
    b"nan",
    b"",
    b"9" * 5000,
    b"'",
    b'"',
    b"(",
    b"[",
    b"{",
    b"\n",
    b",",
)
_LONGEST = 1 << 16


@dataclass(frozen=True, slots=True)
class Change:
    """One change; `place` and `size` are fractions of the input of 2^16, so that every change fits every input."""

    kind: str
    place: int
    size: int
    value: int


def mutate(data: bytes, changes: "list[Change] | tuple[Change, ...]") -> bytes:
    """The input after all changes; at most 64 KiB.

    >>> mutate(b"abcd", [Change("cut", 1 << 15, 0, 0)])
    b'ab'
    """
    for change in changes:
        data = _apply(data, change)[:_LONGEST]
    return data


def _apply(data: bytes, change: Change) -> bytes:
    at = change.place * len(data) >> 16
    end = min(len(data), at + 1 + (change.size * len(data) >> 18))
    match change.kind:
        case "flip" if data:
            return data[:at] + bytes([data[at] ^ 1 << change.value % 8]) + data[at + 1 :]
        case "byte" if data:
            return data[:at] + bytes([change.value % 256]) + data[at + 1 :]
        case "edge":
            edge = _EDGES[change.value % len(_EDGES)]
            return data[:at] + edge + data[at + len(edge) :]
        case "cut":
            return data[:at]
        case "drop":
            return data[:at] + data[end:]
        case "repeat":
            return data[:end] + data[at:end] * (1 + change.value % 40) + data[end:]
        case "insert":
            return data[:at] + bytes([change.value % 256]) * (1 + change.size % 16) + data[at:]
        case "digits":
            return data[:at] + _DIGITS[change.value % len(_DIGITS)] + data[at + 1 :]
        case "swap":
            return data[at:] + data[:at]
    return data
