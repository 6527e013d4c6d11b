"""Rank tables: both templates, and each kind of invalid table."""

import copy
import json

import pytest

from dumpsim.core.errors import BadInputError
from dumpsim.world.ranktable import TableDevice, parse_rank_table, read_rank_table


def device(number, rank, ip=None):
    return {"device_id": str(number), "device_ip": ip or f"10.1.0.{rank + 1}", "rank_id": str(rank)}


TWO_SERVERS = {
    "version": "1.0",
    "server_count": "2",
    "server_list": [
        {"server_id": "10.0.0.1", "device": [device(0, 0), device(1, 1)], "host_nic_ip": "reserve"},
        {"server_id": "10.0.0.2", "device": [device(0, 2), device(1, 3)], "host_nic_ip": "reserve"},
    ],
    "status": "completed",
}

OLDER = {
    "status": "completed",
    "group_count": "1",
    "group_list": [
        {
            "group_name": "hccl_world_group",
            "instance_count": "2",
            "device_count": "3",
            "instance_list": [
                {"pod_name": "a", "server_id": "10.0.0.1", "devices": [{"device_id": "4", "device_ip": "10.1.0.1"}]},
                {
                    "pod_name": "b",
                    "server_id": "10.0.0.2",
                    "devices": [
                        {"device_id": "0", "device_ip": "10.1.0.2"},
                        {"device_id": "1", "device_ip": "10.1.0.3"},
                    ],
                },
            ],
        }
    ],
}


def test_both_templates_give_ranks_devices_and_servers(tmp_path):
    (tmp_path / "table.json").write_text(json.dumps(TWO_SERVERS))
    table = read_rank_table(str(tmp_path / "table.json"))
    assert table.version == "1.0"
    assert table.servers == ("10.0.0.1", "10.0.0.2")
    assert table.devices[2] == TableDevice(rank=2, device_id=0, server="10.0.0.2", ip="10.1.0.3")
    older = parse_rank_table(json.dumps(OLDER))
    assert [(one.rank, one.device_id, one.server) for one in older.devices] == [
        (0, 4, "10.0.0.1"),
        (1, 0, "10.0.0.2"),
        (2, 1, "10.0.0.2"),
    ]


def test_one_server_needs_no_addresses_and_ranks_may_come_in_any_order():
    rows = [{"device_id": str(n), "rank_id": str(rank)} for n, rank in enumerate([1, 0])]
    document = {"version": "1.0", "status": "completed", "server_count": "1"}
    table = parse_rank_table(json.dumps(document | {"server_list": [{"server_id": "a", "device": rows}]}))
    assert [(one.rank, one.device_id) for one in table.devices] == [(0, 1), (1, 0)]


def changed(path, value, document=TWO_SERVERS):
    found = at = copy.deepcopy(document)
    *steps, last = path
    for step in steps:
        at = at[step]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return found


FIRST = ("server_list", 0, "device", 0)
UNREADABLE = [
    (changed(["version"], None), "$.version: is missing"),
    (changed(["version"], 1.0), "$.version: 1.0 is not a non-empty string"),
    (changed(["version"], "2.0"), "$.version: '2.0'; allowed: 1.0"),
    (changed(["status"], "initializing"), "$.status: 'initializing'; allowed: completed"),
    (changed(["server_count"], "3"), "$.server_count: states 3, but the table has 2"),
    (changed(["server_count"], 2), "$.server_count: 2 is not a non-empty string"),
    (changed(["server_list"], {}), "$.server_list: not a non-empty list of objects"),
    (changed(["server_list"], []), "$.server_list: not a non-empty list of objects"),
    (changed(["server_list", 1, "device"], None), "$.server_list[1].device: is missing"),
    (changed(["server_list", 1, "server_id"], ""), "$.server_list[1].server_id: '' is not a non-empty string"),
    (changed([*FIRST, "rank_id"], "-1"), "$.server_list[0].device[0].rank_id: '-1' is not a number"),
    (changed([*FIRST, "rank_id"], 0), "$.server_list[0].device[0].rank_id: 0 is not a non-empty string"),
    (changed([*FIRST, "device_id"], "x"), "$.server_list[0].device[0].device_id: 'x' is not a number"),
    (changed([*FIRST, "device_port"], "70000"), "$.server_list[0].device[0].device_port: '70000' is not a number"),
    (changed(["status"], "initializing", OLDER), "$.status: 'initializing'; allowed: completed"),
    (changed(["group_count"], "2", OLDER), "$.group_count: states 2, but the table has 1"),
    (
        changed(["group_list", 0, "device_count"], "4", OLDER),
        "$.group_list[0].device_count: states 4, but the table has 3",
    ),
    (changed(["group_list", 0, "group_name"], None, OLDER), "$.group_list[0].group_name: is missing"),
    ([], "$: not an object"),
]
UNFIT = [
    (changed([*FIRST, "rank_id"], "1"), "rank_id 1 is repeated, or a lower one is missing"),
    (changed([*FIRST, "rank_id"], "9"), "rank_id 1 is repeated, or a lower one is missing"),
    (changed([*FIRST, "device_id"], "1"), "ranks 0 and 1 both have device 1 of 10.0.0.1"),
    (changed([*FIRST, "device_ip"], "10.1.0.300"), "device_ip '10.1.0.300' of rank 0 is not an IP address"),
    (changed([*FIRST, "device_ip"], "10.1.0.4"), "ranks 0 and 3 both have device_ip 10.1.0.4"),
    (changed([*FIRST, "device_ip"], None), "rank 0 has no device_ip, which several servers need"),
    (
        changed(["server_list", 0, "device"], [device(0, 0), device(1, 2, "10.1.0.9")])
        | {"server_list": [
            {"server_id": "a", "device": [device(0, 0), device(1, 2)]},
            {"server_id": "b", "device": [device(0, 1), device(1, 3)]},
        ]},
        "the ranks of server a interleave with those of others",
    ),
    (
        changed(["server_count"], "3")
        | {"server_list": [
            {"server_id": "a", "device": [device(0, 0)]},
            {"server_id": "b", "device": [device(0, 1), device(1, 3)]},
            {"server_id": "c", "device": [device(0, 2)]},
        ]},
        "the ranks of server b interleave with those of others",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("document", "text", "code"),
    [(*row, "EI0004") for row in UNREADABLE] + [(*row, "EI0014") for row in UNFIT],
    ids=range(len(UNREADABLE) + len(UNFIT)),
)
def test_an_invalid_table_is_refused_with_the_json_path(document, text, code):
    with pytest.raises(BadInputError) as caught:
        parse_rank_table(json.dumps(document), where="table.json")
    assert str(caught.value).startswith("table.json: ")
    assert text in str(caught.value)
    assert str(caught.value).endswith(f"[{code}]")


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"version": NaN'])
def test_text_that_is_not_json_is_refused(text):
    with pytest.raises(BadInputError, match=r"not JSON.*\[EI0004\]"):
        parse_rank_table(text)


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("device_id", "1048576", None), ("device_id", "0000007", None), ("device_port", "65535", None),
        ("device_port", "0", None),
        ("device_id", "1048577", "device_id: '1048577' is not a number; allowed: \"0\" to \"1048576\""),
        ("device_id", "00000007", "device_id: '00000007' is not a number; allowed: \"0\" to \"1048576\""),
        ("device_id", "\u0663", "device_id: '\u0663' is not a number; allowed: \"0\" to \"1048576\""),
        ("device_port", "65536", "device_port: '65536' is not a number; allowed: \"0\" to \"65535\""),
    ],
)  # fmt: skip
def test_numbers_have_limits(field, text, said):
    document = json.dumps(changed(["server_list", 1, "device", 1, field], text))
    if said is None:
        found = parse_rank_table(document).devices[3]
        assert field != "device_id" or found.device_id == int(text)
        return
    with pytest.raises(BadInputError) as caught:
        parse_rank_table(document)
    assert str(caught.value) == f"rank table: $.server_list[1].device[1].{said} [EI0004]"


def test_files_of_up_to_16_mib_are_read(tmp_path):
    path = tmp_path / "table.json"
    text = json.dumps(TWO_SERVERS).ljust(16 << 20)
    path.write_text(text)
    assert len(read_rank_table(str(path)).devices) == 4
    path.write_text(text + " ")
    with pytest.raises(BadInputError, match=r"table\.json: .*\[EI0004\]"):
        read_rank_table(str(path))


def test_a_link_to_a_table_is_followed(tmp_path):
    """Kubernetes mounts files as links."""
    (tmp_path / "table.json").write_text(json.dumps(TWO_SERVERS))
    (tmp_path / "link.json").symlink_to("table.json")
    assert read_rank_table(str(tmp_path / "link.json")) == parse_rank_table(json.dumps(TWO_SERVERS))


def test_ranks_go_on_from_group_to_group():
    def instance(server, *devices):
        rows = [{"device_id": str(number), "device_ip": ip} for number, ip in devices]
        return {"server_id": server, "devices": rows}

    def group(*instances, **changes):
        count = sum(len(one["devices"]) for one in instances)
        given = {"instance_count": str(len(instances)), "device_count": str(count)}
        return {"group_name": "g", "instance_list": list(instances), **given, **changes}

    first = group(instance("a", (0, "10.0.0.1"), (3, "10.0.0.2")), instance("b", (1, "10.0.0.3")))
    second = group(instance("c", (2, "10.0.0.4")))
    document = {"status": "completed", "group_count": "2", "group_list": [first, second]}
    table = parse_rank_table(json.dumps(document))
    assert (table.version, table.servers) == ("", ("a", "b", "c"))
    assert [(one.rank, one.device_id, one.server, one.ip) for one in table.devices] == [
        (0, 0, "a", "10.0.0.1"), (1, 3, "a", "10.0.0.2"), (2, 1, "b", "10.0.0.3"), (3, 2, "c", "10.0.0.4"),
    ]  # fmt: skip
    for wrong, said in (
        ({"instance_count": "2"}, "$.group_list[1].instance_count: states 2, but the table has 1"),
        ({"device_count": "4"}, "$.group_list[1].device_count: states 4, but the table has 1"),
        ({"instance_list": [instance("c", (0, ""))]}, "$.group_list[1].instance_list[0].devices[0].device_ip: '' is "
                                                      "not a non-empty string"),
    ):  # fmt: skip
        with pytest.raises(BadInputError) as caught:
            parse_rank_table(json.dumps(document | {"group_list": [first, {**second, **wrong}]}))
        assert str(caught.value) == f"rank table: {said} [EI0004]"


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(BadInputError, match=r"absent.json: .*\[EI0004\]"):
        read_rank_table(str(tmp_path / "absent.json"))
