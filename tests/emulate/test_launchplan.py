"""What `dumpsim msrun` is asked to start, and what it refuses before anything starts."""

import json
import os
import socket
import sys
import tempfile
from contextlib import suppress
from dataclasses import replace

import pytest

from dumpsim.core.errors import BadInputError, UnsupportedError
from dumpsim.emulate.binding import SCHEDULER, parse_binding
from dumpsim.emulate.launchplan import MsrunOptions, _check_port, plan, worker_command
from dumpsim.world.hub import ADDRESS, TOKEN


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return max(probe.getsockname()[1], 1024)


@pytest.fixture
def options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "train.py").write_text("")
    return MsrunOptions(worker_num=2, local_worker_num=2, master_port=free_port(), command=("train.py", "--lr", "1"))


def test_a_plan_has_the_names_and_variables_of_msrun(options):
    found = plan(replace(options, log_dir="logs", cluster_time_out=-1, tail_worker_log="1,7"), {})
    assert found.ranks == (0, 1)
    assert found.tailed == (1,)
    assert found.command == (sys.executable, "train.py", "--lr", "1")
    assert [found.log(rank) for rank in (SCHEDULER, 0, 1)] == [
        f"logs/{name}.log" for name in ("scheduler", "worker_0", "worker_1")
    ]
    shared = {"RANK_SIZE": "2", "MS_WORKER_NUM": "2", "MS_SCHED_HOST": "127.0.0.1", "MS_TOPO_TIMEOUT": "-1"}
    shared["MS_SCHED_PORT"] = str(options.master_port)
    own = [
        {"MS_ROLE": "MS_SCHED", "RANK_ID": "0"},
        *({"MS_ROLE": "MS_WORKER", "MS_NODE_ID": n, "RANK_ID": n, "DEVICE_ID": n} for n in "01"),
    ]
    for rank, variables in zip((SCHEDULER, 0, 1), own, strict=True):
        assert (shared | variables).items() <= found.environment(rank).items()
    assert "DEVICE_ID" not in found.environment(SCHEDULER)


def test_the_log_name_is_filled_in_and_programs_are_those_of_dumpsim(options):
    named = plan(replace(options, worker_log_name="w_{ip}_{hostname}"), {})
    assert named.log(1) == f"w_127.0.0.1_{socket.gethostname()}_1.log"
    assert plan(replace(options, command=("pytest", "-q")), {}).command == (sys.executable, "-m", "pytest", "-q")
    assert plan(replace(options, command=("python3", "-c", "1")), {}).command == (sys.executable, "-c", "1")


def test_options_that_are_not_given_are_those_of_msrun():
    """[spec parallel 5]"""
    assert MsrunOptions() == MsrunOptions(
        worker_num=8, local_worker_num=8, master_addr="127.0.0.1", master_port=8118, node_rank=-1, log_dir="",
        join=False, cluster_time_out=600, bind_core="False", bind_numa="False", sim_level=-1, sim_rank_id=-1,
        rank_table_file="", worker_log_name="worker", tail_worker_log="-1", command=(),
    )  # fmt: skip


def test_all_variables_of_a_process(options):
    found = plan(options, {})
    shared = {
        "RANK_SIZE": "2", "MS_WORKER_NUM": "2", "MS_SCHED_HOST": "127.0.0.1", "MS_TOPO_TIMEOUT": "600",
        "MS_SCHED_PORT": str(options.master_port), "PYTHONUNBUFFERED": "1", ADDRESS: f"127.0.0.1:{options.master_port}",
        TOKEN: found.token,
    }  # fmt: skip
    assert found.environment(SCHEDULER) == shared | {"MS_ROLE": "MS_SCHED", "RANK_ID": "0"}
    own = {"MS_ROLE": "MS_WORKER", "MS_NODE_ID": "1", "RANK_ID": "1", "DEVICE_ID": "1"}
    assert found.environment(1) == shared | own
    assert len(found.token) == 32
    assert found.token != plan(options, {}).token
    assert (found.tailed, found.scheduler, found.claim, found.warnings) == ((0, 1), True, None, ())
    assert found.log(SCHEDULER) == "scheduler.log"
    assert plan(replace(options, worker_log_name=""), {}).log(1) == "worker_1.log"


def test_what_is_on_the_edge_can_be_started(options):
    for change in (
        {"worker_num": 1, "local_worker_num": 1}, {"master_port": 65535}, {"worker_num": 4, "node_rank": 1},
        {"worker_num": 4, "node_rank": 0}, {"node_rank": 0}, {"master_addr": "localhost"},
    ):  # fmt: skip
        assert plan(replace(options, **change), {}).warnings == (), change
    assert plan(replace(options, tail_worker_log="1, 0,9"), {}).tailed == (0, 1)
    for text in ("", "0,", "0,-1", "\u0663"):
        with pytest.raises(BadInputError, match=r"is not a list of ranks; allowed: -1, 0,2"):
            plan(replace(options, tail_worker_log=text), {})


def test_an_address_of_the_sixth_version(options):
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6")
    for address in ("::1", "[::1]"):
        found = plan(replace(options, master_addr=address), {})
        assert (found.address, found.hub) == ("::1", f"[::1]:{options.master_port}")
        assert plan(replace(options, master_addr=address, worker_log_name="{ip}"), {}).log(0) == "::1_0.log"


def test_a_port_below_1024_is_refused_and_1024_is_tried(options, monkeypatch):
    tried = []
    monkeypatch.setattr("dumpsim.emulate.launchplan._check_port", lambda address, port: tried.append((address, port)))
    plan(replace(options, master_port=1024), {})
    with pytest.raises(BadInputError, match="--master_port: 1023 is not a port for it"):
        plan(replace(options, master_port=1023), {})
    several = replace(options, worker_num=4, master_port=1024)
    first = plan(several, {})
    assert tried == [("127.0.0.1", 1024)] * 2
    assert plan(several, {}).ranks == (2, 3)  # another launcher has the scheduler
    assert len(tried) == 2
    assert first.claim.node == 0


def test_bindings_and_warnings_are_passed_on(options):
    core = sorted(os.sched_getaffinity(0))[0]
    one, other = (json.dumps({name: [str(number)]}) for name, number in (("device1", core), ("device0", 0)))
    found = plan(replace(options, bind_core=one), {})
    assert [found.binding.cpus(rank) for rank in (0, 1)] == [(), (core,)]
    both = plan(replace(options, bind_core=one, bind_numa=other), {})
    assert [both.binding.cpus(rank) for rank in (0, 1)] == [(), (core,)]  # of CPUs where both are given
    assert plan(replace(options, bind_numa=other), {}).binding.cpus(0) != ()
    assert plan(replace(options, bind_core="FALSE", bind_numa=other), {}).binding.cpus(0) != ()
    many = replace(options, worker_num=5000, local_worker_num=5000, bind_core="True", node_rank=2)
    assert plan(many, {}).warnings == (
        f"--bind_core binds nothing: {len(os.sched_getaffinity(0))} CPUs for 5000 workers",
        "all workers start here, so that --node_rank=2 has no effect",
    )


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (("python", "-m", "x"), ("-m", "x")), (("python3", "a.py"), ("a.py",)), (("pytest",), ("-m", "pytest")),
        (("train.py",), ("train.py",)),
    ],
)  # fmt: skip
def test_the_command_of_a_worker(options, command, found):
    assert worker_command(command) == (sys.executable, *found)


REFUSED = [
    ({"worker_num": 0}, "--worker_num: worker_num must be greater than 0, but got 0."),
    ({"local_worker_num": 0}, "--local_worker_num: 0 is not a number of workers"),
    ({"local_worker_num": 3}, "Total worker number is 2, but got exceeded local worker number: 3."),
    ({"worker_num": 3}, "3 workers cannot be shared by launchers of 2"),
    ({"worker_num": 4, "node_rank": 2}, "node 2 would have ranks outside of 4; allowed: -1, 0 to 1"),
    ({"worker_num": 4, "node_rank": -2}, "node -2 would have ranks outside of 4"),
    ({"master_port": 80}, "--master_port: 80 is not a port for it; allowed: 1024 to 65535"),
    ({"master_port": 65536}, "65536 is not a port"),
    ({"master_addr": "no such host"}, "--master_addr: 'no such host' is no address"),
    ({"tail_worker_log": "x"}, "--tail_worker_log: 'x' is not a list of ranks"),
    ({"command": ("absent.py",)}, "the script 'absent.py' does not exist"),
    ({"bind_core": "maybe"}, "--bind_core: 'maybe' is not a value of it; allowed: True, False"),
    ({"bind_core": '{"gpu0": ["0"]}'}, "'gpu0' cannot be bound; allowed: deviceN, scheduler"),
    ({"bind_core": '{"device0": "0"}'}, "device0: '0' is not a list of numbers"),
    ({"bind_core": '{"device0": ["0-"]}'}, "device0: ['0-'] is not a list of numbers"),
    ({"bind_core": '{"device0": ["60000"]}'}, "device0: this machine has no 60000 to bind to"),
    ({"rank_table_file": "absent.json"}, "[EI0004]"),
]


@pytest.mark.parametrize(("change", "text"), REFUSED, ids=[next(iter(change)) for change, _ in REFUSED])
def test_what_cannot_be_started_is_refused(options, change, text):
    with pytest.raises(BadInputError) as caught:
        plan(replace(options, **change), {})
    assert text in str(caught.value)


def test_what_is_not_emulated_is_refused_by_name(options):
    with pytest.raises(UnsupportedError, match="--sim_level: simulation level 0 is not emulated"):
        plan(replace(options, sim_level=0), {})
    with pytest.raises(UnsupportedError, match="MS_SIMULATION_LEVEL: simulation level 1 is not emulated"):
        plan(options, {"MS_SIMULATION_LEVEL": "1"})
    with pytest.raises(UnsupportedError, match="--sim_level: simulation level 1 is not emulated"):
        plan(replace(options, sim_level=1), {"MS_SIMULATION_LEVEL": "2"})
    with pytest.raises(UnsupportedError, match="--sim_rank_id"):
        plan(replace(options, sim_rank_id=0), {})
    with pytest.raises(UnsupportedError, match=r"--master_addr: 192\.0\.2\.1 is no address of this machine"):
        plan(replace(options, master_addr="192.0.2.1"), {})


def test_a_port_in_use_and_a_table_of_another_size_are_refused(options, tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(BadInputError, match=rf"port {port} of 127\.0\.0\.1 is in use.*\[EI0019\]"):
            plan(replace(options, master_port=port), {})
    rows = [{"device_id": "0", "rank_id": "0"}]
    table = {"version": "1.0", "status": "completed", "server_count": "1"}
    (tmp_path / "one.json").write_text(json.dumps(table | {"server_list": [{"server_id": "a", "device": rows}]}))
    with pytest.raises(BadInputError, match=r"the table has 1 ranks, --worker_num says 2 \[EI0014\]"):
        plan(replace(options, rank_table_file="one.json"), {})
    found = plan(replace(options, worker_num=1, local_worker_num=1, rank_table_file="one.json"), {})
    assert found.environment(0)["RANK_TABLE_FILE"] == str(tmp_path / "one.json")


def test_launchers_of_one_job_take_its_nodes(options):
    several = replace(options, worker_num=4)
    first, second = plan(several, {}), plan(several, {})
    assert (first.ranks, second.ranks) == ((0, 1), (2, 3))
    assert (first.scheduler, second.scheduler) == (True, False)
    assert first.token == second.token
    assert second.environment(3)["DEVICE_ID"] == "1"
    assert second.warnings == ("--node_rank is not given: this launcher is node 1",)
    with pytest.raises(BadInputError, match="all 2 nodes of the job are taken"):
        plan(several, {})
    with pytest.raises(BadInputError, match="node 1 of the job is taken"):
        plan(replace(several, node_rank=1), {})
    assert plan(replace(options, node_rank=3), {}).warnings[0].startswith("all workers start here")


def test_an_address_is_of_this_machine_whatever_ports_are_in_use(options):
    """All of 127.0.0.0/8 are; this one is the test's own."""
    address = f"127.{os.getpid() >> 16 & 255}.{os.getpid() >> 8 & 255}.{max(os.getpid() & 255, 2)}"
    with socket.socket(type=socket.SOCK_DGRAM) as other:
        with suppress(PermissionError):  # for root alone; others cannot have such a port at all
            other.bind((address, 1))
        assert plan(replace(options, master_addr=address), {}).address == address


def test_processes_are_bound_to_cpus():
    mine = sorted(os.sched_getaffinity(0))
    text = json.dumps({"device1": [f"{mine[0]}"], "scheduler": [f"{mine[-1]}"]})
    found, why = parse_binding(text, "--bind_core", 2)
    assert (found.cpus(0), found.cpus(1), found.cpus(SCHEDULER), why) == ((), (mine[0],), (mine[-1],), "")
    equal, why = parse_binding("True", "--bind_core", len(mine))
    assert [equal.cpus(place) for place in range(len(mine))] == [(cpu,) for cpu in mine]
    none, why = parse_binding("True", "--bind_core", len(mine) + 1)
    assert none.cpus(0) == ()
    assert f"{len(mine)} CPUs for {len(mine) + 1} workers" in why
    nodes, why = parse_binding("True", "--bind_numa", 2)
    assert set(nodes.cpus(0)) <= set(mine)
    assert nodes.cpus(1)


def test_a_port_that_a_job_has_just_left_is_free_and_one_that_is_listened_to_is_not():
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        with pytest.raises(BadInputError, match=f"--master_port: port {port} of 127.0.0.1 is in use: Address already"):
            _check_port("127.0.0.1", port)
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = server.accept()
        accepted.close()  # this end waits for late packets from now on
        client.recv(1)
        client.close()
    _check_port("127.0.0.1", port)
