"""Rank tables: JSON files with the ranks of a job and their servers. [spec parallel 3.4]"""

import ipaddress
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from dumpsim.core.errors import BadInputError, UnreadableError
from dumpsim.core.regular import read_bytes

__all__ = ["RankTable", "TableDevice", "parse_rank_table", "read_rank_table"]

_LARGEST = 1 << 24  # bytes of a file


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDevice:
    """A rank and its device.

    Attributes
    ----------
    rank : int
    device_id : int
        Number of the device in its server.
    server : str
    ip : str
        Empty if the table has none.
    """

    rank: int
    device_id: int
    server: str
    ip: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTable:
    """A rank table.

    Attributes
    ----------
    version : str
        ``1.0``, or empty for the older template.
    devices : tuple of TableDevice
        By rank.
    """

    version: str
    devices: tuple[TableDevice, ...]

    @property
    def servers(self) -> tuple[str, ...]:
        """The servers, in the order of their first ranks."""
        return tuple(dict.fromkeys(device.server for device in self.devices))


def read_rank_table(path: str) -> RankTable:
    """Read a rank table from a file, see `parse_rank_table`.

    Raises
    ------
    BadInputError
        As for `parse_rank_table`; EI0004 also for a file that cannot be read.
    """
    try:
        text = read_bytes(path, _LARGEST, follow=True)
    except UnreadableError as error:
        raise _bad(path, "", error.what) from None
    return parse_rank_table(text, where=path)


def parse_rank_table(text: bytes | str, *, where: str = "rank table") -> RankTable:
    """Parse a rank table of version 1.0 or of the older template with groups.

    Raises
    ------
    BadInputError
        EI0004 for text that is not a rank table, with the JSON path; EI0014 for an inconsistent table: invalid
        addresses, repeated ranks or devices, servers whose ranks interleave.

    Examples
    --------
    >>> device = '{"device_id": "0", "rank_id": "0"}'
    >>> server = f'{{"server_id": "10.0.0.1", "device": [{device}]}}'
    >>> table = parse_rank_table(
    ...     f'{{"status": "completed", "version": "1.0", "server_count": "1", "server_list": [{server}]}}'
    ... )
    >>> table.devices[0].server
    '10.0.0.1'
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _bad(where, "", f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise _bad(where, "$", "not an object")
    if "group_list" in document:
        table = RankTable(version="", devices=_groups(document, where))
    else:
        table = RankTable(version="1.0", devices=_servers(document, where))
    _check(table, where)
    return table


def _servers(document: Mapping[str, Any], where: str) -> tuple[TableDevice, ...]:
    """Return the devices of a table of version 1.0."""
    _expect(document, "version", ("1.0",), where, "$")
    _expect(document, "status", ("completed",), where, "$")
    servers = _objects(document, "server_list", where, "$")
    _count(document, "server_count", len(servers), where, "$")
    found = []
    for number, server in enumerate(servers):
        place = f"$.server_list[{number}]"
        name = _text(server, "server_id", where, place)
        for at, device in enumerate(_objects(server, "device", where, place)):
            spot = f"{place}.device[{at}]"
            if "device_port" in device:
                _number(device, "device_port", where, spot, most=65535)
            rank = _number(device, "rank_id", where, spot)
            found.append(_device(device, rank, name, where, spot))
    return tuple(sorted(found, key=lambda device: device.rank))


def _groups(document: Mapping[str, Any], where: str) -> tuple[TableDevice, ...]:
    """Return the devices of a table of the older template, whose order gives the ranks."""
    _expect(document, "status", ("completed",), where, "$")
    groups = _objects(document, "group_list", where, "$")
    _count(document, "group_count", len(groups), where, "$")
    found: list[TableDevice] = []
    for number, group in enumerate(groups):
        place = f"$.group_list[{number}]"
        _text(group, "group_name", where, place)
        instances = _objects(group, "instance_list", where, place)
        _count(group, "instance_count", len(instances), where, place)
        before = len(found)
        for at, instance in enumerate(instances):
            spot = f"{place}.instance_list[{at}]"
            server = _text(instance, "server_id", where, spot)
            for last, device in enumerate(_objects(instance, "devices", where, spot)):
                found.append(_device(device, len(found), server, where, f"{spot}.devices[{last}]"))
        _count(group, "device_count", len(found) - before, where, place)
    return tuple(found)


def _device(device: Mapping[str, Any], rank: int, server: str, where: str, place: str) -> TableDevice:
    ip = _text(device, "device_ip", where, place) if "device_ip" in device else ""
    return TableDevice(rank=rank, device_id=_number(device, "device_id", where, place), server=server, ip=ip)


def _check(table: RankTable, where: str) -> None:
    """Check the devices of a table against each other."""
    ranks = [device.rank for device in table.devices]
    if ranks != list(range(len(ranks))):
        odd = next(rank for number, rank in enumerate(ranks) if rank != number)
        raise _conflict(
            where, f"rank_id {odd} is repeated, or a lower one is missing", [f"0 to {len(ranks) - 1}, each once"]
        )
    seen: dict[tuple[str, int], int] = {}
    addresses: dict[str, int] = {}
    many = len(table.servers) > 1
    for device in table.devices:
        other = seen.setdefault((device.server, device.device_id), device.rank)
        if other != device.rank:
            raise _conflict(
                where, f"ranks {other} and {device.rank} both have device {device.device_id} of {device.server}"
            )
        if device.ip:
            try:
                ipaddress.ip_address(device.ip)
            except ValueError:
                raise _conflict(where, f"device_ip {device.ip!r} of rank {device.rank} is not an IP address") from None
            other = addresses.setdefault(device.ip, device.rank)
            if other != device.rank:
                raise _conflict(where, f"ranks {other} and {device.rank} both have device_ip {device.ip}")
        elif many:
            raise _conflict(where, f"rank {device.rank} has no device_ip, which several servers need")
    runs = [server for server, _ in groupby(table.devices, key=lambda device: device.server)]
    if len(runs) != len(table.servers):
        again = next(server for number, server in enumerate(runs) if server in runs[:number])
        raise _conflict(where, f"the ranks of server {again} interleave with those of others")


# ------------------------------------------------------------------ fields
def _objects(parent: Mapping[str, Any], name: str, where: str, place: str) -> list[Mapping[str, Any]]:
    found = parent.get(name)
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
        raise _bad(where, f"{place}.{name}", "is missing" if found is None else "not a non-empty list of objects")
    return found


def _text(parent: Mapping[str, Any], name: str, where: str, place: str) -> str:
    found = parent.get(name)
    if not isinstance(found, str) or not found:
        what = "is missing" if found is None else f"{found!r} is not a non-empty string"
        raise _bad(where, f"{place}.{name}", what)
    return found


def _number(parent: Mapping[str, Any], name: str, where: str, place: str, *, most: int = 1 << 20) -> int:
    text = _text(parent, name, where, place)
    if not (text.isascii() and text.isdigit() and len(text) <= 7 and int(text) <= most):
        raise _bad(where, f"{place}.{name}", f"{text!r} is not a number", [f'"0" to "{most}"'])
    return int(text)


def _expect(parent: Mapping[str, Any], name: str, allowed: tuple[str, ...], where: str, place: str) -> None:
    text = _text(parent, name, where, place)
    if text not in allowed:
        raise _bad(where, f"{place}.{name}", f"{text!r}", allowed)


def _count(parent: Mapping[str, Any], name: str, found: int, where: str, place: str) -> None:
    stated = _number(parent, name, where, place)
    if stated != found:
        raise _bad(where, f"{place}.{name}", f"states {stated}, but the table has {found}")


def _bad(where: str, place: str, what: str, allowed: "tuple[str, ...] | list[str]" = ()) -> BadInputError:
    return BadInputError(f"{place}: {what}" if place else what, where=where, allowed=allowed, code="EI0004")


def _conflict(where: str, what: str, allowed: "list[str] | tuple[str, ...]" = ()) -> BadInputError:
    return BadInputError(what, where=where, allowed=allowed, code="EI0014")
