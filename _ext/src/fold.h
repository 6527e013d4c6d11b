/* Left folds of the rows of a matrix into a row of totals: see fold.c. */
#ifndef DUMPSIM_FOLD_H
#define DUMPSIM_FOLD_H

#include <stdint.h>

enum { DF_SUM, DF_PROD, DF_MAX, DF_MIN };

/* total[i] = (...((total[i] op terms[0][i]) op terms[1][i]) ...), rows `stride` elements apart (0: all the same);
   1 if a float term of max or min is NaN, which the totals then lack, else 0 */
int df_fold_i8(int8_t *total, const int8_t *terms, int64_t rows, int64_t stride, int64_t size, int op);
int df_fold_i16(int16_t *total, const int16_t *terms, int64_t rows, int64_t stride, int64_t size, int op);
int df_fold_i32(int32_t *total, const int32_t *terms, int64_t rows, int64_t stride, int64_t size, int op);
int df_fold_i64(int64_t *total, const int64_t *terms, int64_t rows, int64_t stride, int64_t size, int op);
int df_fold_f32(float *total, const float *terms, int64_t rows, int64_t stride, int64_t size, int op);

#endif
