"""Every command and every block of code of README and docs/ is run, and what the pages show is what is printed."""

import pytest
from extras import missing

from tests.pages import ROOT, Block, PageRun, blocks, first_missing, markers, pages


def _cases():
    """A test for each page with the markers that it names, and one with the extras that some blocks need.

    Where these are installed, it is the only one of the page: it runs the other blocks, too.
    """
    for path in pages():
        name = path.relative_to(ROOT).as_posix()
        asked = [getattr(pytest.mark, marker) for marker in markers(path)]
        extras = sorted({block.extra for block in blocks(path) if block.extra})
        if not extras or any(missing(extra) for extra in extras):
            yield pytest.param(path, (), id=name, marks=asked)
        if extras:
            more = [getattr(pytest.mark, extra) for extra in extras]
            yield pytest.param(path, extras, id=f"{name}-{'-'.join(extras)}", marks=asked + more)


@pytest.mark.parametrize(("path", "extras"), list(_cases()))
def test_a_page_works_as_written(path, extras, tmp_path):
    PageRun(tmp_path, extras).page(path)


def block(language, text, **fields):
    return Block(language, text, **({"title": None, "line": 1} | fields))


def test_a_wrong_output_fails(tmp_path):
    run = PageRun(tmp_path)
    run.block(block("text", "1\n", title="a.txt"), "page")
    run.block(block("sh", "cat a.txt\nfalse  # exit code 1\n"), "page")
    run.block(block("text", "1\n"), "page")
    with pytest.raises(AssertionError, match="'2' is not printed"):
        run.block(block("text", "2\n"), "page")


@pytest.mark.parametrize("line", ["false", "true  # exit code 1"])
def test_a_wrong_exit_code_fails(tmp_path, line):
    with pytest.raises(AssertionError, match="exit code"):
        PageRun(tmp_path).command(line)


def test_a_block_that_cannot_be_run_fails(tmp_path):
    with pytest.raises(AssertionError, match="a block of yaml"):
        PageRun(tmp_path).block(block("yaml", "a: 1\n"), "page")


@pytest.mark.parametrize(
    ("expected", "missing"),
    [("a … c\n", None), ("a b c\nlast\n", None), ("last\na b c\n", "a b c"), ("a b\n", "a b"), ("…\nlast\n", None)],
)
def test_lines_are_found_in_order(expected, missing):
    assert first_missing(expected, "first\na  b c\nmore\nlast\n") == missing
