"""Runs net scripts with real MindSpore: ``python record.py --python PYTHON --into CORPUS NET.py...``.

For each script, ``CORPUS/<net>/`` then holds ``net.py``, ``tree/`` (the dump: the folder of ``rank_0``), ``stages/``
(what ``MS_DEV_SAVE_GRAPHS`` printed of each compile stage) and ``log.txt``; ``refused.txt`` holds the last lines of an
error instead, if the script ended with one. Nets that are there already are skipped unless ``--again`` is given.

Each net runs twice: for its stages, and for its tree without them. An unnamed node or parameter is numbered by one
counter of the process when it is printed for the first time, so printing the stages changes file names such as
``Parameter.Parameter_18`` to ``Parameter.Parameter_232``.

MindSpore is imported once; each run is a child process of its own, forked from that one before anything was
compiled. Process-wide counters and graphs were compared with those of a fresh interpreter: they are the same.
"""

import argparse
import atexit
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import NoReturn

SECONDS = 90  # a net that takes longer counts as refused
CONFIG = {
    "common_dump_settings": {
        "op_debug_mode": 0,
        "dump_mode": 0,
        "path": "{path}",
        "net_name": "Net",
        "iteration": "all",
        "saved_data": "tensor",
        "input_output": 0,
        "kernels": [],
        "support_device": [0, 1, 2, 3, 4, 5, 6, 7],
    },
    "e2e_dump_settings": {"enable": True, "trans_flag": True},
}


def dump_config(path: Path | str) -> str:
    """Text of the dump config of every net, with ``path`` as the dump path."""
    return json.dumps(CONFIG).replace("{path}", str(path))


def _child(folder: Path, level: str) -> NoReturn:
    """Run ``folder/net.py``; never returns. It prints no stages at level 0."""
    try:
        log = os.open(folder / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(folder)
        (folder / "dump.json").write_text(dump_config(folder / "tree"))
        os.environ["MINDSPORE_DUMP_CONFIG"] = str(folder / "dump.json")
        if level != "0":
            os.environ["MS_DEV_SAVE_GRAPHS"] = level
            os.environ["MS_DEV_SAVE_GRAPHS_PATH"] = str(folder / "stages")
        script = str(folder / "net.py")
        sys.argv = [script]
        signal.alarm(SECONDS)
        runpy.run_path(script, run_name="__main__")
        atexit._run_exitfuncs()  # the last run of a jit function may still dump, and a process waits for it at its end
    except BaseException:
        traceback.print_exc()
        _leave(1)  # here, while the exception lives: freeing a net that failed to compile can hang
    _leave(0)


def _leave(code: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _serve() -> None:
    """Read levels and folders from standard input, and run each net in a fork (in the process with MindSpore)."""
    import mindspore  # noqa: F401

    for line in sys.stdin:
        level, folder = line.strip().split(" ", 1)
        child = os.fork()
        if not child:
            _child(Path(folder), level)
        _, status = os.waitpid(child, 0)
        print("done", status, flush=True)


def _run(server: "subprocess.Popen[str]", folder: Path, level: str) -> bool:
    """Let the server run the net of a folder; returns whether it ended without an error."""
    assert server.stdin
    assert server.stdout
    server.stdin.write(f"{level} {folder}\n")
    server.stdin.flush()
    answer = ""
    while not answer.startswith("done"):
        answer = server.stdout.readline()
        if not answer:
            raise RuntimeError(f"the server ended at {folder.name}")
    return answer.split() == ["done", "0"]


def record(scripts: list[Path], into: Path, python: str, *, again: bool, level: str) -> None:
    """Run each script and leave its folder below ``into``."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    into.mkdir(parents=True, exist_ok=True)
    command = [python, str(Path(__file__).resolve()), "--serve"]
    with subprocess.Popen(
        command, cwd="/tmp", env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin
        assert server.stdout
        for script in scripts:
            folder = into.resolve() / script.stem
            if folder.exists():
                if not again:
                    continue
                shutil.rmtree(folder)
            folder.mkdir()
            shutil.copyfile(script, folder / "net.py")
            begun = time.monotonic()
            refused = False
            for each in (level, "0"):
                shutil.rmtree(folder / "tree", ignore_errors=True)
                refused = refused or not _run(server, folder, each)
            if refused:
                text = (folder / "log.txt").read_text(errors="replace")
                (folder / "refused.txt").write_text("\n".join(text.splitlines()[-40:]) + "\n")
            print(f"{script.stem} {'refused' if refused else 'ok'} {time.monotonic() - begun:.1f} s", flush=True)
        server.stdin.close()


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("script", nargs="*", type=Path)
    parser.add_argument("--python", default=sys.executable, help="interpreter that has MindSpore 2.10")
    parser.add_argument("--into", type=Path)
    parser.add_argument("--level", choices=["1", "2", "3"], default="2", help="3 prints all passes inside a stage too")
    parser.add_argument("--again", action="store_true", help="run nets that are there already once more")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        _serve()
    else:
        if options.into is None:
            parser.error("--into: where the nets go")
        record(options.script, options.into, options.python, again=options.again, level=options.level)


if __name__ == "__main__":
    main()
