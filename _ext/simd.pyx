# What is C here: the detection of CPU features. What is Python: names of levels and the environment variable
# (dumpsim.tensor.simd).
"""The SIMD levels of this CPU."""

from dumpsim._ext.common cimport ds_cpu_level


def detected():
    """Return the highest level that this CPU has: 0 baseline, 1 avx2, 2 avx512."""
    return ds_cpu_level()
