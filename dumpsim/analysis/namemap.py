"""Pairs of API names given by the user: a dict, or a file with one pair per line."""

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from dumpsim.analysis.apiname import COMPOUNDS, canonical
from dumpsim.analysis.meaning import Meaning, meaning
from dumpsim.core.errors import BadInputError, UnreadableError
from dumpsim.core.regular import read_bytes

__all__ = ["NO_NAMES", "NameMap", "Names", "read_names"]

_KINDS = ("NN", "Functional", "Tensor", "Torch", "VF")
_NAME = re.compile(rf"(?P<kind>{'|'.join(_KINDS)})[._](?P<api>\w+)", re.ASCII)
_LINE = re.compile(r"(?P<quote>[\"']?)(?P<key>[\w.]+)(?P=quote)\s*:\s*(?P<value>.*)", re.ASCII)
_MAX_FILE = 1 << 24

NameMap = Mapping[str, str | Sequence[str]] | str | os.PathLike[str]
Api = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Names:
    """APIs of the origin, each with one or several APIs of the target that replace it."""

    pairs: Mapping[Api, tuple[Api, ...]]

    def meaning(self, api: Api, target: str) -> Meaning | None:
        """Return the meaning of an API of the origin: that of its counterpart in `target`; None without a pair.

        Several counterparts make a word that no other API has.
        """
        if api not in self.pairs:
            return None
        first, *more = self.pairs[api]
        own = "=" + "_".join(api)
        return meaning(target, *first) if not more else Meaning(word=own, sense=own, rank=3)

    def words(self, kind: str, api: str) -> tuple[str, ...]:
        """Return the operations that replace an API of the origin, in canonical words; empty without a pair."""
        return tuple(canonical(name) for _, name in self.pairs.get((kind, api), ()))

    def compounds(self, target: str) -> Mapping[str, tuple[tuple[str, ...], ...]]:
        """Return the calls that several calls of the other net replace, including these pairs."""
        own = {
            "=" + "_".join(api): (tuple(meaning(target, *part).sense for part in parts),)
            for api, parts in self.pairs.items()
        }
        return MappingProxyType({**COMPOUNDS, **own})

    def unused(self, seen: Collection[Api]) -> list[str]:
        """Return the APIs that no call uses."""
        return ["_".join(api) for api in self.pairs if api not in seen]


NO_NAMES = Names({})


def read_names(source: NameMap | None) -> Names:
    """Read the pairs of a dict or a file: JSON, or YAML with one ``Kind.api: Kind.api`` or ``: [.., ..]`` a line.

    Raises
    ------
    BadInputError
        For an invalid pair; the message has its line or key.

    Examples
    --------
    >>> read_names({"Torch.foo": "Functional.bar", "NN_Own": ["NN_Dense", "NN_ReLU"]}).pairs[("NN", "Own")]
    (('NN', 'Dense'), ('NN', 'ReLU'))
    """
    if source is None:
        return NO_NAMES
    where = "name_map"
    if not isinstance(source, Mapping):
        where = os.fspath(source)
        source = dict(_entries(Path(source)))
    pairs: dict[Api, tuple[Api, ...]] = {}
    for key, value in source.items():
        parts = [value] if isinstance(value, str) else value
        if not isinstance(parts, list | tuple) or not parts:
            raise _bad(f"{key!r} has {value!r}, which is neither a name nor a list of names", where)
        pairs[_api(key, where)] = tuple(_api(part, where) for part in parts)
    return Names(pairs)


def _entries(path: Path) -> Iterator[tuple[str, str | list[str]]]:
    """Names and their counterparts in a file."""
    try:
        text = read_bytes(path, _MAX_FILE, follow=True).decode("utf-8")
    except UnreadableError as error:
        raise _bad(error.what, os.fspath(path)) from error
    except UnicodeDecodeError as error:
        raise _bad(f"cannot be read: {error}", os.fspath(path)) from error
    if text.lstrip().startswith("{"):
        try:
            yield from json.loads(text).items()
        except (ValueError, RecursionError) as error:
            raise _bad(f"is not JSON: {error}", os.fspath(path)) from error
        return
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"(^|\s)#.*", "", line).strip()
        if not line or line == "---":
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            raise _bad(f"{line[:200]!r} is not 'Kind.api: Kind.api'", f"{path}:{number}")
        value = found["value"].strip()
        parts = [part.strip().strip("\"'") for part in value.removeprefix("[").removesuffix("]").split(",")]
        yield found["key"], parts if value.startswith("[") else parts[0]


def _api(name: object, where: str) -> Api:
    """Kind and name."""
    found = _NAME.fullmatch(name) if isinstance(name, str) else None
    if found is None:
        raise _bad(f"{name!r} is not the name of an API", where, tuple(f"{kind}.<api>" for kind in _KINDS))
    return found["kind"], found["api"]


def _bad(what: str, where: str, allowed: Sequence[str] = ()) -> BadInputError:
    return BadInputError(what, where=where, allowed=allowed, code="DS-API-016")
