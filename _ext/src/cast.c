/* Low-precision numbers to and from float32. See cast.h.
 *
 * 16-bit types and all narrowing are branch-free loops that the compiler vectorises, compiled once per level; 8-bit codes
 * are decoded through a table of 256 floats. F16C is not used: it makes signaling NaNs quiet, so that levels would differ.
 * The float additions below are exact or round once, to nearest even, in the default rounding mode.
 */
#include "cast.h"

#include <math.h>
#include <string.h>

static inline uint32_t bits_of(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

static inline float float_of(uint32_t u) {
    float x;
    memcpy(&x, &u, 4);
    return x;
}

/* With masks: a branch would prevent vectorisation. */
static inline uint32_t pick(int condition, uint32_t yes, uint32_t no) {
    uint32_t mask = 0u - (uint32_t)condition;
    return (yes & mask) | (no & ~mask);
}

/* ---- 16 bits ----------------------------------------------------------------------------------------------------- */

static inline uint32_t float_bits_of_half(uint16_t h) {
    uint32_t rest = (uint32_t)(h & 0x7fff) << 13;
    uint32_t exponent = rest & (0x7c00u << 13);
    uint32_t normal = rest + ((127u - 15) << 23);
    uint32_t special = normal + ((128u - 16) << 23);
    uint32_t tiny = bits_of(float_of(normal + (1u << 23)) - float_of(113u << 23));
    uint32_t magnitude = pick(exponent == (0x7c00u << 13), special, pick(exponent == 0, tiny, normal));
    return magnitude | (uint32_t)(h & 0x8000) << 16;
}

static inline uint16_t half_of_float_bits(uint32_t u) {
    uint32_t sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
    uint32_t payload = a >> 13 & 0x3ff;
    uint32_t nan = 0x7c00 | payload | (payload == 0);
    uint32_t normal = (a - ((127u - 15) << 23) + 0xfff + (a >> 13 & 1)) >> 13;
    uint32_t magic = (127u - 15 + 23 - 10 + 1) << 23; /* a float whose last place is the smallest half */
    uint32_t tiny = bits_of(float_of(a) + float_of(magic)) - magic;
    uint32_t finite = pick(a < (113u << 23), tiny, normal);
    return (uint16_t)(sign | pick(a > 0x7f800000, nan, pick(a >= (143u << 23), 0x7c00, finite)));
}

static inline uint16_t bfloat_of_float_bits(uint32_t u) {
    uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    uint32_t nan = (u >> 16 & 0x8000) | 0x7fc0;
    return (uint16_t)pick((u & 0x7fffffff) > 0x7f800000, nan, rounded);
}

/* ---- 8 bits ------------------------------------------------------------------------------------------------------ */

/* A minifloat: exponent and mantissa bits, bias, largest finite code, what overflow and NaN become, whether zero has a
 * sign (the fnuz types use that code as NaN). */
typedef struct {
    uint32_t e, m, bias, largest, overflow, nan;
    int unsigned_zero;
} mini;

#define E5M2 ((mini){5, 2, 15, 0x7b, 0x7c, 0x7e, 0})
#define E4M3FN ((mini){4, 3, 7, 0x7e, 0x7f, 0x7f, 0})
#define E4M3 ((mini){4, 3, 7, 0x77, 0x78, 0x7c, 0})
#define E3M4 ((mini){3, 4, 3, 0x6f, 0x70, 0x78, 0})
#define E4M3FNUZ ((mini){4, 3, 8, 0x7f, 0x80, 0x80, 1})
#define E5M2FNUZ ((mini){5, 2, 16, 0x7f, 0x80, 0x80, 1})
#define E4M3B11FNUZ ((mini){4, 3, 11, 0x7f, 0x80, 0x80, 1})

/* Positive codes of a minifloat grow with the value, so that adding to the bits of the float rounds and carries. */
static inline uint8_t mini_of_float_bits(uint32_t u, mini t) {
    uint32_t sign = u >> 24 & 0x80, a = u & 0x7fffffff, shift = 23 - t.m;
    uint32_t normal = (a - ((127 - t.bias) << 23) + ((1u << (shift - 1)) - 1) + (a >> shift & 1)) >> shift;
    uint32_t magic = (127 + 23 + 1 - t.bias - t.m) << 23; /* a float whose last place is the smallest code */
    uint32_t tiny = bits_of(float_of(a) + float_of(magic)) - magic;
    uint32_t code = pick(a < ((128 - t.bias) << 23), tiny, normal);
    code = pick(code > t.largest || a >= 0x7f800000, t.overflow, code);
    code = pick(a > 0x7f800000, t.nan, code);
    if (t.unsigned_zero) sign = pick(code == 0, 0, sign);
    return (uint8_t)(sign | code);
}

static float mini_value(uint32_t code, mini t) {
    uint32_t magnitude = code & 0x7f;
    float x;
    if (t.unsigned_zero && code == 0x80) return NAN;
    if (magnitude > t.largest) {
        x = magnitude == t.overflow && t.overflow != t.nan ? INFINITY : NAN;
    } else {
        uint32_t exponent = magnitude >> t.m, fraction = magnitude & ((1u << t.m) - 1);
        int scale = (int)(exponent ? exponent : 1) - (int)t.bias - (int)t.m;
        x = ldexpf((float)(exponent ? fraction | 1u << t.m : fraction), scale);
    }
    return float_of(bits_of(x) | (code & 0x80) << 24);
}

/* 2^(code - 127) without a sign; 0xff is NaN, which zero, negative and too large numbers become too. Ties go up, and so does
 * everything between 2^-127 and 2^-126, as in ml_dtypes. */
static inline uint8_t e8m0_of_float_bits(uint32_t u) {
    uint32_t code = pick(u < 0x800000, u > 0x400000, (u >> 23) + (u >> 22 & 1));
    return (uint8_t)pick(u == 0 || code > 0xfe, 0xff, code);
}

/* HiFloat8 has a prefix code for the size of its exponent. [spec ge 8.3] */
static float hif8_value(uint32_t code) {
    uint32_t x = code & 0x7f;
    float value;
    if (x == 0) return code ? NAN : 0.0f;
    if (x == 0x6f) {
        value = INFINITY;
    } else if (x < 8) {
        value = ldexpf(1.0f, (int)x - 23);
    } else {
        uint32_t d = x >= 0x60 ? 4 : x >= 0x40 ? 3 : x >= 0x20 ? 2 : x >= 0x10 ? 1 : 0;
        uint32_t bits = d == 4 ? 1 : d == 3 ? 2 : 3;
        uint32_t f = x >> bits & ((1u << d) - 1), top = d ? 1u << (d - 1) : 0;
        int exponent = d ? (int)(top + (f & (top - 1))) : 0;
        if (f & top) exponent = -exponent;
        value = ldexpf(1.0f + (float)(x & ((1u << bits) - 1)) / (float)(1u << bits), exponent);
    }
    return code & 0x80 ? -value : value;
}

static void decode_table(int kind, float table[256]) {
    for (uint32_t code = 0; code < 256; code++) {
        switch (kind) {
        case DS_E5M2: table[code] = mini_value(code, E5M2); break;
        case DS_E4M3FN: table[code] = mini_value(code, E4M3FN); break;
        case DS_E4M3: table[code] = mini_value(code, E4M3); break;
        case DS_E3M4: table[code] = mini_value(code, E3M4); break;
        case DS_E4M3FNUZ: table[code] = mini_value(code, E4M3FNUZ); break;
        case DS_E5M2FNUZ: table[code] = mini_value(code, E5M2FNUZ); break;
        case DS_E4M3B11FNUZ: table[code] = mini_value(code, E4M3B11FNUZ); break;
        case DS_E8M0FNU: table[code] = code == 0xff ? NAN : ldexpf(1.0f, (int)code - 127); break;
        default: table[code] = hif8_value(code); break;
        }
    }
}

/* The code of every float by sign-less exponent and four mantissa bits: no HiFloat8 has more than three, and a tie is
 * decided by the fourth, away from zero, so that the bits below do not matter. */
enum { HIF8_SHIFT = 19, HIF8_ENTRIES = 1 << (31 - HIF8_SHIFT) };

static void hif8_table(uint8_t table[HIF8_ENTRIES]) {
    struct {
        float value;
        uint8_t code;
    } sorted[127]; /* finite, not negative, by value; insertion sort */
    int count = 0;
    for (uint32_t code = 0; code < 128; code++) {
        float value = hif8_value(code);
        if (isinf(value)) continue;
        int at = count++;
        for (; at > 0 && sorted[at - 1].value > value; at--) sorted[at] = sorted[at - 1];
        sorted[at].value = value;
        sorted[at].code = (uint8_t)code;
    }
    float beyond = 40960.0f; /* half way to what would follow the largest number, 2^15 */
    int at = 0;
    for (uint32_t k = 0; k < HIF8_ENTRIES; k++) {
        float x = float_of(k << HIF8_SHIFT);
        if (!(x < beyond)) {
            table[k] = k << HIF8_SHIFT > 0x7f800000 ? 0x80 : 0x6f;
            continue;
        }
        while (at + 1 < count && x >= (sorted[at].value + sorted[at + 1].value) / 2) at++;
        table[k] = sorted[at].code;
    }
}

static inline uint8_t hif8_of_float_bits(uint32_t u, const uint8_t table[HIF8_ENTRIES]) {
    uint32_t a = u & 0x7fffffff;
    uint32_t code = pick(a > 0x7f800000, 0x80, table[a >> HIF8_SHIFT]);
    return (uint8_t)(code | pick(code != 0, u >> 24 & 0x80, 0));
}

/* ---- loops, once per level --------------------------------------------------------------------------------------- */

#define LOOP(ATTR, LEVEL, NAME, OUT, IN, BODY)                                                                        \
    ATTR static void NAME##LEVEL(OUT *restrict out, const IN *restrict in, int64_t n) {                               \
        for (int64_t i = 0; i < n; i++) {                                                                             \
            IN x = in[i];                                                                                             \
            out[i] = (OUT)(BODY);                                                                                     \
        }                                                                                                             \
    }

#define LOOPS(ATTR, LEVEL)                                                                                            \
    LOOP(ATTR, LEVEL, widen_f16_, uint32_t, uint16_t, float_bits_of_half(x))                                          \
    LOOP(ATTR, LEVEL, widen_bf16_, uint32_t, uint16_t, (uint32_t)x << 16)                                             \
    LOOP(ATTR, LEVEL, narrow_f16_, uint16_t, uint32_t, half_of_float_bits(x))                                         \
    LOOP(ATTR, LEVEL, narrow_bf16_, uint16_t, uint32_t, bfloat_of_float_bits(x))                                      \
    LOOP(ATTR, LEVEL, narrow_e5m2_, uint8_t, uint32_t, mini_of_float_bits(x, E5M2))                                   \
    LOOP(ATTR, LEVEL, narrow_e4m3fn_, uint8_t, uint32_t, mini_of_float_bits(x, E4M3FN))                               \
    LOOP(ATTR, LEVEL, narrow_e4m3_, uint8_t, uint32_t, mini_of_float_bits(x, E4M3))                                   \
    LOOP(ATTR, LEVEL, narrow_e3m4_, uint8_t, uint32_t, mini_of_float_bits(x, E3M4))                                   \
    LOOP(ATTR, LEVEL, narrow_e4m3fnuz_, uint8_t, uint32_t, mini_of_float_bits(x, E4M3FNUZ))                           \
    LOOP(ATTR, LEVEL, narrow_e5m2fnuz_, uint8_t, uint32_t, mini_of_float_bits(x, E5M2FNUZ))                           \
    LOOP(ATTR, LEVEL, narrow_e4m3b11fnuz_, uint8_t, uint32_t, mini_of_float_bits(x, E4M3B11FNUZ))                     \
    LOOP(ATTR, LEVEL, narrow_e8m0fnu_, uint8_t, uint32_t, e8m0_of_float_bits(x))                                      \
    ATTR static void unpack4_##LEVEL(int8_t *restrict out, const uint8_t *restrict in, int64_t n) {                   \
        for (int64_t i = 0; i < n / 2; i++) {                                                                         \
            out[2 * i] = (int8_t)(((in[i] & 15) ^ 8) - 8);                                                            \
            out[2 * i + 1] = (int8_t)(((in[i] >> 4) ^ 8) - 8);                                                        \
        }                                                                                                             \
    }                                                                                                                 \
    ATTR static void pack4_##LEVEL(uint8_t *restrict out, const int8_t *restrict in, int64_t n) {                     \
        for (int64_t i = 0; i < n / 2; i++) out[i] = (uint8_t)((in[2 * i] & 15) | (in[2 * i + 1] & 15) << 4);         \
    }                                                                                                                 \
    ATTR static void unpack1_##LEVEL(uint8_t *restrict out, const uint8_t *restrict in, int64_t n) {                  \
        for (int64_t i = 0; i < n / 8; i++) {                                                                         \
            for (int k = 0; k < 8; k++) out[8 * i + k] = in[i] >> (7 - k) & 1;                                        \
        }                                                                                                             \
    }                                                                                                                 \
    ATTR static void pack1_##LEVEL(uint8_t *restrict out, const uint8_t *restrict in, int64_t n) {                    \
        for (int64_t i = 0; i < n / 8; i++) {                                                                         \
            unsigned byte = 0;                                                                                        \
            for (int k = 0; k < 8; k++) byte |= (unsigned)(in[8 * i + k] & 1) << (7 - k);                             \
            out[i] = (uint8_t)byte;                                                                                   \
        }                                                                                                             \
    }

#define NOTHING
LOOPS(NOTHING, baseline)
#if DS_X86_LEVELS
LOOPS(DS_TARGET_AVX2, avx2)
#define RUN(NAME, ...) (level >= DS_AVX2 ? NAME##avx2 : NAME##baseline)(__VA_ARGS__)
#else
#define RUN(NAME, ...) NAME##baseline(__VA_ARGS__)
#endif

void ds_cast_to_float(int kind, float *out, const void *in, int64_t n, int level) {
    float table[256];
    const uint8_t *codes = in;
    (void)level;
    if (kind == DS_F16) {
        RUN(widen_f16_, (uint32_t *)(void *)out, in, n);
    } else if (kind == DS_BF16) {
        RUN(widen_bf16_, (uint32_t *)(void *)out, in, n);
    } else {
        decode_table(kind, table);
        for (int64_t i = 0; i < n; i++) out[i] = table[codes[i]];
    }
}

void ds_cast_from_float(int kind, void *out, const float *in, int64_t n, int level) {
    const uint32_t *bits = (const uint32_t *)(const void *)in;
    uint8_t table[HIF8_ENTRIES], *codes = out;
    (void)level;
    switch (kind) {
    case DS_F16: RUN(narrow_f16_, out, bits, n); break;
    case DS_BF16: RUN(narrow_bf16_, out, bits, n); break;
    case DS_E5M2: RUN(narrow_e5m2_, out, bits, n); break;
    case DS_E4M3FN: RUN(narrow_e4m3fn_, out, bits, n); break;
    case DS_E4M3: RUN(narrow_e4m3_, out, bits, n); break;
    case DS_E3M4: RUN(narrow_e3m4_, out, bits, n); break;
    case DS_E4M3FNUZ: RUN(narrow_e4m3fnuz_, out, bits, n); break;
    case DS_E5M2FNUZ: RUN(narrow_e5m2fnuz_, out, bits, n); break;
    case DS_E4M3B11FNUZ: RUN(narrow_e4m3b11fnuz_, out, bits, n); break;
    case DS_E8M0FNU: RUN(narrow_e8m0fnu_, out, bits, n); break;
    default:
        hif8_table(table);
        for (int64_t i = 0; i < n; i++) codes[i] = hif8_of_float_bits(bits[i], table);
    }
}

void ds_cast_to_odd(float *out, const double *in, int64_t n, int level) {
    (void)level;
    for (int64_t i = 0; i < n; i++) {
        double x = in[i];
        float near = (float)x;
        uint32_t u = bits_of(near);
        if (!isnan(x) && (double)near != x) u = (u - (fabs((double)near) > fabs(x))) | 1;
        out[i] = float_of(u);
    }
}

void ds_cast_unpack4(int8_t *out, const uint8_t *in, int64_t n, int level) {
    (void)level;
    RUN(unpack4_, out, in, n);
    if (n % 2) out[n - 1] = (int8_t)(((in[n / 2] & 15) ^ 8) - 8);
}

void ds_cast_pack4(uint8_t *out, const int8_t *in, int64_t n, int level) {
    (void)level;
    RUN(pack4_, out, in, n);
    if (n % 2) out[n / 2] = (uint8_t)(in[n - 1] & 15);
}

void ds_cast_unpack1(uint8_t *out, const uint8_t *in, int64_t n, int level) {
    (void)level;
    RUN(unpack1_, out, in, n);
    for (int64_t i = n / 8 * 8; i < n; i++) out[i] = in[i / 8] >> (7 - i % 8) & 1;
}

void ds_cast_pack1(uint8_t *out, const uint8_t *in, int64_t n, int level) {
    (void)level;
    RUN(pack1_, out, in, n);
    if (n % 8) {
        unsigned byte = 0;
        for (int64_t i = n / 8 * 8; i < n; i++) byte |= (unsigned)(in[i] & 1) << (7 - i % 8);
        out[n / 8] = (uint8_t)byte;
    }
}
