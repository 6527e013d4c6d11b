"""One process runs the nets of the tests of a module, and no net runs twice in the processes of pytest-xdist."""

import os

import pytest
from corpus import emulated, rates


@pytest.fixture(scope="module")
def emulator():
    with emulated.Emulator() as found:
        yield found


@pytest.fixture
def measured(request, tmp_path_factory):
    """Results of the nets with these names, see `rates.measure`."""
    if "DUMPSIM_LINEMAP_TEST" in os.environ:  # the lines of a process are recorded as those of the test that started it
        with emulated.Emulator() as found:
            yield rates.Measured(found)
        return
    # the parent is the folder of all processes of one run
    shared = tmp_path_factory.getbasetemp().parent / "corpus" if "PYTEST_XDIST_WORKER" in os.environ else None
    yield rates.Measured(request.getfixturevalue("emulator"), shared)
