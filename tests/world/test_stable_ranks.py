"""Dump trees of split networks stay as they are, see test_stable_trees.py: names, layouts and times of all ranks.

``python tests/world/test_stable_ranks.py`` records them again; the changelog notes such a change.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

import test_gradient_accumulation as accumulated  # noqa: E402
import test_sliced_dumps as sliced  # noqa: E402
from stabletrees import digests  # noqa: E402

import dumpsim.frontends.mindspore as ms  # noqa: E402
from dumpsim.world.context import current  # noqa: E402

RECORD = Path(__file__).parents[2] / "fixtures" / "dump" / "stable_ranks.json"
PLACES = (("Ascend", "O0"), ("Ascend", "O2"), ("GPU", "O0"))


def trained(name: str, target: str, level: str) -> None:
    """Two steps of one of the networks that accumulate gradients."""
    ms.set_context(jit_config={"jit_level": level})
    ms.set_device(target, current().rank)
    first, second, parts, given = accumulated.CASES[name]
    accumulated.train((first, second), parts, **{"dataset_strategy": "full_batch", **given})


def cases() -> dict[str, Callable[[], Any]]:
    """What the ranks of each case run."""
    found: dict[str, Callable[[], Any]] = {}
    for at, (target, level) in enumerate(PLACES):
        for mode in ("semi_auto_parallel", "stand_alone"):
            for up in (((2, 1), (1, 2)), ((1, 4), (4, 1)), ((2, 2), (2, 2))):
                found[f"{mode} {target} {level} {up}"] = sliced.step(mode, target, level, up=up)
        for number, name in enumerate(accumulated.CASES):
            if number % len(PLACES) == at:
                found[f"{name} {target} {level}"] = partial(trained, name, target, level)
    return found


CASES = cases()


def found_in(place: Path, case: str) -> dict[str, str]:
    """Digests of the files of all ranks."""
    sliced.run(place, CASES[case], sliced.RANKS, "seed" if " O2" in case else "2.10")  # 2.10 has no O2
    return digests(sorted(path for path in (place / "dump").rglob("*") if path.is_file()), place)


@pytest.mark.parametrize("case", CASES)
def test_trees_of_ranks_stay_as_they_are(tmp_path, case):
    assert found_in(tmp_path / "run", case) == json.loads(RECORD.read_text("utf-8"))[case]


def record() -> None:
    """Write the digests of all cases."""
    found = {}
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            found[case] = found_in(Path(os.path.realpath(folder)) / "run", case)
    RECORD.write_text(json.dumps(found, indent=0) + "\n")


if __name__ == "__main__":
    record()
