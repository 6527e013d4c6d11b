"""C declarations that the compiled modules share."""

from libc.stdint cimport int64_t, uint64_t


cdef extern from "dumpsim_ext.h" nogil:
    int DS_BASELINE, DS_AVX2, DS_AVX512
    int ds_cpu_level()


cdef extern from "stats.h" nogil:
    int DS_CHUNK, DS_DTYPES

    ctypedef struct ds_stats:
        double sum, sumsq, max, min
        int64_t count, negative, zero, nan, positive_inf, negative_inf

    ctypedef struct ds_tree:
        uint64_t leaves

    int ds_itemsize(int dtype)
    ds_stats ds_tree_root(const ds_tree *tree)
    void ds_measure(ds_tree *tree, const void *data, int64_t n, int dtype, int level)
    uint64_t ds_read_words(const void *data, int64_t words, int level)
