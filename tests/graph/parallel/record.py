"""Compile sharded nets with real MindSpore: ``python record.py --python PYTHON --into FOLDER NET.py...``.

For each script, ``FOLDER/<net>/`` then holds ``net.py``, ``begin.ir`` and ``end.ir``;
``refused.txt`` holds the error instead, if sharding failed. MindSpore is imported once; each net
compiles in a fork of that process.
"""

import argparse
import importlib
import json
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import NoReturn

SECONDS = 60
_STAGES = {"begin": r"step_parallel_begin_\d+\.ir", "end": r"step_parallel_end_\d+\.ir"}


def _child(folder: Path) -> NoReturn:
    """Compile ``folder/net.py`` as its settings say; never returns."""
    try:
        log = os.open(folder / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(folder)
        os.environ["MS_DEV_SAVE_GRAPHS"] = "2"
        os.environ["MS_DEV_SAVE_GRAPHS_PATH"] = str(folder / "stages")
        import mindspore as ms
        from mindspore.common.api import _cell_graph_executor
        from pretend import pretend

        sys.path.insert(0, str(folder))
        net = vars(importlib.import_module("net"))
        settings = net["SETTINGS"]
        ms.set_context(mode=ms.GRAPH_MODE)
        alive = pretend(settings["device_num"], settings["global_rank"])
        ms.set_auto_parallel_context(**{"parallel_mode": "semi_auto_parallel", **settings})
        signal.alarm(SECONDS)
        _cell_graph_executor.compile(net["network"](), *net["inputs"]())
        del alive
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(0)


def _serve() -> None:
    """Read folders from standard input, one a line, and compile each net in a fork (in the process with MindSpore)."""
    import mindspore  # noqa: F401

    for line in sys.stdin:
        folder = Path(line.strip())
        child = os.fork()
        if not child:
            _child(folder)
        while not os.waitpid(child, os.WNOHANG)[0]:
            if (folder / "stages").is_dir() and any((folder / "stages").glob("opt_pass_*_opt_b_*.ir")):
                os.kill(child, signal.SIGKILL)  # the later passes are of no interest
                os.waitpid(child, 0)
                break
            time.sleep(0.05)
        print("done", flush=True)


def _collect(folder: Path) -> str:
    """Keep the two stages of a recorded net; the error where there is no second one."""
    for name, pattern in _STAGES.items():
        for path in (folder / "stages").glob("*.ir"):
            if re.fullmatch(pattern, path.name):
                shutil.move(path, folder / f"{name}.ir")
    shutil.rmtree(folder / "stages", ignore_errors=True)
    if (folder / "end.ir").exists():
        (folder / "log.txt").unlink()
        return "ok"
    (folder / "log.txt").rename(folder / "refused.txt")
    return "refused"


def pack(folder: Path) -> dict[str, dict[str, str]]:
    """The recorded nets of a folder by name: script and both stages, without source lines."""
    found = {}
    for net in sorted(folder.iterdir()):
        if (net / "end.ir").exists():
            stages = {name: re.sub(r"\n *# In file [^\n]*", "", (net / f"{name}.ir").read_text()) for name in _STAGES}
            found[net.name] = {"script": (net / "net.py").read_text(), **stages}
    return found


def store(nets: dict[str, dict[str, str]], path: Path) -> None:
    """Write recorded nets into one compressed file."""
    text = json.dumps(nets, separators=(",", ":"))
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="python")
    parser.add_argument("--into", type=Path)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--pack", type=Path, help="a file for all recorded nets of the folder")
    parser.add_argument("scripts", nargs="*", type=Path)
    given = parser.parse_args()
    if given.serve:
        _serve()
        return
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    command = [given.python, str(Path(__file__).resolve()), "--serve"]
    with subprocess.Popen(
        command, cwd="/tmp", env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin
        assert server.stdout
        for script in given.scripts:
            folder = given.into.resolve() / script.stem
            if folder.exists():
                continue
            folder.mkdir(parents=True)
            shutil.copyfile(script, folder / "net.py")
            begun = time.monotonic()
            server.stdin.write(f"{folder}\n")
            server.stdin.flush()
            while (answer := server.stdout.readline()) and not answer.startswith("done"):
                pass
            print(f"{script.stem} {_collect(folder)} {time.monotonic() - begun:.1f} s", flush=True)
        server.stdin.close()
    if given.pack is not None:
        store(pack(given.into), given.pack)


if __name__ == "__main__":
    main()
