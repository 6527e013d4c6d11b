/* Two passes over a pair of float32 blocks. Semantics are at the head of metrics.c. */
#ifndef DUMPSIM_METRICS_H
#define DUMPSIM_METRICS_H

#include <stdint.h>

/* One side of a pair; deviations are squares around the mean of the block. */
typedef struct {
    double mean, deviations, squares, low, high;
} dm_side;

typedef struct {
    dm_side own, golden;
    double products, absolute, absolute_max, squares, relative, relative_max;
} dm_moments;

/* The first pass over n > 0 elements. */
void dm_measure(dm_moments *out, const float *own, const float *golden, int64_t n, int level);

/* The second pass: sums of x, of y and of x ln(x / y), each element scaled to low..high of its side. */
void dm_diverge(double out[3], const float *own, const float *golden, int64_t n, const double range[4], int level);

#endif
