"""Every test begins with MindSpore's default context."""

from collections.abc import Iterator

import pytest

from dumpsim.frontends.mindspore import context
from dumpsim.frontends.mindspore.communication import management
from dumpsim.frontends.mindspore.parallel._context import reset_auto_parallel_context


@pytest.fixture(autouse=True)
def default_context() -> Iterator[None]:
    """The context of a fresh process, before and after."""
    context._reset()
    reset_auto_parallel_context()
    yield
    context._reset()
    reset_auto_parallel_context()
    management.release()
