"""What the names of directories say: rank, net, graph, iteration, step and time."""

import pytest

from dumpsim.analysis.place import place_of, places

TIME = "20231114221320"
# directory -> rank, net, graph, iteration, step, time, directory of the rank
TABLE = [
    # O0, O1, GPU, CPU [spec mindspore 3.1]
    ("d/rank_3/Net/0/7", (3, "Net", 0, 7, None, "", "d/rank_3")),
    ("d/rank_12/Net/10/constants", (12, "Net", 10, None, None, "", "d/rank_12")),
    ("d/rank_3/Net/0", (3, "", None, None, None, "", "d/rank_3")),
    ("d/rank_3", (3, "", None, None, None, "", "d/rank_3")),
    ("d/rank_3/Net/x/7", (3, "", None, None, None, "", "d/rank_3")),
    ("d/rank_3/Net/x/constants", (3, "", None, None, None, "", "d/rank_3")),
    ("d/rank_3/odd/rank_4/Net/1/2", (4, "Net", 1, 2, None, "", "d/rank_3/odd/rank_4")),
    # O2 and GE [spec mindspore 3.1, ge 1.4]
    (f"d/4/{TIME}/2/model/1/5", (2, "model", 1, 5, 4, TIME, None)),
    (f"d/x/{TIME}/2/model/1/5", (2, "model", 1, 5, None, TIME, None)),
    (f"d/4/{TIME}/2/model/1", (2, "model", 1, None, 4, TIME, None)),
    (f"d/4/{TIME}/2/model", (2, "model", None, None, 4, TIME, None)),
    (f"d/4/{TIME}/2", (2, "", None, None, 4, TIME, None)),
    (f"d/4/{TIME}", (0, "", None, None, None, "", None)),
    (f"d/worldsize8_global_rank6/{TIME}/2/model/1/5", (6, "model", 1, 5, None, TIME, None)),
    (f"d/worldsize8_global_rank0/{TIME}/2/model/1/5", (0, "model", 1, 5, None, TIME, None)),
    (f"d/{TIME[:-1]}/2/model/1/5", (2, "model", 1, 5, None, TIME[:-1], None)),  # a zero is missing
    (f"d/{TIME[:-2]}/2/model/1/5", (0, "", None, None, None, "", None)),
    (f"d/{TIME}0/2/model/1/5", (0, "", None, None, None, "", None)),
    (f"d/1{TIME[1:]}/2/model/1/5", (0, "", None, None, None, "", None)),
    (f"d/{TIME}/x/model/1/5", (0, "", None, None, None, "", None)),
    (f"d/4/{TIME}/2/model/1/5/6", (0, "", None, None, None, "", None)),  # too deep
    (f"d/4/{TIME}/2/model/x/y", (2, "model", None, None, 4, TIME, None)),
    # an exception of GE [spec ge 2.9]
    ("d/extra-info/data-dump/5", (5, "", None, None, None, "", None)),
    ("d/extra-info/data-dump/x", (0, "", None, None, None, "", None)),
    ("d/extra/data-dump/5", (0, "", None, None, None, "", None)),
    # tensordump and API dumps [spec mindspore 9, api_dump 1.2]
    ("d/rank5/x/step3", (5, "", None, None, 3, "", None)),
    ("d/step3", (0, "", None, None, 3, "", None)),
    ("d/rank5", (5, "", None, None, None, "", None)),
    ("d/rank5/rank6", (6, "", None, None, None, "", None)),
    ("d/ranks5/steps3", (0, "", None, None, None, "", None)),
    ("d", (0, "", None, None, None, "", None)),
]


@pytest.mark.parametrize(("directory", "found"), TABLE)
def test_names_of_directories_say_where_a_tensor_belongs(tmp_path, directory, found):
    place = place_of(tmp_path / directory)
    above = None if found[-1] is None else tmp_path / found[-1]
    assert place.path == tmp_path / directory
    assert (place.rank, place.net, place.graph_id, place.iteration, place.step, place.time, place.rank_path) == (
        *found[:-1], above
    )  # fmt: skip
    assert place.api == ""


def test_directories_come_by_number_and_auxiliary_ones_do_not(tmp_path):
    file = "Add.a.0.0.1700000000000000.output.0.DefaultFormat.npy"
    order = [
        f"rank_{rank}/Net/{graph}/{iteration}" for rank in (2, 10) for graph in (0, 3) for iteration in (9, 10, 100)
    ]
    order.insert(6, "rank_2/Net/3/constants")
    for name in [*order[::-1], "rank_2/graphs", "rank_2/execution_order", "rank_2/.dump_metadata", "rank_2/empty"]:
        (tmp_path / name).mkdir(parents=True)
        if not name.endswith("empty"):
            (tmp_path / name / file).touch()
    (tmp_path / "rank_2" / "empty" / "readme.md").touch()
    (tmp_path / "link").symlink_to(tmp_path / "rank_2")
    assert [place.path.relative_to(tmp_path).as_posix() for place in places(tmp_path)] == order
    assert [place.iteration for place in places(tmp_path / "rank_10" / "Net" / "3")] == [9, 10, 100]


def test_an_api_dump_is_one_place_for_each_framework(tmp_path):
    rank = tmp_path / "rank3"
    for name in ("torch_api_dump", "mindspore_api_dump", "other_api_dump"):
        (rank / name).mkdir(parents=True)
        (rank / name / "NN_A_0_forward_output.npy").touch()
    (rank / "torch_api_dump_info.pkl").touch()
    (rank / "mindspore_api_dump_info.csv").touch()
    found = [(place.api, place.rank, place.path.name) for place in places(tmp_path)]
    assert found == [("mindspore", 3, "rank3"), ("torch", 3, "rank3"), ("", 3, "other_api_dump")]
    assert [(place.api, place.path) for place in places(rank / "torch_api_dump")] == [("torch", rank)]
    (rank / "torch_api_dump_info.pkl").unlink()
    assert [(place.api, place.path) for place in places(rank / "torch_api_dump")] == [("", rank / "torch_api_dump")]
