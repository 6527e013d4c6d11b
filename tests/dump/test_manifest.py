"""The spool of the manifest: every entry, in its order, whatever their number."""

import contextlib
import json
import os
import subprocess
import sys

import pytest
from pydantic import ValidationError

from dumpsim.core.errors import DumpWriteError
from dumpsim.dump.manifest import BufferEntry, FileEntry, FindingEntry, LayoutEntry, Manifest, Spool

HEAD = Manifest(
    dumpsim="0", profile="seed/cpu", target="CPU", chip="CPU", jit_level="O0", rank=0, device_id=0, clock="virtual",
    seed=0, overrides={}, config="", path="", asked=0, captured=0, skipped={}, tensors=0, rows=0, written_files=0,
    written_bytes=0, iterations=[], notes=[],
)  # fmt: skip


@pytest.mark.parametrize("kind", [FileEntry, BufferEntry, LayoutEntry, FindingEntry, Manifest])
def test_entries_do_not_change_and_have_no_other_fields(kind):
    fields = dict.fromkeys(kind.model_fields)
    entry = kind.model_construct(**fields)
    name = next(iter(fields))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(entry, name, "x")
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        kind.model_validate({"other": 1})


@pytest.mark.parametrize("number", [0, 1, 255, 256, 257, 600])
def test_all_entries_are_there_in_their_order(tmp_path, number):
    spool = Spool()
    for index in range(number):
        spool.add(f"Net/0/0/{index}\n\u00e4.npy", "Default/Add-op0", index, 0, 4096, 1, "DefaultFormat", "x")
    spool.finish(HEAD, str(tmp_path / "manifest.json"))
    found = Manifest.model_validate(json.loads((tmp_path / "manifest.json").read_text("utf-8")))
    assert [entry.task_id for entry in found.files] == list(range(number))
    assert [entry.path for entry in found.files] == [f"Net/0/0/{index}\n\u00e4.npy" for index in range(number)]


def temporary_files():
    """The deleted files that this process has open."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{name}"))
    return [path for path in found if path.endswith("(deleted)")]


def test_the_file_of_the_entries_is_open_until_the_manifest_is_written(tmp_path):
    before, spool = len(temporary_files()), Spool()
    for index in range(300):
        spool.add(f"{index}.npy", "Default/Add-op0", index, 0, 4096, 1, "DefaultFormat", "x")
    assert len(temporary_files()) == before + 1
    spool.finish(HEAD, str(tmp_path / "manifest.json"))
    assert len(temporary_files()) == before


def test_a_manifest_that_cannot_be_written_leaves_no_part_of_it(tmp_path):
    (tmp_path / "manifest.json").mkdir()
    with pytest.raises(DumpWriteError, match=r"manifest\.json: cannot be written: Is a directory"):
        Spool().finish(HEAD, str(tmp_path / "manifest.json"))
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


AT_EXIT = """
import atexit
import sys
from dumpsim.dump.manifest import Manifest, Spool

spool = Spool()
atexit.register(lambda: spool.finish(Manifest.model_validate_json(sys.argv[1]), sys.argv[2]))  # as a run does
for index in range(300):
    spool.add(f"{index}.npy", "Default/Add-op0", index, 0, 4096, 1, "DefaultFormat", "x")
"""


def test_entries_on_disk_are_there_until_the_end_of_the_program(tmp_path):
    path = tmp_path / "manifest.json"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", AT_EXIT, HEAD.model_dump_json(), str(path)]
    process = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert process.stderr == ""
    assert [entry["path"] for entry in json.loads(path.read_text())["files"]] == [f"{n}.npy" for n in range(300)]
