/* The measures of a pair of tensors [spec ge 4.5], block by block.
 *
 *   lanes      element i of a block goes to lane i % 16, in order; lanes are added as a tree (l and l + 8, l + 4, l + 2,
 *              l + 1). The levels differ in width only, so they give the same bits.
 *   elements   differences and ratios are taken in float32, as the vendor's tool does, sums in double.
 *   extrema    NaN if any element is NaN.
 *   ratio      |a / b - 1| where |b| > 2^-52, else 0.
 *   deviations around the block's own mean, in a loop of their own, so that nothing cancels.
 *   logarithm  by 2 atanh((m - 1) / (m + 1)) and its series, within 2 ulp: libm's differ from CPU to CPU.
 *
 * A block stays in cache, so each loop over it keeps few accumulators rather than one loop many.
 * The caller guarantees native, aligned, contiguous floats and n > 0. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math") /* comparisons may become masks; no value depends on it */
#endif

#include <math.h>
#include <string.h>

#include "dumpsim_ext.h"
#include "metrics.h"

#if DS_X86_LEVELS
#include <immintrin.h>
#endif

#define LANES 16
#define PIECE 512 /* elements whose intermediate values lie on the stack; whole rows of lanes */
#define EPS32 0x1p-23
#define EPS64F 0x1p-52f

static double lane_sum(const double *lanes)
{
    double s[LANES];
    memcpy(s, lanes, sizeof s);
    for (int half = LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            s[l] += s[l + half];
    return s[0];
}

/* ln z for z > 0 within double's normal range; infinities and NaN are returned unchanged */
static inline double logarithm(double z)
{
    uint64_t u, e;
    double m, k;
    memcpy(&u, &z, sizeof u);
    e = (u >> 52) | 0x4330000000000000u; /* 2^52 + exponent: integers to double without a conversion */
    memcpy(&k, &e, sizeof k);
    k -= 0x1p52 + 1023;
    u = (u & 0x000fffffffffffffu) | 0x3ff0000000000000u;
    memcpy(&m, &u, sizeof m);
    const double big = m > 0x1.6a09e667f3bcdp0 ? 1.0 : 0.0; /* sqrt 2 */
    m *= 1.0 - 0.5 * big;
    k += big;
    const double s = (m - 1.0) / (m + 1.0), q = s * s;
    double p = 1.0 / 21;
    p = p * q + 1.0 / 19;
    p = p * q + 1.0 / 17;
    p = p * q + 1.0 / 15;
    p = p * q + 1.0 / 13;
    p = p * q + 1.0 / 11;
    p = p * q + 1.0 / 9;
    p = p * q + 1.0 / 7;
    p = p * q + 1.0 / 5;
    p = p * q + 1.0 / 3;
    const double r = k * 0x1.62e42feep-1 + (k * 0x1.a39ef35793c76p-33 + (2 * s + 2 * s * q * p));
    return z < INFINITY ? r : z;
}

#define LEVEL(name) name##_baseline
#define TARGET
#include "metrics_body.inc.h"
#undef LEVEL
#undef TARGET

#if DS_X86_LEVELS
#define LEVEL(name) name##_avx2
#define TARGET DS_TARGET_AVX2
#include "metrics_body.inc.h"
#undef LEVEL
#undef TARGET

#define LEVEL(name) name##_avx512
#define TARGET DS_TARGET_AVX512
#include "metrics_body.inc.h"
#undef LEVEL
#undef TARGET
#endif

static int usable(int level)
{
    const int has = ds_cpu_level();
    return level < has ? level : has;
}

/* a library built with -ffast-math may have set flush-to-zero for this thread */
#if DS_X86_LEVELS
#define STRICT const unsigned int mxcsr = _mm_getcsr(); _mm_setcsr(0x1f80);
#define RESTORE _mm_setcsr(mxcsr);
#else
#define STRICT
#define RESTORE
#endif

void dm_measure(dm_moments *out, const float *own, const float *golden, int64_t n, int level)
{
    STRICT
    switch (usable(level)) {
#if DS_X86_LEVELS
    case DS_AVX512: measure_avx512(out, own, golden, n); break;
    case DS_AVX2: measure_avx2(out, own, golden, n); break;
#endif
    default: measure_baseline(out, own, golden, n); break;
    }
    RESTORE
}

void dm_diverge(double out[3], const float *own, const float *golden, int64_t n, const double range[4], int level)
{
    STRICT
    switch (usable(level)) {
#if DS_X86_LEVELS
    case DS_AVX512: diverge_avx512(out, own, golden, n, range); break;
    case DS_AVX2: diverge_avx2(out, own, golden, n, range); break;
#endif
    default: diverge_baseline(out, own, golden, n, range); break;
    }
    RESTORE
}
