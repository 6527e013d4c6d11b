"""An unmodified script on ranks of one process: `dumpsim run --ranks N`."""

import json
import textwrap

import dumprun
import pytest

HELPER = """
import os
count = 0
rank = os.environ["RANK_ID"]


def more():
    global count
    count += 1
    return count
"""

SCRIPT = """
import atexit
import os
import sys
import threading

import numpy as np
import mindspore as ms
from mindspore import Tensor, nn
from mindspore.communication import get_group_size, get_rank, init

import helper
import package.part

sys.path.append(f"/of/{os.environ['RANK_ID']}")
ms.set_context(mode=ms.GRAPH_MODE)
init()


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 2)

    def construct(self, x):
        return self.fc(x)


def told():
    print("in a thread", get_rank())


if __name__ == "__main__":
    rank = get_rank()
    atexit.register(lambda: print("at exit", get_rank(), flush=True))
    assert package.part.rank == helper.rank == str(rank)
    assert sys.modules["__main__"].Net is Net and sys.modules["helper"] is helper
    assert [entry for entry in sys.path if entry.startswith("/of/")] == [f"/of/{rank}"]
    net = Net()
    for _ in range(2):
        net(Tensor(np.ones((1, 4), np.float32)))
    thread = threading.Thread(target=told)
    thread.start()
    thread.join()
    print("rank", rank, "of", get_group_size(), "call", helper.more(), sys.argv[1:])
    if sys.argv[1:] == [str(rank)]:
        sys.exit(7)
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "part.py").write_text('import os\nrank = os.environ["RANK_ID"]\n')
    settings = dumprun.config(tmp_path / "DUMP", iteration="all", support_device=[0, 1, 2])
    (tmp_path / "dump.json").write_text(json.dumps(settings))
    return tmp_path


def test_each_rank_has_modules_a_dump_and_a_manifest_of_its_own(place):
    run = dumprun.cli(place, "run", "--ranks", "3", "--config", "dump.json", "train.py")
    said = [(rank, f"in a thread {rank}", f"rank {rank} of 3 call 1 []", f"at exit {rank}") for rank in range(3)]
    assert run.out.splitlines() == [f"[{rank}] {text}" for rank, *texts in said for text in texts]
    trees = [place / "DUMP" / f"rank_{rank}" for rank in range(3)]
    files = [sorted(path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()) for tree in trees]
    assert any("ms_execution_order" in name for name in files[0])
    plain = [[dumprun.unstamped(name) for name in names] for names in files]
    assert plain[0] == plain[1] == plain[2]
    for rank, name in enumerate(("", "-rank1", "-rank2")):
        manifest = json.loads((place / f"dumpsim-manifest{name}.json").read_text())
        assert (manifest["rank"], manifest["device_id"], manifest["path"]) == (rank, rank, str(trees[rank]))
        assert {entry["path"].split("/")[0] for entry in manifest["files"]} <= {"Net", "graphs", "execution_order"}
    tensors, count = manifest["tensors"], len(files[0])
    lines = run.err.splitlines()
    assert lines[:2] == [
        f"dumpsim: {place}/DUMP",
        f"  ranks 0-2: asked {tensors}, captured {tensors}, written {tensors} tensors; {count} files",
    ]
    total = f"dumpsim: 3 ranks: asked {3 * tensors}, captured {3 * tensors}, written {3 * tensors} tensors; "
    assert lines[2].startswith(f"{total}{3 * count} files, ")
    assert lines[3:] == [f"dumpsim: next: dumpsim ls {place}/DUMP --summary"]


def test_the_exit_code_is_that_of_the_rank_and_an_existing_root_is_refused(place):
    first = dumprun.cli(place, "run", "--ranks", "3", "--config", "dump.json", "train.py", "1", code=7)
    assert first.err.splitlines()[-1] == "dumpsim: rank 0: exit code 0, rank 1: exit code 7, rank 2: did not start"
    assert "  rank 2: no dump" in first.err.splitlines()
    assert "Traceback" not in first.err
    again = dumprun.cli(place, "run", "--ranks", "3", "--config", "dump.json", "train.py", code=1)
    assert "rank_0: already contains a dump of this rank" in again.err
    assert again.err.splitlines()[-1] == "dumpsim: rank 0: BadInputError, exit code 1, ranks 1-2: did not start"
    more = dumprun.cli(place, "run", "--ranks", "3", "--config", "dump.json", "--append", "train.py")
    assert "dumpsim: 3 ranks: asked " in more.err


REFUSED = {
    "import signal\nsignal.signal(signal.SIGTERM, lambda *_: None)": "cannot each handle SIGTERM",
    "import multiprocessing as m\nm.Process(target=print).start()": "cannot start 'Process-1'",
    "import os\nos.fork()": "a script whose ranks share a process cannot fork",
}


def test_what_needs_a_process_of_its_own_names_msrun(tmp_path):
    tries = "".join(
        f"\ntry:\n{textwrap.indent(source, '    ')}\nexcept NotImplementedError as error:\n    print(error)\n"
        for source in REFUSED
    )
    allowed = "import signal, subprocess\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\nsubprocess.run(['true'])\n"
    (tmp_path / "train.py").write_text(tries + allowed)
    run = dumprun.cli(tmp_path, "run", "--ranks", "1", "train.py")
    for line, text in zip(run.out.splitlines(), REFUSED.values(), strict=True):
        assert text in line
        assert line.endswith("; dumpsim msrun gives each rank a process of its own")


def test_a_module_runs_as_main_and_an_error_is_shown_as_of_the_script(tmp_path):
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "pack" / "inner.py").write_text("value = 3\n")
    (tmp_path / "pack" / "__main__.py").write_text(
        "import os, sys\nfrom .inner import value\nprint(__name__, value, sys.argv[1:])\n"
        "if os.environ['RANK_ID'] == '1':\n    raise KeyError('mine')\n"
    )
    run = dumprun.cli(tmp_path, "run", "--ranks", "2", "-m", "pack", "word", code=1)
    assert run.out.splitlines() == ["[0] __main__ 3 ['word']", "[1] __main__ 3 ['word']"]
    lines = run.err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "pack/__main__.py" in lines[1]
    assert lines[-3:] == [
        "KeyError: 'mine'",
        "raised in rank 1 of 2",
        "dumpsim: rank 0: exit code 0, rank 1: KeyError, exit code 1",
    ]


DIFFER = """
import mindspore as ms
import numpy as np
from mindspore import Tensor, ops
from mindspore.communication import get_rank, init

init()
ops.AllReduce()(Tensor(np.ones(4 + get_rank() // 2, np.float32))).asnumpy()
"""


def test_an_error_of_each_rank_is_shown(tmp_path):
    (tmp_path / "train.py").write_text(DIFFER)
    run = dumprun.cli(tmp_path, "run", "--ranks", "3", "train.py", code=1)
    lines = run.err.splitlines()
    assert "raised in rank 2 of 3" in lines
    shown = [line for line in lines if "[EI0005]" in line]
    assert len(shown) == 3
    assert "CollectiveError: rank 2, " in shown[0]
    assert shown[1].startswith("rank 0: CollectiveError: rank 0, ")
    assert "(rank 2, " in shown[1]
    assert shown[2].startswith("rank 1: CollectiveError: rank 1, ")
    assert lines[-1] == "dumpsim: ranks 0-2: CollectiveError, exit code 1"
