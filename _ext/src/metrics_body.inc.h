/* The loops of one level; metrics.c includes this once per level with
 *   LEVEL(name)  the level's name of a function
 *   TARGET       its target attribute */

/* Runs BODY for i, l over whole rows of lanes, then over the rest. */
#define ROWS(BODY)                                                                                                     \
    do {                                                                                                               \
        int64_t row = 0;                                                                                               \
        for (; row + LANES <= n; row += LANES)                                                                         \
            for (int l = 0; l < LANES; l++) {                                                                          \
                const int64_t i = row + l;                                                                             \
                BODY                                                                                                   \
            }                                                                                                          \
        for (int l = 0; row + l < n; l++) {                                                                            \
            const int64_t i = row + l;                                                                                 \
            BODY                                                                                                       \
        }                                                                                                              \
    } while (0)

/* Extrema of floats; NaN is ignored. */
TARGET static void LEVEL(extrema)(float *low, float *high, const float *restrict x, int64_t n)
{
    float lows[LANES], highs[LANES];
    for (int l = 0; l < LANES; l++) {
        lows[l] = INFINITY;
        highs[l] = -INFINITY;
    }
    ROWS({
        lows[l] = x[i] < lows[l] ? x[i] : lows[l];
        highs[l] = x[i] > highs[l] ? x[i] : highs[l];
    });
    for (int l = 0; l < LANES; l++) {
        *low = lows[l] < *low ? lows[l] : *low;
        *high = highs[l] > *high ? highs[l] : *high;
    }
}

TARGET static void LEVEL(side)(dm_side *out, const float *restrict x, int64_t n)
{
    double sum[LANES] = {0}, squares[LANES] = {0}, deviations[LANES] = {0};
    float low = INFINITY, high = -INFINITY;
    LEVEL(extrema)(&low, &high, x, n);
    ROWS({
        const double v = x[i];
        sum[l] += v;
        squares[l] += v * v;
    });
    out->mean = lane_sum(sum) / (double)n;
    out->squares = lane_sum(squares);
    out->low = out->squares != out->squares ? (double)NAN : low;
    out->high = out->squares != out->squares ? (double)NAN : high;
    const double mean = out->mean;
    ROWS({
        const double v = (double)x[i] - mean;
        deviations[l] += v * v;
    });
    out->deviations = lane_sum(deviations);
}

TARGET static void LEVEL(compare)(float *restrict gap, float *restrict ratio, const float *restrict a,
                                  const float *restrict b, int n)
{
    for (int i = 0; i < n; i++)
        gap[i] = fabsf(a[i] - b[i]);
    for (int i = 0; i < n; i++) {
        const float r = fabsf(a[i] / b[i] - 1.0f);
        ratio[i] = fabsf(b[i]) > EPS64F ? r : 0.0f;
    }
}

TARGET static void LEVEL(measure)(dm_moments *out, const float *restrict a, const float *restrict b, int64_t total)
{
    double products[LANES] = {0}, absolute[LANES] = {0}, squares[LANES] = {0}, relative[LANES] = {0};
    float gap[PIECE], ratio[PIECE], low = INFINITY, gap_max = 0, ratio_max = 0;
    LEVEL(side)(&out->own, a, total);
    LEVEL(side)(&out->golden, b, total);
    for (int64_t start = 0; start < total; start += PIECE) {
        const int n = (int)(total - start < PIECE ? total - start : PIECE);
        const float *x = a + start, *y = b + start;
        LEVEL(compare)(gap, ratio, x, y, n);
        ROWS({ products[l] += (double)x[i] * (double)y[i]; });
        ROWS({
            absolute[l] += gap[i];
            squares[l] += (double)gap[i] * (double)gap[i];
        });
        ROWS({ relative[l] += ratio[i]; });
        LEVEL(extrema)(&low, &gap_max, gap, n);
        LEVEL(extrema)(&low, &ratio_max, ratio, n);
    }
    out->products = lane_sum(products);
    out->absolute = lane_sum(absolute);
    out->squares = lane_sum(squares);
    out->relative = lane_sum(relative);
    /* no element is negative, so a sum is NaN only if an element is */
    out->absolute_max = out->absolute != out->absolute ? (double)NAN : gap_max;
    out->relative_max = out->relative != out->relative ? (double)NAN : ratio_max;
}

TARGET static void LEVEL(scale)(double *restrict to, const float *restrict from, int n, double low, double by)
{
    for (int i = 0; i < n; i++) {
        const double x = ((double)from[i] - low) / by;
        to[i] = x < EPS32 ? EPS32 : x; /* NaN stays */
    }
}

TARGET static void LEVEL(weigh)(double *restrict to, const double *restrict x, const double *restrict y, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = x[i] * logarithm(x[i] / y[i]);
}

TARGET static void LEVEL(diverge)(double *out, const float *restrict a, const float *restrict b, int64_t total,
                                  const double *range)
{
    double sum_x[LANES] = {0}, sum_y[LANES] = {0}, mixed[LANES] = {0};
    double x[PIECE], y[PIECE], z[PIECE];
    const int same_a = range[0] == range[1], same_b = range[2] == range[3];
    for (int64_t start = 0; start < total; start += PIECE) {
        const int n = (int)(total - start < PIECE ? total - start : PIECE);
        LEVEL(scale)(x, a + start, n, same_a ? 0 : range[0], same_a ? 1 : range[1] - range[0]);
        LEVEL(scale)(y, b + start, n, same_b ? 0 : range[2], same_b ? 1 : range[3] - range[2]);
        LEVEL(weigh)(z, x, y, n);
        ROWS({
            sum_x[l] += x[i];
            sum_y[l] += y[i];
            mixed[l] += z[i];
        });
    }
    out[0] = lane_sum(sum_x);
    out[1] = lane_sum(sum_y);
    out[2] = lane_sum(mixed);
}

#undef ROWS
