"""Every stable code that an error of the package can carry is explained."""

import re
from pathlib import Path

import pytest

import dumpsim
from dumpsim.core.codes import MEANINGS
from dumpsim.core.errors import BadInputError
from dumpsim.modes.glossary import explain


def test_every_code_in_the_source_is_explained():
    sources = Path(dumpsim.__file__).parent.rglob("*.py")
    codes = {code for path in sources for code in re.findall(r"DS-[A-Z]+-\d{3}", path.read_text(encoding="utf-8"))}
    assert len(codes) > 100
    assert {code: bool(explain(code)[0].text) for code in sorted(codes)} == dict.fromkeys(sorted(codes), True)


def test_every_code_that_is_explained_is_carried_by_an_error():
    sources = [path for path in Path(dumpsim.__file__).parent.rglob("*.py") if path.name != "codes.py"]
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    assert [code for code in MEANINGS if code not in text] == []


def test_an_unknown_code_is_refused():
    with pytest.raises(BadInputError, match="nothing is known"):
        explain("DS-NOT-001")
