/* Strided copies of elements of 1, 2, 4 or 8 bytes: the one kernel behind every device layout. */
#ifndef DUMPSIM_LAYOUT_H
#define DUMPSIM_LAYOUT_H

#include "dumpsim_ext.h"

enum { DS_MAX_DIMS = 16, DS_MAX_LOOPS = DS_MAX_DIMS + 4 };

/* One axis of a copy: extent, and byte strides in the destination and in the source. */
typedef struct {
    int64_t n, d, s;
} ds_dim;

/* A loop over tiles: the inner axis that it cuts (or -1), extent, tile, byte strides of one element of that axis. */
typedef struct {
    int axis;
    int64_t n, tile, d, s, count;
} ds_loop;

enum { DS_I, DS_J, DS_K, DS_L, DS_AXES };
enum { DS_COPY, DS_TRANSPOSE };

/* A planned copy: `loops` from the outermost to the innermost; one unit is one pass through all of them.
 *
 * DS_TRANSPOSE  source is contiguous along I, destination along J; K repeats the block.
 *               L, if there is one, continues the destination's rows after the block, like a longer I.
 * DS_COPY       contiguous runs, whose bytes are axis K, tiled along I and J.                                */
typedef struct {
    int kind, esize, level, stream, ahead, nloops;
    ds_dim axis[DS_AXES];
    ds_loop loop[DS_MAX_LOOPS];
    int64_t units, unit_bytes;
} ds_job;

/* Plan a copy of `ndim` axes; returns 0, or -1 if there are too many axes or the element size is unknown. */
int ds_layout_plan(ds_job *job, const ds_dim *dim, int ndim, int esize, int level, int stream);

/* Run units begin <= u < end. Units write disjoint bytes, so that ranges may run on different threads. */
void ds_layout_run(const ds_job *job, char *dst, const char *src, int64_t begin, int64_t end);

#endif
