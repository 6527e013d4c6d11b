"""The trees of whole graphs."""

from dumpsim.archive.modeltree import ModelTree

AT = 1_700_000_000 * 10**9


def touch(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_names_of_models_are_escaped_and_times_are_utc():
    tree = ModelTree(path="/dump", device_id=3, step_level=False)
    assert tree.data(7, AT + 59 * 10**9, "a/b.c d", 2, 5) == "/dump/20231114221419/3/a_b_c_d/2/5"
    assert tree.acl_json == "acl_dump_3.json"


def test_what_is_there_already(tmp_path):
    o2 = ModelTree(path=str(tmp_path / "o2"), device_id=0, step_level=True)
    ge = ModelTree(path=str(tmp_path / "ge"), device_id=0, step_level=False)
    assert not o2.exists()
    touch(tmp_path / "o2/4/20231114221320/1/m/1/0/Add.a.1.2.1700000000000005")  # another device's
    assert not o2.exists()
    assert ModelTree(path=str(tmp_path / "o2"), device_id=1, step_level=True).exists()
    touch(tmp_path / "o2/acl_dump_0.json")
    assert o2.exists()
    touch(tmp_path / "ge/20231114221320/0/m/1/0/Add.a.1.2.1700000000000005")
    assert ge.exists()


def test_the_newest_stamp_is_found_in_names_rows_and_mappings(tmp_path):
    tree = ModelTree(path=str(tmp_path), device_id=0, step_level=True)
    data = tmp_path / "0/20231114221320/0/m/1/0"
    assert tree.newest_stamp() == 0
    touch(data / "Add.a.1.2.1700000000000005")
    assert tree.newest_stamp() == 1700000000000005
    touch(data / "Add.a.1.2.1700000000000006.output.0.ND.Float32.npy")
    assert tree.newest_stamp() == 1700000000000006
    touch(data / "Opdebug.Node_OpDebug.65535.65535.1700000000000007.output.0.json")
    assert tree.newest_stamp() == 1700000000000007
    touch(data / "statistic.csv", 'Op Type,Op Name\nAdd,a,1,2,1700000000000008,output,0,4,float32,"()",1\n')
    assert tree.newest_stamp() == 1700000000000008
    touch(data / "mapping.csv", "123,Add.a.1.2.1700000000000009\n")
    assert tree.newest_stamp() == 1700000000000009
    touch(tmp_path / "0/20231114221320/1/m/1/0/Add.a.1.2.1800000000000000")  # another device's
    assert tree.newest_stamp() == 1700000000000009
