"""Which messages ``mindspore.log`` prints, and with which level. [spec observed 1.11]"""

import re

import pytest

from dumpsim.frontends.mindspore import log

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


@pytest.mark.parametrize("lowest", range(5))
def test_messages_of_the_lowest_level_and_above_are_printed(monkeypatch, capsys, lowest):
    monkeypatch.setenv("GLOG_v", str(lowest))
    for name in LEVELS:
        getattr(log, name.lower())("%s of %d%%", name, 7)
        getattr(log, name.lower())(f"{name} as it is, 100%")
    lines = capsys.readouterr().err.splitlines()
    pattern = re.compile(
        r"\[(\w+)\] ME\(\d+:\d+,MainProcess\):[-\d]+:[:\d]+\.\d{3}\.000 \[mindspore/test_log\.py:(\d+)\] (.*)"
    )
    found = [pattern.fullmatch(line).groups() for line in lines]
    assert [level for level, _, _ in found] == [level for level in LEVELS[lowest:] for _ in range(2)]
    assert [text for _, _, text in found] == [
        text for level in LEVELS[lowest:] for text in (f"{level} of 7%", f"{level} as it is, 100%")
    ]
    assert len({line for _, line, _ in found}) == 2


@pytest.mark.parametrize("lowest", range(5))
def test_warnings_of_the_library_below_are_warnings(monkeypatch, capsys, lowest):
    monkeypatch.setenv("GLOG_v", str(lowest))
    log.vendor_warning("a/b.cc:12", "Run", "slow")
    error = capsys.readouterr().err
    assert bool(error) == (lowest <= 2)
    assert not error or (error.startswith("[WARNING] ") and error.endswith("[a/b.cc:12] Run] slow\n"))


@pytest.mark.parametrize(("given", "level"), [("", "2"), ("5", "2"), ("-1", "2"), ("01", "2"), ("3", "3")])
def test_a_level_that_is_none_counts_as_that_of_warnings(monkeypatch, given, level):
    monkeypatch.setenv("GLOG_v", given)
    assert log.get_level() == level
