"""Files that a test of the archive opens do not stay open."""

import gc
import os

import pytest


def open_files():
    """The files of this process below a directory, by descriptor."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            place = os.readlink(f"/proc/self/fd/{name}")
        except OSError:  # of the list itself
            continue
        if place.startswith("/") and not place.startswith(("/dev/", "/proc/")):
            found[name] = place
    return found


@pytest.fixture(autouse=True)
def descriptors():
    """Whatever happens to a file, its descriptor is closed: a dump has many more files than a process may open."""
    before = open_files()
    yield
    if open_files() != before:
        gc.collect()
    assert open_files() == before
