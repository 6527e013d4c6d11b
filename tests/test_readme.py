"""What other things read in the README; its code is run by tests/docs/test_pages.py."""

import re
from pathlib import Path

from dumpsim.modes.support import markdown

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


def test_the_setup_is_two_commands():
    marked = README.partition("<!-- commands -->\n")[2].partition("<!-- end of commands -->")[0]
    body = re.search(r"```sh\n(.*?)```\n\Z", marked, re.DOTALL)
    assert body is not None
    assert len(body.group(1).splitlines()) == 2


def test_the_support_table_is_that_of_the_profiles():
    shown = README.partition("<!-- support -->\n")[2].partition("<!-- end of support -->")[0]
    assert shown.strip() == markdown().strip()
