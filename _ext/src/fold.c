/* Left folds of the rows of a matrix into a row of totals.
 *
 * Integers wrap. Max and min of floats are NaN from the first NaN on. Which NaN comes of two, and which zero of +0 and
 * -0, is the compiler's choice: callers that need these bits look for them in the totals.
 */
#include "fold.h"

enum { TILE = 8192 }; /* bytes of the totals that stay in the L1 cache while the rows go past */

#define LOOP(NAME, T, OP)                                                                                              \
    static void NAME(T *restrict total, const T *restrict terms, int64_t rows, int64_t stride, int64_t size)           \
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
static inline float max_float(float a, float b) { return a >= b ? a : (a != a ? a : b); }
static inline float min_float(float a, float b) { return a <= b ? a : (a != a ? a : b); }

#define SUM(T, a, b) sum_##T(a, b)
#define PROD(T, a, b) prod_##T(a, b)
#define MAX(T, a, b) max_##T(a, b)
#define MIN(T, a, b) min_##T(a, b)

#define FOLD(NAME, T)                                                                                                  \
    LOOP(NAME##_sum, T, SUM)                                                                                           \
    LOOP(NAME##_prod, T, PROD)                                                                                         \
    LOOP(NAME##_max, T, MAX)                                                                                           \
    LOOP(NAME##_min, T, MIN)                                                                                           \
    void NAME(T *total, const T *terms, int64_t rows, int64_t stride, int64_t size, int op)                            \
    {                                                                                                                  \
        switch (op) {                                                                                                  \
        case DF_SUM: NAME##_sum(total, terms, rows, stride, size); break;                                              \
        case DF_PROD: NAME##_prod(total, terms, rows, stride, size); break;                                            \
        case DF_MAX: NAME##_max(total, terms, rows, stride, size); break;                                              \
        case DF_MIN: NAME##_min(total, terms, rows, stride, size); break;                                              \
        }                                                                                                              \
    }

FOLD(df_fold_i8, int8_t)
FOLD(df_fold_i16, int16_t)
FOLD(df_fold_i32, int32_t)
FOLD(df_fold_i64, int64_t)
FOLD(df_fold_f32, float)
