/* One pass of statistics over contiguous, native-endian elements. Semantics are at the head of stats.c. */
#ifndef DUMPSIM_STATS_H
#define DUMPSIM_STATS_H

#include <stdint.h>

#define DS_CHUNK 65536 /* elements of one leaf of the merge tree */

enum {
    DS_BOOL,
    DS_INT8,
    DS_UINT8,
    DS_INT16,
    DS_UINT16,
    DS_INT32,
    DS_UINT32,
    DS_INT64,
    DS_UINT64,
    DS_FLOAT16,
    DS_BFLOAT16,
    DS_FLOAT32,
    DS_FLOAT64,
    DS_DTYPES
};

/* The mergeable result; positive = count - nan - negative - zero. Ten words, no padding. */
typedef struct {
    double sum, sumsq, max, min;
    int64_t count, negative, zero, nan, positive_inf, negative_inf;
} ds_stats;

/* The merge tree over leaves that arrive in order: a binary counter of finished subtrees. */
typedef struct {
    uint64_t leaves;
    ds_stats node[64];
} ds_tree;

int ds_itemsize(int dtype);
ds_stats ds_empty(void);
ds_stats ds_merge(ds_stats left, ds_stats right);
void ds_tree_push(ds_tree *tree, ds_stats leaf);
ds_stats ds_tree_root(const ds_tree *tree);

/* Pushes the chunks of `n` elements; only the last call on a tree may end inside a chunk. */
void ds_measure(ds_tree *tree, const void *data, int64_t n, int dtype, int level);

/* OR of all 8-byte words, as fast as one core reads: the reference of the benchmarks. */
uint64_t ds_read_words(const void *data, int64_t words, int level);

#endif
