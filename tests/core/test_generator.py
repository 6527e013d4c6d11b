"""Seeds of kernels: Philox-4x32-10 against the known answers of its authors, and both seeds of an operator."""

import pytest

from dumpsim.core.generator import _philox, mixed_seed

ALL = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [  # Random123, kat_vectors
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((ALL,) * 4, (ALL,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)  # fmt: skip
def test_philox_gives_the_known_answers(counter, key, answer):
    assert _philox(counter, key) == answer


def test_every_bit_of_both_seeds_counts():
    bits = [1 << bit for bit in range(64)]
    found = {mixed_seed(0, 0), *(mixed_seed(bit, 0) for bit in bits), *(mixed_seed(0, bit) for bit in bits)}
    assert len(found) == 129
