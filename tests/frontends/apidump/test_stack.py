"""Stacks of calls against the frames themselves."""

import linecache
import sys

import pytest

from dumpsim.frontends.apidump.stack import Stacks


def truth(frame):
    """What the real tool writes, told by the frames' own lines."""
    found = []
    while frame is not None:
        code = frame.f_code
        source = linecache.getline(code.co_filename, frame.f_lineno).strip()
        found.append(f"File {code.co_filename}, line {frame.f_lineno}, in {code.co_name}, \n {source}")
        frame = frame.f_back
    return found


@pytest.mark.parametrize("depth", [0, 1, 100, 128, 129, 500])  # 128 frames need no memory of their own
def test_every_depth_is_that_of_the_frames(depth):
    stacks = Stacks()

    def down(left):
        if left:
            return down(left - 1)
        frame = sys._getframe()
        # fmt: off
        stacks.keep("key", frame, filtered=True); return truth(frame)  # noqa: E702 (one line for both)
        # fmt: on

    expected = down(depth)
    assert stacks.texts() == {"key": expected}
    assert len(expected) > depth


def test_places_of_one_function_are_told_apart():
    stacks = Stacks()
    expected = {}
    for key in ("a", "b"):
        frame = sys._getframe()
        if key == "a":
            stacks.keep(key, frame, filtered=True); expected[key] = truth(frame)  # fmt: skip  # noqa: E702
        else:
            stacks.keep(key, frame, filtered=True); expected[key] = truth(frame)  # fmt: skip  # noqa: E702
    assert stacks.texts() == expected
    assert expected["a"][0] != expected["b"][0]


def test_hidden_directories_and_torchs_way_to_an_override():
    source = "def call(function):\n    return function()\n"

    def layer(path):
        space = {}
        exec(compile(source, path, "exec"), space)
        return space["call"]

    user, module, override, caller = map(
        layer, ("/u/net.py", "/x/torch/nn/m.py", "/x/torch/overrides.py", "/u/block.py")
    )
    stacks = Stacks()

    def innermost():
        frame = sys._getframe().f_back
        stacks.keep("some", frame, filtered=True)
        stacks.keep("all", frame, filtered=False)

    # the innermost lambda stands for the API: it asks for overrides, and goes with torch's dispatch
    user(lambda: module(lambda: caller(lambda: override(innermost))))
    names = {key: [text.split(",")[0] for text in texts] for key, texts in stacks.texts().items()}
    here = f"File {__file__}"
    assert names["some"][:4] == ["File /u/block.py", here, here, "File /u/net.py"]
    assert names["all"][:5] == ["File /u/block.py", here, "File /x/torch/nn/m.py", here, "File /u/net.py"]


def test_no_frame_is_an_empty_stack():
    stacks = Stacks()
    assert not stacks.changed
    stacks.keep("key", None, filtered=True)
    assert stacks.changed
    assert stacks.texts() == {"key": []}
    assert not stacks.changed
