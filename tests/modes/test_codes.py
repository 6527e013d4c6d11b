"""Every stable code that an error of the package can carry is explained."""

import re
from pathlib import Path

import pytest

import dumpsim
from dumpsim.core.codes import MEANINGS, RUNTIME_CODES
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


RUNTIME = {  # [spec parallel 4.5]: a word of what the code means
    107002: "context", 107003: "stream", 107019: "wait", 107020: "task took longer", 107022: "aborted",
    207001: "host memory", 207003: "AI Core", 207016: "vector", 207017: "a task overflowed", 207018: "device memory",
    507000: "internal", 507002: "queue", 507010: "heartbeat", 507011: "model", 507012: "report",
    507014: "AI Core task took longer", 507015: "AI Core task failed", 507016: "AI Core task was trapped",
    507017: "AI CPU task took longer", 507018: "AI CPU task failed", 507019: "dump",
    507034: "vector core task took longer", 507035: "vector core task failed", 507036: "vector core task was trapped",
    507042: "write", 507043: "write", 507044: "write", 507045: "write", 507046: "a stream", 507047: "an event",
    507048: "FFTS+ task took longer", 507049: "FFTS+ task failed", 507050: "FFTS+ task was trapped",
    507053: "memory has a fault", 507054: "cannot correct", 507056: "link", 507057: "remote",
    507899: "driver", 507900: "AI CPU", 507904: "collective",
}  # fmt: skip


def test_every_code_of_the_runtime_is_explained():
    assert set(RUNTIME_CODES) == set(RUNTIME)
    for code, word in RUNTIME.items():
        (topic,) = explain(str(code))
        assert topic.kind == "runtime code"
        assert word.lower() in topic.text.lower()


def test_an_unknown_code_is_refused():
    with pytest.raises(BadInputError, match="unknown word"):
        explain("DS-NOT-001")
