"""The samples that documents speak of."""

import os
import subprocess
import sys
from pathlib import Path

import dumpsim

EXAMPLES = Path(dumpsim.__file__).parent / "examples"


def test_the_synchronous_sample_of_the_dump_page(tmp_path):
    command = tmp_path / "bin" / "dumpsim"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m dumpsim "$@"\n')
    command.chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MINDSPORE", "MS_"))}
    environment |= {"PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(EXAMPLES.parents[1])}
    done = subprocess.run(
        ["bash", str(EXAMPLES / "dump_sync_dump.sh"), "out", "--narrow", "32", "--steps", "1"],
        cwd=tmp_path, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    dump = dumpsim.open(tmp_path / "out" / "debug_dump")
    lines = {entry.script_line.code.strip() for entry in dump.filter(op="*/conv3-conv2d/*", io="output", iteration=0)}
    assert "x = self.conv3(x)" in lines  # from the script's line to the file, as the page shows it
