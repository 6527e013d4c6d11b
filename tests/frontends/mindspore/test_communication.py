"""``mindspore.communication``: the job, its groups and its errors, with the texts of MindSpore 2.10."""

import inspect

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import communication as comm
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._c_expression import GroupOptions
from dumpsim.frontends.mindspore._vendor import exported
from dumpsim.frontends.mindspore.communication._handle import Work
from dumpsim.world import launch
from dumpsim.world.context import RankContext, use

SETTINGS = RunSettings(quiet=True, manifest=None)
UNKNOWN = "The group nobody does not exist."


def on_ranks(function, ranks=2, **settings):
    return launch(function, ranks=ranks, settings=SETTINGS, **settings)


@pytest.fixture
def launched(monkeypatch):
    """Set the environment that a launcher sets for the process of a rank."""

    def given(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, str(value))
        return RankContext.from_environment()

    return given


def test_every_exported_name_exists():
    for module in ("communication", "communication.management", "communication.comm_func", "mint.distributed"):
        found = ms
        for part in module.split("."):
            found = getattr(found, part)
        assert set(exported(f"mindspore.{module}")) <= set(found.__all__)


def test_before_init_the_environment_decides(launched):
    with use(launched(RANK_ID=2, RANK_SIZE=4, LOCAL_RANK=1, LOCAL_RANK_SIZE=2)):
        assert (comm.get_rank(), comm.get_group_size()) == (2, 4)
        assert (comm.get_local_rank(), comm.get_local_rank_size()) == (1, 2)
        for ask in (comm.get_comm_name, comm.get_process_group_ranks):
            with pytest.raises(RuntimeError, match=r"has not been inited\.You can't invoke this interface yet"):
                ask()
        for call in (
            lambda: comm.create_group("a", [0]),
            lambda: comm.destroy_group("a"),
            lambda: comm.get_world_rank_from_group_rank("a", 0),
            lambda: comm.get_group_rank_from_world_rank(0, "a"),
        ):
            with pytest.raises(RuntimeError, match="has not been inited"):
                call()


def test_init_and_release():
    def main():
        comm.init()
        comm.init()  # a second call changes nothing
        comm.create_group("pair", [1, 0])
        inside = comm.GlobalComm.INITED, comm.get_rank("pair")
        comm.release()
        return (*inside, comm.GlobalComm.INITED, comm.get_rank())

    assert on_ranks(main) == [(True, 1, True, 0), (True, 0, True, 1)]


def test_a_released_job_may_create_its_groups_again():
    def main():
        seen = []
        for members in ([1, 0], [0, 1]):
            comm.init()
            comm.create_group("pair", members)
            seen.append(comm.get_rank("pair"))
            comm.release()
        return seen

    assert on_ranks(main) == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("make", "attributes"),
    [
        (lambda: ops.AllReduce("max"), {"op": "max", "group": "hccl_world_group"}),
        (lambda: ops.Reduce(0, "max"), {"op": "max", "dest_rank": 0}),
        (lambda: ops.ReduceScatter("max"), {"op": "max", "rank_size": 1}),
        (lambda: ops.Broadcast(0), {"root_rank": 0}),
        (lambda: ops.AlltoAll(1, 2, 3), {"split_count": 1, "split_dim": 2, "concat_dim": 3, "rank_size": 1}),
        (lambda: ops.CollectiveScatter(0), {"src_rank": 0, "rank_id": 0}),
        (lambda: ops.CollectiveGather(0), {"dest_rank": 0, "rank_id": 0}),
        (lambda: ops.Send(3, 0), {"sr_tag": 3, "dest_rank": 0, "rank": 0, "group_back": "hccl_world_group"}),
        (
            lambda: ops.Receive(3, 0, [2], ms.float32),
            {
                "sr_tag": 3,
                "src_rank": 0,
                "shape": [2],
                "dtype": ms.float32,
                "rank": 0,
                "group_back": "hccl_world_group",
            },
        ),
        (lambda: ops.AlltoAllV(block_size=2), {"block_size": 2, "rank_size": 1}),
        (lambda: ops.AlltoAllVC(transpose=True), {"block_size": 1, "transpose": True, "rank_id": 0}),
        (lambda: ops.ReduceScatterV("max"), {"op": "max", "rank_id": 0}),
    ],
)
def test_the_settings_of_a_collective_are_its_attributes(make, attributes):
    """[observed 2.10]"""
    with use(RankContext()):
        comm.init()
        primitive = make()
        assert {name: getattr(primitive, name) for name in attributes} == attributes


@pytest.mark.parametrize(
    ("target", "backend", "group"),
    [("Ascend", "hccl", "hccl_world_group"), ("GPU", "nccl", "nccl_world_group"), ("CPU", "mccl", "mccl_world_group")],
)
def test_the_back_end_follows_the_device(target, backend, group):
    with use(RankContext()):
        assert comm.GlobalComm.WORLD_COMM_GROUP == "hccl_world_group"
        ms.set_device(target)
        comm.init()
        assert backend == comm.GlobalComm.BACKEND
        assert group == comm.GlobalComm.WORLD_COMM_GROUP
        assert comm.get_rank("hccl_world_group") == comm.get_rank(group) == 0
        others = {"hccl_world_group", "nccl_world_group", "mccl_world_group"} - {group, "hccl_world_group"}
        for other in others:
            with pytest.raises(RuntimeError, match=f"The group {other} does not exist"):
                comm.get_rank(other)
        assert comm.get_comm_name() == ("hccl_world_group" if target == "Ascend" else "")


@pytest.mark.parametrize(
    ("backend", "kind", "text"),
    [
        ("hccl", RuntimeError, "the argument 'backend_name' should be 'mccl' to init 'CPU', but got 'hccl'"),
        ("nccl", RuntimeError, "the argument 'backend_name' should be 'mccl' to init 'CPU', but got 'nccl'"),
        ("x", RuntimeError, "must be one of 'hccl', 'nccl' and 'mccl', but got 'backend_name' : x"),
        (1, TypeError, "the argument 'backend_name' must be a string, but got the type : <class 'int'>"),
    ],
)
def test_other_back_ends_are_refused(backend, kind, text):
    with use(RankContext()):
        ms.set_device("CPU")
        with pytest.raises(kind, match=text):
            comm.init(backend)


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"RANK_ID": "-1", "RANK_SIZE": "2"}, "RANK_ID: invalid value '-1'; allowed: a number from 0"),
        ({"RANK_ID": "2", "RANK_SIZE": "2"}, "rank 2 is out of range for a world of 2"),
        ({"RANK_ID": "one", "RANK_SIZE": "2"}, "RANK_ID: invalid value 'one'"),
        ({"RANK_ID": "0", "RANK_SIZE": "0"}, "RANK_SIZE: invalid value '0'; allowed: a number from 1"),
        ({"RANK_ID": "3"}, "rank 3 is out of range for a world of 1"),
    ],
)
def test_a_rank_outside_of_its_world(launched, variables, text):
    with use(launched(**variables)), pytest.raises(ValueError, match=text) as caught:
        comm.init()
    assert isinstance(caught.value, RuntimeError)


def test_groups_keep_the_order_of_their_members():
    def main():
        comm.init()
        world = comm.get_process_group_ranks()
        if comm.get_rank() == 1:
            return world
        comm.create_group("odd", [3, 0, 2])
        comm.create_group("odd", [3, 0, 2])  # again: only a warning
        return (
            comm.get_rank("odd"), comm.get_group_size("odd"), comm.get_local_rank("odd"),
            comm.get_local_rank_size("odd"), comm.get_process_group_ranks("odd"), comm.get_comm_name("odd"),
            comm.get_world_rank_from_group_rank("odd", 0), comm.get_group_rank_from_world_rank(2, "odd"),
        )  # fmt: skip

    first, second, third, fourth = on_ranks(main, 4)
    assert first == (1, 3, 1, 3, [3, 0, 2], "odd", 3, 2)
    assert second == [0, 1, 2, 3]
    assert (third[0], fourth[0]) == (2, 0)


def name_as(number):
    """What is wrong with the group of a call, before anything else."""
    return rf"the argument 'group' must be type of string, but got 'group' type : {number}\."


def errors(rank):
    comm.create_group("both", [0, 1])
    other = 1 - rank
    return [
        (lambda: comm.get_rank(1), TypeError, name_as("<class 'int'>")),
        (lambda: comm.get_rank(None), TypeError, name_as("<class 'NoneType'>")),
        (lambda: comm.get_rank("nobody"), RuntimeError, UNKNOWN),
        (lambda: comm.get_group_size("nobody"), RuntimeError, UNKNOWN),
        (lambda: comm.get_local_rank("nobody"), RuntimeError, UNKNOWN),
        (lambda: comm.get_local_rank_size("nobody"), RuntimeError, UNKNOWN),
        (lambda: comm.get_process_group_ranks("nobody"), RuntimeError, UNKNOWN),
        (lambda: comm.get_process_group_ranks(1), TypeError, "The parameter 'group' should be str or None"),
        (lambda: comm.create_group(1, [0]), TypeError, name_as("<class 'int'>")),
        (lambda: comm.create_group("both", [0]), ValueError, r"rank_list is \[0, 1\], but current .* is \[0\]"),
        (lambda: comm.create_group("g", (0, 1)), TypeError, "'rank_ids' must be type of list, .*<class 'tuple'>"),
        (lambda: comm.create_group("g", []), ValueError, "size should be greater than 1, .* size : 0"),
        (lambda: comm.create_group("g", [0, 0]), ValueError, "List rank_ids in Group g has duplicate data!"),
        (lambda: comm.create_group("g", [0, "a"]), TypeError, r"invalid ranks \['a'\]; allowed: int"),
        (lambda: comm.create_group("g", [0, 1, 9]), ValueError, r"ranks \[9\] do not exist; allowed: 0 to 1"),
        (lambda: comm.create_group("g", [0, 1], 1), TypeError, "'options' must be type of GroupOptions"),
        (lambda: comm.create_group("g", [other]), RuntimeError, f"Group g doesn't contain the global rank {rank}"),
        (lambda: comm.get_world_rank_from_group_rank("both", 5), RuntimeError, "doesn't contain the group rank 5"),
        (lambda: comm.get_world_rank_from_group_rank("both", "x"), TypeError, "'group_rank_id' must be type of int"),
        (lambda: comm.get_group_rank_from_world_rank(5, "both"), RuntimeError, "contain the global rank 5"),
        (lambda: comm.get_group_rank_from_world_rank("x", "both"), TypeError, "'world_rank_id' must be type of int"),
        (lambda: comm.get_group_rank_from_world_rank(0, "nobody"), RuntimeError, UNKNOWN),
        (lambda: comm.destroy_group(1), TypeError, name_as("<class 'int'>")),
        (lambda: comm.destroy_group("hccl_world_group"), ValueError, "world_group does not support destruction"),
        (lambda: comm.destroy_group("nobody"), KeyError, "the group 'nobody' does not exist; allowed: both"),
    ]


def test_wrong_groups_are_refused():
    def main():
        comm.init()
        for call, kind, text in errors(comm.get_rank()):
            with pytest.raises(kind, match=text):
                call()
        return comm.get_group_size("both")

    assert on_ranks(main) == [2, 2]


def test_a_group_that_members_create_differently_names_both():
    def main():
        comm.init()
        comm.create_group("g", [0, 1] if comm.get_rank() == 0 else [1, 0])

    with pytest.raises(ValueError, match=r"(?s)g.*\[1, 0\].*\[0, 1\]|g.*\[0, 1\].*\[1, 0\]"):
        on_ranks(main)


def test_a_destroyed_group_is_gone_and_can_be_made_again():
    def main():
        comm.init()
        comm.create_group("pair", [0, 1])
        comm.destroy_group("pair")
        with pytest.raises(RuntimeError, match="The group pair does not exist"):
            comm.get_rank("pair")
        comm.create_group("pair", [0, 1])
        return comm.get_rank("pair")

    assert on_ranks(main) == [0, 1]


def test_options_of_a_group():
    options = GroupOptions()
    options.hccl_config, options.use_async = {"hccl_buffer_size": 400}, True
    assert (options.hccl_config, options.use_async) == ({"hccl_buffer_size": 400}, True)
    with pytest.raises(TypeError, match=r"GroupOptions.hccl_config: int is not a dict"):
        options.hccl_config = 3
    with pytest.raises(TypeError, match=r"GroupOptions.use_async: int is not a bool"):
        options.use_async = 3
    with use(RankContext()):
        comm.init()
        comm.create_group("alone", [0], options)
        assert comm.get_group_size("alone") == 1


def test_defaults_are_those_of_mindspore():
    assert str(inspect.signature(comm.get_rank).parameters["group"].default) == "hccl_world_group"
    assert list(inspect.signature(comm.create_group).parameters) == ["group", "rank_ids", "options"]


def test_a_collective_is_waited_for_and_stored_once():
    calls = []
    work = Work(lambda: calls.append("wait"), lambda: calls.append("store"))
    work.wait()
    work.wait()
    assert calls == ["wait", "store"]
    Work(lambda: calls.append("alone")).wait()
    assert calls[2:] == ["alone"]


def test_each_rank_may_write_the_result_of_a_collective():
    """The ranks of one process share its bytes until then."""

    def main():
        ms.set_context(mode=ms.PYNATIVE_MODE)
        comm.init()
        total = ops.AllReduce()(ms.Tensor(np.ones(3000, np.float32)))
        ops.assign_add(total, ms.Tensor(np.full(3000, comm.get_rank(), np.float32)))
        return set(total.asnumpy().tolist())

    assert on_ranks(main, ranks=3) == [{3.0}, {4.0}, {5.0}]
