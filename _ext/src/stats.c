/* Statistics in one pass [spec mindspore 4.2].
 *
 *   max, min   as std::max and std::min over the elements in order, starting at -inf and +inf: the first of equal
 *              values stays, so -0 and +0 keep their order; one NaN makes both NaN.
 *   sum, sumsq in double, over 16 lanes: element i of a chunk goes to lane i % 16, in order; lanes are added as a tree
 *              (l and l + 8, l + 4, l + 2, l + 1).
 *   counts     negative: x < 0 (with -inf); zero: x == 0 (both zeros); nan; infinities by sign.
 *   NaN        every NaN result is the same positive quiet NaN, so that bits do not depend on operand order.
 *
 * An array is cut into chunks of DS_CHUNK elements from its start. Chunks are the leaves of the tree
 *   T(1) = leaf, T(n) = merge(T(k), T(n - k)) with k the largest power of two below n,
 * so a block of a power of two of chunks at a multiple of its size is always one node: threads measure such blocks and
 * change no bit. Products of float16, bfloat16 and float32 are exact in double, so there a fused multiply-add is the
 * same as a multiplication and an addition. Chunks whose sumsq is finite contain neither NaN nor infinity; only others
 * are read once more, from cache, to count them.
 *
 * The caller guarantees that the data are aligned to their element, in native byte order and that a bool is one byte,
 * of which any bit means true. */
#include <math.h>
#include <string.h>

#include "stats.h"
#include "dumpsim_ext.h"

#if DS_X86_LEVELS
#include <immintrin.h>
#endif

#define LANES 16
#define BLOCK 2048 /* elements per block of loops with two passes, so that the second one reads from cache */

typedef struct {
    double sum[LANES], sumsq[LANES];
    double max, min;
    int64_t negative, zero;
} lanes_t;

static const int ITEMSIZE[DS_DTYPES] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};

int ds_itemsize(int dtype) { return ITEMSIZE[dtype]; }

static double canonical(double x) { return x != x ? (double)NAN : x; }

ds_stats ds_empty(void)
{
    ds_stats s = {0.0, 0.0, -INFINITY, INFINITY, 0, 0, 0, 0, 0, 0};
    return s;
}

ds_stats ds_merge(ds_stats a, ds_stats b)
{
    ds_stats s;
    s.sum = canonical(a.sum + b.sum);
    s.sumsq = canonical(a.sumsq + b.sumsq);
    s.nan = a.nan + b.nan;
    s.max = s.nan ? (double)NAN : a.max < b.max ? b.max : a.max;
    s.min = s.nan ? (double)NAN : b.min < a.min ? b.min : a.min;
    s.count = a.count + b.count;
    s.negative = a.negative + b.negative;
    s.zero = a.zero + b.zero;
    s.positive_inf = a.positive_inf + b.positive_inf;
    s.negative_inf = a.negative_inf + b.negative_inf;
    return s;
}

void ds_tree_push(ds_tree *tree, ds_stats leaf)
{
    int level = 0;
    for (uint64_t bits = tree->leaves++; bits & 1; bits >>= 1)
        leaf = ds_merge(tree->node[level++], leaf);
    tree->node[level] = leaf;
}

ds_stats ds_tree_root(const ds_tree *tree)
{
    ds_stats root = ds_empty();
    int level = 0, any = 0;
    for (uint64_t bits = tree->leaves; bits; bits >>= 1, level++)
        if (bits & 1) {
            root = any ? ds_merge(tree->node[level], root) : tree->node[level];
            any = 1;
        }
    return root;
}

/* ---- float16 and bfloat16 as float, exactly, without conversion instructions ---- */

static inline float bits_to_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline float bf16_to_float(uint16_t h) { return bits_to_float((uint32_t)h << 16); }

static inline float f16_to_float(uint16_t h)
{
    /* masks, not branches: gcc vectorises this */
    const int32_t body = (int32_t)(h & 0x7fffu) << 13;
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, step = 112u << 23; /* 112: difference of the biases */
    const uint32_t subnormal = 0u - (uint32_t)(body < 1 << 23), special = 0u - (uint32_t)(body >= 31 << 23);
    const float tiny = bits_to_float((uint32_t)body + (113u << 23)) - bits_to_float(113u << 23); /* exact */
    uint32_t tiny_bits;
    memcpy(&tiny_bits, &tiny, sizeof tiny_bits);
    const uint32_t normal = (uint32_t)body + step + (special & step);
    return bits_to_float((subnormal & tiny_bits) | (~subnormal & normal) | sign);
}

/* (double)x without a branch: both halves and the product are exact, the sum is rounded once */
static inline double u64_to_double(uint64_t x)
{
    return (double)(int64_t)(x >> 32) * 4294967296.0 + (double)(int64_t)(x & 0xffffffffu);
}

/* ---- after a chunk: rare second passes, in scalar code that is the same at every level ---- */

#define LOAD(T, p, i) (memcpy(&v, (const char *)(p) + (i) * (int64_t)sizeof(T), sizeof(T)), v)

typedef struct {
    int64_t negative, zero, nan, positive_inf, negative_inf;
} counts_t;

#define DEFINE_LOOK(NAME, U, ABS, INF)                                                                                 \
    /* counts from the bits of every element */                                                                        \
    static counts_t count_##NAME(const void *data, int64_t n)                                                          \
    {                                                                                                                  \
        counts_t c = {0, 0, 0, 0, 0};                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            U v;                                                                                                       \
            const U u = LOAD(U, data, i), a = (U)(u & (ABS));                                                          \
            const int nan = a > (INF), inf = a == (INF), sign = u != a, zero = a == 0;                                 \
            c.nan += nan;                                                                                              \
            c.zero += zero;                                                                                            \
            c.negative += sign & !zero & !nan;                                                                         \
            c.positive_inf += inf & !sign;                                                                             \
            c.negative_inf += inf & sign;                                                                              \
        }                                                                                                              \
        return c;                                                                                                      \
    }                                                                                                                  \
    /* the first zero of either sign: the one that std::max and std::min keep */                                       \
    static double zero_##NAME(const void *data, int64_t n)                                                             \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            U v;                                                                                                       \
            const U u = LOAD(U, data, i);                                                                              \
            if (!(u & (ABS)))                                                                                          \
                return u ? -0.0 : 0.0;                                                                                 \
        }                                                                                                              \
        return 0.0;                                                                                                    \
    }

DEFINE_LOOK(f16, uint16_t, 0x7fffu, 0x7c00u)
DEFINE_LOOK(bf16, uint16_t, 0x7fffu, 0x7f80u)
DEFINE_LOOK(f32, uint32_t, 0x7fffffffu, 0x7f800000u)
DEFINE_LOOK(f64, uint64_t, 0x7fffffffffffffffu, 0x7ff0000000000000u)

static ds_stats finish(const lanes_t *lanes, const void *data, int64_t n, int dtype)
{
    ds_stats s = ds_empty();
    double sum[LANES], sumsq[LANES];
    memcpy(sum, lanes->sum, sizeof sum);
    memcpy(sumsq, lanes->sumsq, sizeof sumsq);
    for (int half = LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++) {
            sum[l] += sum[l + half];
            sumsq[l] += sumsq[l + half];
        }
    s.sum = canonical(sum[0]);
    s.sumsq = canonical(sumsq[0]);
    s.max = lanes->max;
    s.min = lanes->min;
    s.count = n;
    s.negative = lanes->negative;
    s.zero = lanes->zero;
    if (dtype < DS_FLOAT16)
        return s;
    if (!isfinite(s.sumsq)) {
        const counts_t c = dtype == DS_FLOAT16    ? count_f16(data, n)
                           : dtype == DS_BFLOAT16 ? count_bf16(data, n)
                           : dtype == DS_FLOAT32  ? count_f32(data, n)
                                                  : count_f64(data, n);
        s.negative = c.negative;
        s.zero = c.zero;
        s.nan = c.nan;
        s.positive_inf = c.positive_inf;
        s.negative_inf = c.negative_inf;
        if (s.nan) {
            s.max = s.min = (double)NAN;
            return s;
        }
    }
    if (s.zero && (s.max == 0 || s.min == 0)) {
        const double first = dtype == DS_FLOAT16    ? zero_f16(data, n)
                             : dtype == DS_BFLOAT16 ? zero_bf16(data, n)
                             : dtype == DS_FLOAT32  ? zero_f32(data, n)
                                                    : zero_f64(data, n);
        s.max = s.max == 0 ? first : s.max;
        s.min = s.min == 0 ? first : s.min;
    }
    return s;
}

/* ---- the lane loops, once per level ---- */

#define LEVEL(name) name##_baseline
#define TARGET
#define VECTOR 0
#include "stats_body.inc.h"
#undef LEVEL
#undef TARGET
#undef VECTOR

#if DS_X86_LEVELS
#define LEVEL(name) name##_avx2
#define TARGET DS_TARGET_AVX2
#define VECTOR 256
#include "stats_body.inc.h"
#undef LEVEL
#undef TARGET
#undef VECTOR

#define LEVEL(name) name##_avx512
#define TARGET DS_TARGET_AVX512
#define VECTOR 512
#include "stats_body.inc.h"
#undef LEVEL
#undef TARGET
#undef VECTOR
#endif

typedef void (*chunk_fn)(lanes_t *, const void *, int64_t, int);

static chunk_fn chunk_of(int level)
{
    const int has = ds_cpu_level();
    level = level < has ? level : has;
#if DS_X86_LEVELS
    if (level == DS_AVX512)
        return chunk_avx512;
    if (level == DS_AVX2)
        return chunk_avx2;
#endif
    return chunk_baseline;
}

void ds_measure(ds_tree *tree, const void *data, int64_t n, int dtype, int level)
{
    const chunk_fn chunk = chunk_of(level);
    const char *p = data;
    const int64_t size = ITEMSIZE[dtype];
#if DS_X86_LEVELS
    /* a library built with -ffast-math may have set flush-to-zero for this thread */
    const unsigned int mxcsr = _mm_getcsr();
    _mm_setcsr(0x1f80);
#endif
    for (int64_t i = 0; i < n; i += DS_CHUNK) {
        const int64_t m = n - i < DS_CHUNK ? n - i : DS_CHUNK;
        lanes_t lanes = {.max = -INFINITY, .min = INFINITY};
        chunk(&lanes, p + i * size, m, dtype);
        ds_tree_push(tree, finish(&lanes, p + i * size, m, dtype));
    }
#if DS_X86_LEVELS
    _mm_setcsr(mxcsr);
#endif
}

uint64_t ds_read_words(const void *data, int64_t words, int level)
{
#if DS_X86_LEVELS
    const int has = ds_cpu_level();
    level = level < has ? level : has;
    if (level == DS_AVX512)
        return words_avx512(data, words);
    if (level == DS_AVX2)
        return words_avx2(data, words);
#endif
    (void)level;
    return words_baseline(data, words);
}
