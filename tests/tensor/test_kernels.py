"""The C kernels alone under the address and undefined-behaviour sanitizers, at every level, AVX-512 source included."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "_ext" / "src"
FLAGS = ["-O1", "-g", "-ffp-contract=off", "-Wall", "-Wno-psabi", "-Wno-type-limits", "-Werror"]
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None or sys.platform != "linux", reason="needs gcc on Linux")
@pytest.mark.parametrize("flags", [SANITIZE, ["-O3"]], ids=["sanitized", "optimised"])
def test_kernels(tmp_path, flags):
    program = tmp_path / "kernels"
    command = ["gcc", *FLAGS, *flags, f"-I{SOURCES}", HERE / "kernels.c", SOURCES / "cpu.c", "-o", program, "-lm"]
    subprocess.run(command, check=True)
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run([program], capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "0 failures\n"), done.stdout + done.stderr
