/* The lane loops of one level; stats.c includes this once per level with
 *   LEVEL(name)  the level's name of a function
 *   TARGET       its target attribute
 *   VECTOR       0: plain C for any machine; 256, 512: width in bits of the double vectors
 * Each loop fills lanes_t from at most DS_CHUNK elements. */

/* ---- 8- and 16-bit integers: all sums are exact in integers, so no lane order matters ---- */

#define SMALL(NAME, T, SUM, SQUARE, WIDE)                                                                              \
    TARGET static void LEVEL(NAME)(lanes_t *out, const T *x, int64_t n)                                                \
    {                                                                                                                  \
        T max = x[0], min = x[0];                                                                                      \
        int64_t total = 0, total_squares = 0, negative = 0, zero = 0;                                                  \
        for (int64_t start = 0; start < n; start += BLOCK) {                                                           \
            const int m = (int)(n - start < BLOCK ? n - start : BLOCK);                                                \
            const T *b = x + start;                                                                                    \
            SUM sum = 0;                                                                                               \
            SQUARE squares = 0;                                                                                        \
            int32_t below = 0, zeros = 0;                                                                              \
            for (int i = 0; i < m; i++) {                                                                              \
                sum += b[i];                                                                                           \
                squares += (SQUARE)((WIDE)b[i] * (WIDE)b[i]);                                                          \
            }                                                                                                          \
            for (int i = 0; i < m; i++) {                                                                              \
                max = b[i] > max ? b[i] : max;                                                                         \
                min = b[i] < min ? b[i] : min;                                                                         \
            }                                                                                                          \
            for (int i = 0; i < m; i++) {                                                                              \
                below += b[i] < 0;                                                                                     \
                zeros += b[i] == 0;                                                                                    \
            }                                                                                                          \
            total += sum;                                                                                              \
            total_squares += (int64_t)squares;                                                                         \
            negative += below;                                                                                         \
            zero += zeros;                                                                                             \
        }                                                                                                              \
        out->sum[0] = (double)total;                                                                                   \
        out->sumsq[0] = (double)total_squares;                                                                         \
        out->max = max;                                                                                                \
        out->min = min;                                                                                                \
        out->negative = negative;                                                                                      \
        out->zero = zero;                                                                                              \
    }

SMALL(small_i8, int8_t, int32_t, uint32_t, int32_t)
SMALL(small_u8, uint8_t, int32_t, uint32_t, uint32_t)
SMALL(small_i16, int16_t, int32_t, int64_t, int32_t)
SMALL(small_u16, uint16_t, int32_t, uint64_t, uint32_t)
#undef SMALL

TARGET static void LEVEL(small_bool)(lanes_t *out, const uint8_t *x, int64_t n)
{
    int64_t ones = 0;
    for (int64_t start = 0; start < n; start += BLOCK) {
        const int m = (int)(n - start < BLOCK ? n - start : BLOCK);
        int32_t count = 0;
        for (int i = 0; i < m; i++)
            count += x[start + i] != 0;
        ones += count;
    }
    out->sum[0] = out->sumsq[0] = (double)ones;
    out->max = ones > 0;
    out->min = ones == n;
    out->zero = n - ones;
}

/* ---- types with a plain lane loop: two passes over each cached block ---- */

#define LANED(NAME, T, COUNT, LOW, HIGH, TO_DOUBLE)                                                                    \
    TARGET static void LEVEL(NAME##_sums)(double *restrict sum, double *restrict sumsq, const T *restrict x, int n)    \
    {                                                                                                                  \
        double s[LANES], q[LANES];                                                                                     \
        memcpy(s, sum, sizeof s);                                                                                      \
        memcpy(q, sumsq, sizeof q);                                                                                    \
        int i = 0;                                                                                                     \
        for (; i + LANES <= n; i += LANES)                                                                             \
            for (int l = 0; l < LANES; l++) {                                                                          \
                const double d = TO_DOUBLE(x[i + l]);                                                                  \
                s[l] += d;                                                                                             \
                q[l] += d * d;                                                                                         \
            }                                                                                                          \
        for (int l = 0; i + l < n; l++) {                                                                              \
            const double d = TO_DOUBLE(x[i + l]);                                                                      \
            s[l] += d;                                                                                                 \
            q[l] += d * d;                                                                                             \
        }                                                                                                              \
        memcpy(sum, s, sizeof s);                                                                                      \
        memcpy(sumsq, q, sizeof q);                                                                                    \
    }                                                                                                                  \
    TARGET static void LEVEL(NAME##_rest)(lanes_t *out, const T *restrict x, int n)                                    \
    {                                                                                                                  \
        T max[LANES], min[LANES];                                                                                      \
        COUNT below[LANES] = {0}, zeros[LANES] = {0};                                                                  \
        for (int l = 0; l < LANES; l++) {                                                                              \
            max[l] = LOW;                                                                                              \
            min[l] = HIGH;                                                                                             \
        }                                                                                                              \
        int i = 0;                                                                                                     \
        for (; i + LANES <= n; i += LANES)                                                                             \
            for (int l = 0; l < LANES; l++) {                                                                          \
                const T v = x[i + l];                                                                                  \
                max[l] = v > max[l] ? v : max[l];                                                                      \
                min[l] = v < min[l] ? v : min[l];                                                                      \
                below[l] += v < 0;                                                                                     \
                zeros[l] += v == 0;                                                                                    \
            }                                                                                                          \
        for (int l = 0; i + l < n; l++) {                                                                              \
            const T v = x[i + l];                                                                                      \
            max[l] = v > max[l] ? v : max[l];                                                                          \
            min[l] = v < min[l] ? v : min[l];                                                                          \
            below[l] += v < 0;                                                                                         \
            zeros[l] += v == 0;                                                                                        \
        }                                                                                                              \
        for (int l = 0; l < LANES && l < n; l++) {                                                                     \
            out->max = TO_DOUBLE(max[l]) > out->max ? TO_DOUBLE(max[l]) : out->max;                                    \
            out->min = TO_DOUBLE(min[l]) < out->min ? TO_DOUBLE(min[l]) : out->min;                                    \
            out->negative += (int64_t)below[l];                                                                        \
            out->zero += (int64_t)zeros[l];                                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    TARGET static void LEVEL(NAME)(lanes_t *out, const T *x, int64_t n)                                                \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i += BLOCK) {                                                                       \
            const int m = (int)(n - i < BLOCK ? n - i : BLOCK);                                                        \
            LEVEL(NAME##_sums)(out->sum, out->sumsq, x + i, m);                                                        \
            LEVEL(NAME##_rest)(out, x + i, m);                                                                         \
        }                                                                                                              \
    }

LANED(laned_u32, uint32_t, uint32_t, 0, UINT32_MAX, (double))
LANED(laned_i64, int64_t, uint64_t, INT64_MIN, INT64_MAX, (double))
LANED(laned_u64, uint64_t, uint64_t, 0, UINT64_MAX, u64_to_double)

/* ---- int32, float64, float16, bfloat16, float32 ---- */

#if VECTOR == 0

LANED(laned_i32, int32_t, uint32_t, INT32_MIN, INT32_MAX, (double))
LANED(laned_f64, double, uint64_t, -INFINITY, INFINITY, (double))
LANED(laned_f32, float, uint32_t, -INFINITY, INFINITY, (double))

#define HALF(NAME, WIDEN)                                                                                              \
    TARGET static void LEVEL(NAME)(lanes_t *out, const uint16_t *x, int64_t n)                                         \
    {                                                                                                                  \
        float wide[BLOCK];                                                                                             \
        for (int64_t i = 0; i < n; i += BLOCK) {                                                                       \
            const int m = (int)(n - i < BLOCK ? n - i : BLOCK);                                                        \
            for (int j = 0; j < m; j++)                                                                                \
                wide[j] = WIDEN(x[i + j]);                                                                             \
            LEVEL(laned_f32)(out, wide, m);                                                                            \
        }                                                                                                              \
    }

HALF(half_f16, f16_to_float)
HALF(half_bf16, bf16_to_float)
#undef HALF

#else /* vectors: sums in VD, the rest in 256 bits at either width */

#if VECTOR == 512
#define VD __m512d
#define WIDE 8
#define VD_SET _mm512_set1_pd
#define VD_STORE _mm512_storeu_pd
#define VD_ADD _mm512_add_pd
#define VD_MUL _mm512_mul_pd
#define VD_FMA _mm512_fmadd_pd
#define VD_LOAD _mm512_loadu_pd
#define I32_VD(p) _mm512_cvtepi32_pd(_mm256_loadu_si256((const __m256i *)(p)))
#else
#define VD __m256d
#define WIDE 4
#define VD_SET _mm256_set1_pd
#define VD_STORE _mm256_storeu_pd
#define VD_ADD _mm256_add_pd
#define VD_MUL _mm256_mul_pd
#define VD_FMA _mm256_fmadd_pd
#define VD_LOAD _mm256_loadu_pd
#define I32_VD(p) _mm256_cvtepi32_pd(_mm_loadu_si128((const __m128i *)(p)))
#endif

/* Sums of 16 elements at p, one in each lane. Products are exact, so the fused form rounds like an addition. PLUS is
 * one of two ways to the same sum: ADD, and FUSE, which leaves the adders to the conversions of 16-bit types at the
 * price of a register. Named variables, not arrays: gcc 12 keeps arrays of vectors in memory. */
#define ADD(s, d) VD_ADD(s, d)
#define FUSE(s, d) VD_FMA(d, VD_SET(1.0), s)
#define TAKE(PLUS, g, value)                                                                                           \
    {                                                                                                                  \
        const VD d = value;                                                                                            \
        s##g = PLUS(s##g, d);                                                                                          \
        q##g = VD_FMA(d, d, q##g);                                                                                     \
    }
/* for products that are rounded */
#define TAKE_ROUNDED(g, value)                                                                                         \
    {                                                                                                                  \
        const VD d = value;                                                                                            \
        s##g = VD_ADD(s##g, d);                                                                                        \
        q##g = VD_ADD(q##g, VD_MUL(d, d));                                                                             \
    }
#define STORE(g)                                                                                                       \
    VD_STORE(out->sum + g * WIDE, s##g);                                                                               \
    VD_STORE(out->sumsq + g * WIDE, q##g);
#if VECTOR == 512
#define DECLARE                                                                                                        \
    VD s0 = VD_SET(0.0), s1 = s0, q0 = s0, q1 = s0;
#define STORES STORE(0) STORE(1)
#define SUMS_ROUNDED(TO_VD, p) TAKE_ROUNDED(0, TO_VD(p)) TAKE_ROUNDED(1, TO_VD((p) + 8))
#define F32_HALF(p) _mm512_cvtps_pd(_mm256_loadu_ps(p))
#define SUMS_F32(p) TAKE(ADD, 0, F32_HALF(p)) TAKE(ADD, 1, F32_HALF((p) + 8))
#define F16_HALF(p) _mm512_cvtps_pd(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p))))
#define SUMS_F16(p) TAKE(FUSE, 0, F16_HALF(p)) TAKE(FUSE, 1, F16_HALF((p) + 8))
#define BF16_HALF(p)                                                                                                   \
    _mm512_cvtps_pd(_mm256_castsi256_ps(                                                                               \
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(p))), 16)))
#define SUMS_BF16(p) TAKE(FUSE, 0, BF16_HALF(p)) TAKE(FUSE, 1, BF16_HALF((p) + 8))
#else
#define DECLARE                                                                                                        \
    VD s0 = VD_SET(0.0), s1 = s0, s2 = s0, s3 = s0, q0 = s0, q1 = s0, q2 = s0, q3 = s0;
#define STORES STORE(0) STORE(1) STORE(2) STORE(3)
#define SUMS_ROUNDED(TO_VD, p)                                                                                         \
    TAKE_ROUNDED(0, TO_VD(p))                                                                                          \
    TAKE_ROUNDED(1, TO_VD((p) + 4))                                                                                    \
    TAKE_ROUNDED(2, TO_VD((p) + 8))                                                                                    \
    TAKE_ROUNDED(3, TO_VD((p) + 12))
#define F32_QUARTER(p) _mm256_cvtps_pd(_mm_loadu_ps(p))
#define SUMS_F32(p)                                                                                                    \
    TAKE(ADD, 0, F32_QUARTER(p))                                                                                       \
    TAKE(ADD, 1, F32_QUARTER((p) + 4))                                                                                 \
    TAKE(ADD, 2, F32_QUARTER((p) + 8))                                                                                 \
    TAKE(ADD, 3, F32_QUARTER((p) + 12))
#define F16_QUARTER(p) _mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)(p))))
#define SUMS_F16(p)                                                                                                    \
    TAKE(FUSE, 0, F16_QUARTER(p))                                                                                      \
    TAKE(FUSE, 1, F16_QUARTER((p) + 4))                                                                                \
    TAKE(FUSE, 2, F16_QUARTER((p) + 8))                                                                                \
    TAKE(FUSE, 3, F16_QUARTER((p) + 12))
/* a bfloat16 with 16 zero bits below it is a float */
#define BF16_LOW(u) _mm256_cvtps_pd(_mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), u)))
#define BF16_HIGH(u) _mm256_cvtps_pd(_mm_castsi128_ps(_mm_unpackhi_epi16(_mm_setzero_si128(), u)))
#define SUMS_BF16(p)                                                                                                   \
    {                                                                                                                  \
        const __m128i a = _mm_loadu_si128((const __m128i *)(p)), b = _mm_loadu_si128((const __m128i *)((p) + 8));      \
        TAKE(FUSE, 0, BF16_LOW(a))                                                                                     \
        TAKE(FUSE, 1, BF16_HIGH(a))                                                                                    \
        TAKE(FUSE, 2, BF16_LOW(b))                                                                                     \
        TAKE(FUSE, 3, BF16_HIGH(b))                                                                                    \
    }
#endif

/* one element after the last full group of 16 */
static inline void LEVEL(tail)(lanes_t *out, int lane, double d)
{
    out->sum[lane] += d;
    out->sumsq[lane] += d * d;
    out->max = d > out->max ? d : out->max;
    out->min = d < out->min ? d : out->min;
    out->negative += d < 0;
    out->zero += d == 0;
}

TARGET static void LEVEL(laned_f32)(lanes_t *out, const float *x, int64_t n)
{
    DECLARE /* lanes start at zero */
    __m256 max = _mm256_set1_ps(-INFINITY), min = _mm256_set1_ps(INFINITY);
    __m256i below = _mm256_setzero_si256(), zeros = _mm256_setzero_si256();
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        SUMS_F32(x + i)
        for (int h = 0; h < LANES; h += 8) {
            const __m256 v = _mm256_loadu_ps(x + i + h);
            max = _mm256_max_ps(v, max); /* a NaN in v leaves max as it is */
            min = _mm256_min_ps(v, min);
            below = _mm256_sub_epi32(below, _mm256_castps_si256(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_LT_OQ)));
            zeros = _mm256_sub_epi32(zeros, _mm256_castps_si256(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_EQ_OQ)));
        }
    }
    STORES
    float maxima[8], minima[8];
    int32_t negative[8], zero[8];
    _mm256_storeu_ps(maxima, max);
    _mm256_storeu_ps(minima, min);
    _mm256_storeu_si256((__m256i *)negative, below);
    _mm256_storeu_si256((__m256i *)zero, zeros);
    for (int l = 0; l < 8; l++) {
        out->max = maxima[l] > out->max ? maxima[l] : out->max;
        out->min = minima[l] < out->min ? minima[l] : out->min;
        out->negative += negative[l];
        out->zero += zero[l];
    }
    for (int l = 0; i + l < n; l++)
        LEVEL(tail)(out, l, x[i + l]);
}

TARGET static void LEVEL(laned_f64)(lanes_t *out, const double *x, int64_t n)
{
    DECLARE
    const __m256d nothing = _mm256_setzero_pd();
    __m256d max0 = _mm256_set1_pd(-INFINITY), max1 = max0, min0 = _mm256_set1_pd(INFINITY), min1 = min0;
    __m256i below0 = _mm256_setzero_si256(), below1 = below0, zeros0 = below0, zeros1 = below0;
    const int64_t whole = n / LANES * LANES;
    for (int64_t start = 0; start < whole; start += BLOCK) {
        const int64_t end = start + BLOCK < whole ? start + BLOCK : whole;
        for (int64_t i = start; i < end; i += LANES) {
            SUMS_ROUNDED(VD_LOAD, x + i)
        }
        for (int64_t i = start; i < end; i += 8) {
            const __m256d a = _mm256_loadu_pd(x + i), b = _mm256_loadu_pd(x + i + 4);
            max0 = _mm256_max_pd(a, max0); /* a NaN in a leaves max0 as it is */
            max1 = _mm256_max_pd(b, max1);
            min0 = _mm256_min_pd(a, min0);
            min1 = _mm256_min_pd(b, min1);
            below0 = _mm256_sub_epi64(below0, _mm256_castpd_si256(_mm256_cmp_pd(a, nothing, _CMP_LT_OQ)));
            below1 = _mm256_sub_epi64(below1, _mm256_castpd_si256(_mm256_cmp_pd(b, nothing, _CMP_LT_OQ)));
            zeros0 = _mm256_sub_epi64(zeros0, _mm256_castpd_si256(_mm256_cmp_pd(a, nothing, _CMP_EQ_OQ)));
            zeros1 = _mm256_sub_epi64(zeros1, _mm256_castpd_si256(_mm256_cmp_pd(b, nothing, _CMP_EQ_OQ)));
        }
    }
    STORES
    double maxima[4], minima[4];
    int64_t negative[4], zero[4];
    _mm256_storeu_pd(maxima, _mm256_max_pd(max0, max1));
    _mm256_storeu_pd(minima, _mm256_min_pd(min0, min1));
    _mm256_storeu_si256((__m256i *)negative, _mm256_add_epi64(below0, below1));
    _mm256_storeu_si256((__m256i *)zero, _mm256_add_epi64(zeros0, zeros1));
    for (int l = 0; l < 4; l++) {
        out->max = maxima[l] > out->max ? maxima[l] : out->max;
        out->min = minima[l] < out->min ? minima[l] : out->min;
        out->negative += negative[l];
        out->zero += zero[l];
    }
    for (int l = 0; whole + l < n; l++)
        LEVEL(tail)(out, l, x[whole + l]);
}

TARGET static void LEVEL(laned_i32)(lanes_t *out, const int32_t *x, int64_t n)
{
    DECLARE
    __m256i max = _mm256_set1_epi32(INT32_MIN), min = _mm256_set1_epi32(INT32_MAX);
    __m256i below = _mm256_setzero_si256(), zeros = below;
    const int64_t whole = n / LANES * LANES;
    for (int64_t start = 0; start < whole; start += BLOCK) {
        const int64_t end = start + BLOCK < whole ? start + BLOCK : whole;
        for (int64_t i = start; i < end; i += LANES) {
            SUMS_ROUNDED(I32_VD, x + i)
        }
        for (int64_t i = start; i < end; i += 8) {
            const __m256i v = _mm256_loadu_si256((const __m256i *)(x + i));
            max = _mm256_max_epi32(max, v);
            min = _mm256_min_epi32(min, v);
            below = _mm256_sub_epi32(below, _mm256_srai_epi32(v, 31));
            zeros = _mm256_sub_epi32(zeros, _mm256_cmpeq_epi32(v, _mm256_setzero_si256()));
        }
    }
    STORES
    int32_t maxima[8], minima[8], negative[8], zero[8];
    _mm256_storeu_si256((__m256i *)maxima, max);
    _mm256_storeu_si256((__m256i *)minima, min);
    _mm256_storeu_si256((__m256i *)negative, below);
    _mm256_storeu_si256((__m256i *)zero, zeros);
    for (int l = 0; whole && l < 8; l++) {
        out->max = maxima[l] > out->max ? maxima[l] : out->max;
        out->min = minima[l] < out->min ? minima[l] : out->min;
        out->negative += negative[l];
        out->zero += zero[l];
    }
    for (int l = 0; whole + l < n; l++)
        LEVEL(tail)(out, l, x[whole + l]);
}

/* 16-bit floats: extrema and counts on the bits, as integers in the order of the values (key = bits with the body of
 * negative numbers flipped). NaN and the two zeros come out wrong here; `finish` looks again where they matter. Two
 * passes over each cached block, since the accumulators of both do not fit into 16 registers. */
#define HALF(NAME, SUMS, WIDEN)                                                                                        \
    TARGET static void LEVEL(NAME)(lanes_t *out, const uint16_t *x, int64_t n)                                         \
    {                                                                                                                  \
        DECLARE                                                                                                        \
        const __m256i body = _mm256_set1_epi16(0x7fff), minus_zero = _mm256_set1_epi16(-1);                            \
        __m256i max = _mm256_set1_epi16(INT16_MIN), min = body;                                                        \
        __m256i below = _mm256_setzero_si256(), zeros = below;                                                         \
        const int64_t whole = n / LANES * LANES;                                                                       \
        for (int64_t start = 0; start < whole; start += BLOCK) {                                                       \
            const int64_t end = start + BLOCK < whole ? start + BLOCK : whole;                                         \
            for (int64_t i = start; i < end; i += LANES) {                                                             \
                SUMS(x + i)                                                                                            \
            }                                                                                                          \
            for (int64_t i = start; i < end; i += LANES) {                                                             \
                const __m256i u = _mm256_loadu_si256((const __m256i *)(x + i));                                        \
                const __m256i key = _mm256_xor_si256(u, _mm256_and_si256(_mm256_srai_epi16(u, 15), body));             \
                max = _mm256_max_epi16(max, key);                                                                      \
                min = _mm256_min_epi16(min, key);                                                                      \
                below = _mm256_sub_epi16(below, _mm256_cmpgt_epi16(minus_zero, key));                                  \
                zeros = _mm256_sub_epi16(zeros, _mm256_cmpeq_epi16(_mm256_add_epi16(u, u), _mm256_setzero_si256()));   \
            }                                                                                                          \
        }                                                                                                              \
        STORES                                                                                                         \
        int16_t maxima[16], minima[16];                                                                                \
        uint16_t negative[16], zero[16]; /* at most DS_CHUNK / 16 each */                                              \
        _mm256_storeu_si256((__m256i *)maxima, max);                                                                   \
        _mm256_storeu_si256((__m256i *)minima, min);                                                                   \
        _mm256_storeu_si256((__m256i *)negative, below);                                                               \
        _mm256_storeu_si256((__m256i *)zero, zeros);                                                                   \
        for (int l = 0; whole && l < 16; l++) {                                                                        \
            const uint16_t a = (uint16_t)(maxima[l] < 0 ? maxima[l] ^ 0x7fff : maxima[l]);                             \
            const uint16_t b = (uint16_t)(minima[l] < 0 ? minima[l] ^ 0x7fff : minima[l]);                             \
            const double high = WIDEN(a), low = WIDEN(b);                                                              \
            out->max = high > out->max ? high : out->max;                                                              \
            out->min = low < out->min ? low : out->min;                                                                \
            out->negative += negative[l];                                                                              \
            out->zero += zero[l];                                                                                      \
        }                                                                                                              \
        for (int l = 0; whole + l < n; l++)                                                                            \
            LEVEL(tail)(out, l, WIDEN(x[whole + l]));                                                                  \
    }

HALF(half_f16, SUMS_F16, f16_to_float)
HALF(half_bf16, SUMS_BF16, bf16_to_float)

#undef HALF
#undef DECLARE
#undef ADD
#undef FUSE
#undef TAKE
#undef STORE
#undef STORES
#undef SUMS_F32
#undef SUMS_F16
#undef SUMS_BF16
#undef F32_QUARTER
#undef F16_QUARTER
#undef F32_HALF
#undef F16_HALF
#undef BF16_HALF
#undef BF16_LOW
#undef BF16_HIGH
#undef VD
#undef WIDE
#undef VD_SET
#undef VD_STORE
#undef VD_ADD
#undef VD_FMA
#undef VD_MUL
#undef VD_LOAD
#undef I32_VD
#undef TAKE_ROUNDED
#undef SUMS_ROUNDED
#endif
#undef LANED

static void LEVEL(chunk)(lanes_t *out, const void *data, int64_t n, int dtype)
{
    switch (dtype) {
    case DS_BOOL: LEVEL(small_bool)(out, data, n); break;
    case DS_INT8: LEVEL(small_i8)(out, data, n); break;
    case DS_UINT8: LEVEL(small_u8)(out, data, n); break;
    case DS_INT16: LEVEL(small_i16)(out, data, n); break;
    case DS_UINT16: LEVEL(small_u16)(out, data, n); break;
    case DS_INT32: LEVEL(laned_i32)(out, data, n); break;
    case DS_UINT32: LEVEL(laned_u32)(out, data, n); break;
    case DS_INT64: LEVEL(laned_i64)(out, data, n); break;
    case DS_UINT64: LEVEL(laned_u64)(out, data, n); break;
    case DS_FLOAT16: LEVEL(half_f16)(out, data, n); break;
    case DS_BFLOAT16: LEVEL(half_bf16)(out, data, n); break;
    case DS_FLOAT32: LEVEL(laned_f32)(out, data, n); break;
    default: LEVEL(laned_f64)(out, data, n); break;
    }
}

TARGET static uint64_t LEVEL(words)(const void *data, int64_t n)
{
    const uint64_t *x = data;
    uint64_t any = 0;
    for (int64_t i = 0; i < n; i++)
        any |= x[i];
    return any;
}
