/* Low-precision numbers to and from float32, bit by bit. */
#ifndef DUMPSIM_CAST_H
#define DUMPSIM_CAST_H

#include "dumpsim_ext.h"

/* The kinds of floats; 2-byte ones first. */
enum {
    DS_F16,
    DS_BF16,
    DS_E5M2,
    DS_E4M3FN,
    DS_E4M3,
    DS_E3M4,
    DS_E4M3FNUZ,
    DS_E5M2FNUZ,
    DS_E4M3B11FNUZ,
    DS_E8M0FNU,
    DS_HIF8,
    DS_FLOATS
};

/* Codes to float32. Exact; NaNs keep their payload and stay signaling (16 bits) or become the quiet NaN (8 bits). */
void ds_cast_to_float(int kind, float *out, const void *in, int64_t n, int level);

/* float32 to codes: to nearest, ties to even, except HiFloat8 and E8M0: ties away from zero. */
void ds_cast_from_float(int kind, void *out, const float *in, int64_t n, int level);

/* float64 to float32 by rounding to odd, after which a narrower rounding to nearest is as if done from float64. */
void ds_cast_to_odd(float *out, const double *in, int64_t n, int level);

/* n elements; int4 has the low nibble first, uint1 the most significant bit. */
void ds_cast_unpack4(int8_t *out, const uint8_t *in, int64_t n, int level);
void ds_cast_pack4(uint8_t *out, const int8_t *in, int64_t n, int level);
void ds_cast_unpack1(uint8_t *out, const uint8_t *in, int64_t n, int level);
void ds_cast_pack1(uint8_t *out, const uint8_t *in, int64_t n, int level);

#endif
