"""Six writers of dumps for the sweeps that kill them and fail their system calls, and a judge of what they leave.

The judge reads whole files by numpy, json and google.protobuf's rules, and then everything by our readers and commands.
"""

import contextlib
import csv
import io
import json
import os
import struct
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from dumpproto import messages

import dumpsim
from dumpsim.cli import main
from dumpsim.codecs.apidump import tail_of
from dumpsim.core.errors import UnfinishedWarning
from dumpsim.core.partname import is_ours
from dumpsim.frontends.apidump.output import Output, npy_header
from tests.dump.machine import Machine, graph, ref, task

MODES = ("seed/ascend_o0", "seed/ascend_o2", "seed/ascend_ge", "seed/gpu", "2.10/cpu", "apidump")
LONG = "Default/" + "/".join(f"layer{n}-Sequential" for n in range(16))
_GROWING = ("statistic.csv", "mapping.csv", "_info.pkl")


def write(mode: str, root: Path, steps: int, *, append: bool = False, say: Callable[[], object] = int) -> str:
    """Dump some steps; what a user is told at the end."""
    if mode == "apidump":
        return _write_calls(root, steps, say)
    device = mode.partition("/")[2]
    changes: dict[str, Any] = {"saved_data": "full"} if device in ("ascend_o0", "gpu") else {}
    machine = Machine(root, mode, settings={"append": append, "overrides": {"unwritable": "log"}}, **changes)
    machine.compile(graph())
    x = np.arange(60_000, dtype=np.float32).reshape(200, 300)
    operands, weight = [ref(x, 0), ref(x[:20], 1)], ref(x[0], name="fc.weight")
    ids = {"model_name": "m", "model_id": 1} if device in ("ascend_ge", "ascend_o2") else {}
    for step in range(steps):
        names = ("Default/Add-op0", f"{LONG}/MatMul-op{step}", "Default/ReLU-op1")
        tasks = (task(name, operands, [ref(x, 0)], task_id=at, **ids) for at, name in enumerate(names))
        machine.run(*tasks, parameters=(weight,))
        say()
    summary = machine.service.finish()
    return "\n".join([str(summary), *(text for _, text in machine.log)])


def _write_calls(root: Path, steps: int, say: Callable[[], object]) -> str:
    """Calls in the form of an API dump, with its thread that writes."""
    output = Output(root, "torch", 0)
    output.begin()
    stacks: dict[str, list[str]] = {}
    output.set_callbacks(lambda: bool(output.stacks(dict(stacks))) or True, output.flush)
    x = np.arange(6_000, dtype=np.float32).reshape(60, 100)
    header = npy_header(x.dtype.str, x.shape)
    told = ""
    for step in range(steps):
        for at in range(40):
            call = step * 40 + at
            stacks[f"torch.nn.Linear({call}) forward"] = [f"File net.py, line {at}, in f, \n x = f([{at}])"]
            name = f"NN_Linear_{call}_forward_output"
            output.array(name, (header, x.reshape(-1).view(np.uint8).data))
            output.lines.add(name, tail_of("torch.float32", x.shape, (5999.0, 0.0, 2999.5)))
        try:
            output.stacks(stacks)
            output.flush()
        except dumpsim.DumpsimError as error:
            told += "\n".join([str(error), *getattr(error, "__notes__", ())])
        say()
    try:
        output.close()
    except dumpsim.DumpsimError as error:
        told += str(error)
    return told


@dataclass
class Verdict:
    """What is wrong with a tree; `unfinished`: lines that were reported."""

    half: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    files: int = 0
    unfinished: int = 0


def judge(root: Path, *, commands: bool = True) -> Verdict:
    """Look at every file, and read the tree as a user would."""
    found = Verdict()
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        if is_ours(path.name):
            found.left.append(path.name)
            continue
        found.files += 1
        reason = _half(path)
        if reason:
            found.half.append(f"{path.relative_to(root)}: {reason}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            dump = dumpsim.open(root)
        except dumpsim.DumpsimError as error:
            if any(path.suffix == ".npy" or path.name == "statistic.csv" for path in root.rglob("*")):
                found.unreadable.append(f"open: {error}")
            return found
        try:
            for entry in dump:
                if entry.path is not None:
                    entry.array()
        except dumpsim.DumpsimError as error:
            found.unreadable.append(str(error))
    found.unfinished = len({str(one.message) for one in caught if issubclass(one.category, UnfinishedWarning)})
    for words in _commands(root) if commands else ():
        code, err = _run(words)
        if code not in (0, 1) or "Traceback" in err:
            found.unreadable.append(f"{' '.join(words)}: exit {code}: {err[-400:]}")
    return found


def _commands(root: Path) -> Iterator[tuple[str, ...]]:
    tree = str(root)
    yield from (("ls", tree, "--json"), ("stat", tree, "--json"), ("show", tree, "--limit", "2"))
    yield from (("first", tree, "--json"), ("compare", tree, tree, "--json"))


def _run(words: tuple[str, ...]) -> tuple[int, str]:
    """A command in this process."""
    before, sys.argv = sys.argv, ["dumpsim", *words]
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as ended:
        return int(ended.code or 0), err.getvalue()
    finally:
        sys.argv = before
    return 0, err.getvalue()


def _half(path: Path) -> str:
    """Why a file is not whole, empty for one that is; the last line of one that grows may be unfinished."""
    data = path.read_bytes()
    name = path.name
    try:
        if name.endswith(".npy"):
            np.load(io.BytesIO(data))
        elif name.endswith(".json"):
            json.loads(data)
        elif name.endswith(_GROWING) or "global_execution_order" in name:
            lines = data.decode().split("\n")[:-1]
            if name == "statistic.csv" and len({len(row) for row in csv.reader(lines)}) > 1:
                return "rows differ in their columns"
        elif name.endswith(".csv"):
            if not data.endswith(b"\n"):
                return "a last line without end"
        elif name.endswith((".ir", ".pb")):
            if not data:
                return "empty"
        else:
            return _half_bin(data)
    except Exception as error:
        return repr(error)
    return ""


def _half_bin(data: bytes) -> str:
    """A dump file of CANN: a length, a message, and the bytes that it promises."""
    (length,) = struct.unpack_from("<Q", data)
    message = messages()["DumpData"]()
    message.ParseFromString(data[8 : 8 + length])
    promised = 8 + length + sum(item.size for item in (*message.input, *message.output))
    return "" if len(data) == promised else f"{len(data)} bytes for {promised}"


def forked(action: Callable[[], object]) -> int:
    """Start a child that runs `action` and ends; its pid."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            action()
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    return pid
