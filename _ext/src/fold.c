/* Left folds of the rows of a matrix into a row of totals.
 *
 * Integers wrap. Sums and products propagate NaN. Max and min ignore it and return 1 if there was one, since
 * propagating it would cost as much as the rest. Which of two NaN, and which of +0 and -0, is the result is the
 * compiler's choice; callers that need these bits check the totals for NaN and zeros.
 */
#include "fold.h"

enum { TILE = 8192 }; /* bytes of the totals that stay in the L1 cache while the rows are read */

#define LOOP(NAME, T, OP)                                                                                              \
    static int NAME(T *restrict total, const T *restrict terms, int64_t rows, int64_t stride, int64_t size)            \
    {                                                                                                                  \
        const int64_t tile = TILE / (int64_t)sizeof(T);                                                                \
        for (int64_t start = 0; start < size; start += tile) {                                                         \
            const int64_t n = size - start < tile ? size - start : tile;                                               \
            T *restrict t = total + start;                                                                             \
            const T *a = terms + start;                                                                                \
            int64_t row = 0;                                                                                           \
            for (; row + 4 <= rows; row += 4, a += 4 * stride) { /* fewer loads and stores of the totals */            \
                const T *b = a + stride, *c = b + stride, *d = c + stride;                                             \
                for (int64_t i = 0; i < n; i++)                                                                        \
                    t[i] = OP(T, OP(T, OP(T, OP(T, t[i], a[i]), b[i]), c[i]), d[i]);                                   \
            }                                                                                                          \
            for (; row < rows; row++, a += stride)                                                                     \
                for (int64_t i = 0; i < n; i++)                                                                        \
                    t[i] = OP(T, t[i], a[i]);                                                                          \
        }                                                                                                              \
        return 0;                                                                                                      \
    }

/* the same for max and min of floats; 1 if a term is NaN */
#define LOOP_NAN(NAME, T, OP)                                                                                          \
    static int NAME(T *restrict total, const T *restrict terms, int64_t rows, int64_t stride, int64_t size)            \
    {                                                                                                                  \
        const int64_t tile = TILE / (int64_t)sizeof(T);                                                                \
        int32_t nan = 0;                                                                                               \
        for (int64_t start = 0; start < size; start += tile) {                                                         \
            const int64_t n = size - start < tile ? size - start : tile;                                               \
            T *restrict t = total + start;                                                                             \
            const T *a = terms + start;                                                                                \
            int64_t row = 0;                                                                                           \
            for (; row + 4 <= rows; row += 4, a += 4 * stride) {                                                       \
                const T *b = a + stride, *c = b + stride, *d = c + stride;                                             \
                for (int64_t i = 0; i < n; i++) {                                                                      \
                    t[i] = OP(T, OP(T, OP(T, OP(T, t[i], a[i]), b[i]), c[i]), d[i]);                                   \
                    nan |= (a[i] != a[i]) | (b[i] != b[i]) | (c[i] != c[i]) | (d[i] != d[i]);                          \
                }                                                                                                      \
            }                                                                                                          \
            for (; row < rows; row++, a += stride)                                                                     \
                for (int64_t i = 0; i < n; i++) {                                                                      \
                    t[i] = OP(T, t[i], a[i]);                                                                          \
                    nan |= a[i] != a[i];                                                                               \
                }                                                                                                      \
        }                                                                                                              \
        return nan;                                                                                                    \
    }

/* functions, so that each operand is evaluated once; integers go through unsigned ones, which wrap */
#define INLINE(T, U)                                                                                                   \
    static inline T sum_##T(T a, T b) { return (T)((U)a + (U)b); }                                                     \
    static inline T prod_##T(T a, T b) { return (T)((U)a * (U)b); }                                                    \
    static inline T max_##T(T a, T b) { return a >= b ? a : b; }                                                       \
    static inline T min_##T(T a, T b) { return a <= b ? a : b; }

INLINE(int8_t, uint32_t)
INLINE(int16_t, uint32_t)
INLINE(int32_t, uint32_t)
INLINE(int64_t, uint64_t)
static inline float sum_float(float a, float b) { return a + b; }
static inline float prod_float(float a, float b) { return a * b; }
static inline float max_float(float a, float b) { return b > a ? b : a; }
static inline float min_float(float a, float b) { return b < a ? b : a; }

#define SUM(T, a, b) sum_##T(a, b)
#define PROD(T, a, b) prod_##T(a, b)
#define MAX(T, a, b) max_##T(a, b)
#define MIN(T, a, b) min_##T(a, b)

#define FOLD(NAME, T, L)                                                                                               \
    LOOP(NAME##_sum, T, SUM)                                                                                           \
    LOOP(NAME##_prod, T, PROD)                                                                                         \
    L(NAME##_max, T, MAX)                                                                                              \
    L(NAME##_min, T, MIN)                                                                                              \
    int NAME(T *total, const T *terms, int64_t rows, int64_t stride, int64_t size, int op)                             \
    {                                                                                                                  \
        switch (op) {                                                                                                  \
        case DF_SUM: return NAME##_sum(total, terms, rows, stride, size);                                              \
        case DF_PROD: return NAME##_prod(total, terms, rows, stride, size);                                            \
        case DF_MAX: return NAME##_max(total, terms, rows, stride, size);                                              \
        case DF_MIN: return NAME##_min(total, terms, rows, stride, size);                                              \
        }                                                                                                              \
        return 0;                                                                                                      \
    }

FOLD(df_fold_i8, int8_t, LOOP)
FOLD(df_fold_i16, int16_t, LOOP)
FOLD(df_fold_i32, int32_t, LOOP)
FOLD(df_fold_i64, int64_t, LOOP)
FOLD(df_fold_f32, float, LOOP_NAN)
