"""Clocks: what they count, and that no stamp comes twice."""

import time

from dumpsim.core.clock import START_NS, VirtualClock, WallClock


def test_the_virtual_clock_moves_only_when_it_is_advanced():
    clock = VirtualClock()
    assert clock.now_ns == START_NS == 1_700_000_000_000_000_000  # [design]
    assert [clock.stamp_us() for _ in range(3)] == [1_700_000_000_000_000 + n for n in range(3)]
    assert clock.now_ns == START_NS
    clock.advance(2_999)  # 2.999 us: still before the stamps that were given
    assert (clock.now_ns, clock.stamp_us()) == (START_NS + 2_999, 1_700_000_000_000_003)
    clock.advance(10_000)  # 12.999 us
    assert [clock.stamp_us() for _ in range(2)] == [1_700_000_000_000_012, 1_700_000_000_000_013]


def test_a_tree_is_continued_after_its_last_stamp():
    clock = VirtualClock()
    clock.resume_after(1_700_000_000_000_050)
    assert clock.now_ns == 1_700_000_000_000_051_000
    assert clock.stamp_us() == 1_700_000_000_000_051
    clock.resume_after(1_700_000_000_000_020)  # an older tree changes nothing
    assert (clock.now_ns, clock.stamp_us()) == (1_700_000_000_000_051_000, 1_700_000_000_000_052)


def test_the_wall_clock_is_the_machines(monkeypatch):
    monkeypatch.setattr(time, "time_ns", lambda: 5_000_999)
    clock = WallClock()
    clock.advance(10**9)
    assert clock.now_ns == 5_000_999
    assert [clock.stamp_us() for _ in range(2)] == [5_000, 5_001]
    monkeypatch.setattr(time, "time_ns", lambda: 7_000_000)
    assert clock.stamp_us() == 7_000
    monkeypatch.setattr(time, "time_ns", lambda: 6_000_000)  # set back
    assert clock.stamp_us() == 7_001
    clock.resume_after(8_000)
    assert clock.stamp_us() == 8_001
    clock.resume_after(1)
    assert clock.stamp_us() == 8_002
    monkeypatch.setattr(time, "time_ns", lambda: 0)  # a machine that has just learnt of time
    assert WallClock().stamp_us() == VirtualClock(now_ns=0).stamp_us() == 1
