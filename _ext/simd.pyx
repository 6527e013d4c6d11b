# What is C here: the question to the CPU. What is Python: names of levels and the environment variable
# (dumpsim.tensor.simd).
"""Which SIMD levels this CPU has."""

from dumpsim._ext.common cimport ds_cpu_level


def detected():
    """Number of the highest level that this CPU has: 0 baseline, 1 avx2, 2 avx512."""
    return ds_cpu_level()
