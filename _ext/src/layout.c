/* Strided copies with cache tiles and in-register transposes. See layout.h.
 *
 * Every layout of an NPU is "split axes into blocks, permute, pad with zeros". The dispatcher turns that into a few
 * rectangular regions, each a list of axes with a stride in the source and one in the destination. All that is left
 * for C is to copy one such region quickly; nothing is computed, so that every level gives the same bytes.
 */
#include "layout.h"

#include <stdlib.h>
#include <string.h>

#if DS_X86_LEVELS
#include <immintrin.h>
#endif

#define LINE 64                  /* bytes of a cache line */
#define NARROW LINE              /* bytes of a side that counts as narrow */
#define TILE_WIDE 512            /* bytes of a tile along a side whose other side is narrow */
#define TILE_SQUARE 128          /* bytes of a tile along both sides when both are wide */
#define REPEATS 16               /* repeats of a block that lie next to each other in the destination */
#define SOURCE_REPEATS 64        /* repeats of a block that lie next to each other in the source */
#define PANEL 1024               /* bytes of a block that a tile joins with the next ones */
#define JOINED 576               /* bytes of blocks that one tile joins: whole cache lines for 16 x 9 */
#define UNIT 40960               /* bytes of a transposed tile, with all its repeats */
#define NEAR_UNIT 8192           /* bytes of a tile up to which the next one is prefetched into L1, not L2 */
#define SCRATCH 65536            /* bytes of a tile with rows rounded up to cache lines, on the stack */
#define RUNS 16                  /* runs of a copy tile along the destination's order */
#define RUN_BYTES 4096           /* bytes of a copy tile along the source's order */
#define LONG_RUN (1 << 18)       /* bytes of a run after which a unit ends */
#define STREAM_FROM (16 << 20)   /* bytes of a region from which on stores bypass the cache */

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- blocks: src[j][i] -> dst[i][j], rows `sj` and `di` bytes apart ---------------------------------------------- */

#define SCALAR_TILE(NAME, T)                                                                                          \
    static void NAME(char *dst, const char *src, int64_t ni, int64_t nj, int64_t di, int64_t sj) {                    \
        for (int64_t i = 0; i < ni; i++) {                                                                            \
            char *out = dst + i * di;                                                                                 \
            const char *in = src + i * (int64_t)sizeof(T);                                                            \
            for (int64_t j = 0; j < nj; j++) {                                                                        \
                memcpy(out + j * (int64_t)sizeof(T), in + j * sj, sizeof(T));                                         \
            }                                                                                                         \
        }                                                                                                             \
    }

SCALAR_TILE(scalar_1, uint8_t)
SCALAR_TILE(scalar_2, uint16_t)
SCALAR_TILE(scalar_4, uint32_t)
SCALAR_TILE(scalar_8, uint64_t)

/* A tile out of blocks; the last block of a side is moved back so that it overlaps its neighbour. */
#define BLOCK_TILE(ATTR, NAME, T, BJ, BI, BLOCK, REST)                                                                \
    ATTR static void NAME(char *dst, const char *src, int64_t ni, int64_t nj, int64_t di, int64_t sj) {               \
        if (ni < (BI) || nj < (BJ)) {                                                                                 \
            REST(dst, src, ni, nj, di, sj);                                                                           \
            return;                                                                                                   \
        }                                                                                                             \
        for (int64_t i = 0;;) {                                                                                       \
            for (int64_t j = 0;;) {                                                                                   \
                BLOCK(dst + i * di + j * (int64_t)sizeof(T), src + j * sj + i * (int64_t)sizeof(T), di, sj);          \
                if (j + (BJ) >= nj) break;                                                                            \
                j = smaller(j + (BJ), nj - (BJ));                                                                     \
            }                                                                                                         \
            if (i + (BI) >= ni) break;                                                                                \
            i = smaller(i + (BI), ni - (BI));                                                                         \
        }                                                                                                             \
    }

#if DS_X86_LEVELS
#define AVX2 DS_TARGET_AVX2
#define AVX2_INLINE DS_TARGET_AVX2 __attribute__((always_inline)) static inline

AVX2_INLINE __m256i pair(const char *low, const char *high) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)low)),
                                   _mm_loadu_si128((const __m128i *)high), 1);
}

AVX2_INLINE void put(char *to, __m256i value) { _mm256_storeu_si256((__m256i *)to, value); }

AVX2_INLINE void put_halves(char *low, char *high, __m256i value) {
    _mm_storeu_si128((__m128i *)low, _mm256_castsi256_si128(value));
    _mm_storeu_si128((__m128i *)high, _mm256_extracti128_si256(value, 1));
}

/* 16 rows of 16 bytes -> 16 rows of 16 bytes. */
AVX2_INLINE void block_1(char *dst, const char *src, int64_t di, int64_t sj) {
    __m256i a[8], b[8];
    for (int k = 0; k < 8; k++) a[k] = pair(src + k * sj, src + (k + 8) * sj);
    for (int k = 0; k < 4; k++) {
        b[k] = _mm256_unpacklo_epi8(a[2 * k], a[2 * k + 1]);
        b[k + 4] = _mm256_unpackhi_epi8(a[2 * k], a[2 * k + 1]);
    }
    for (int half = 0; half < 2; half++) { /* columns 0-7, then 8-15 */
        const __m256i *h = b + 4 * half;
        __m256i c0 = _mm256_unpacklo_epi16(h[0], h[1]), c1 = _mm256_unpacklo_epi16(h[2], h[3]);
        __m256i c2 = _mm256_unpackhi_epi16(h[0], h[1]), c3 = _mm256_unpackhi_epi16(h[2], h[3]);
        __m256i e[4] = {_mm256_unpacklo_epi32(c0, c1), _mm256_unpackhi_epi32(c0, c1), _mm256_unpacklo_epi32(c2, c3),
                        _mm256_unpackhi_epi32(c2, c3)};
        for (int q = 0; q < 4; q++) {
            int64_t i = 8 * half + 2 * q;
            put_halves(dst + i * di, dst + (i + 1) * di, _mm256_permute4x64_epi64(e[q], 0xD8));
        }
    }
}

/* 8 x 8 elements of 2 bytes inside each 128-bit lane. */
AVX2_INLINE void lanes_2(__m256i a[8]) {
    __m256i b[8], c[8];
    for (int k = 0; k < 4; k++) {
        b[k] = _mm256_unpacklo_epi16(a[2 * k], a[2 * k + 1]);
        b[k + 4] = _mm256_unpackhi_epi16(a[2 * k], a[2 * k + 1]);
    }
    for (int half = 0; half < 2; half++) {
        c[4 * half + 0] = _mm256_unpacklo_epi32(b[4 * half], b[4 * half + 1]);
        c[4 * half + 1] = _mm256_unpackhi_epi32(b[4 * half], b[4 * half + 1]);
        c[4 * half + 2] = _mm256_unpacklo_epi32(b[4 * half + 2], b[4 * half + 3]);
        c[4 * half + 3] = _mm256_unpackhi_epi32(b[4 * half + 2], b[4 * half + 3]);
    }
    for (int half = 0; half < 2; half++) {
        a[4 * half + 0] = _mm256_unpacklo_epi64(c[4 * half], c[4 * half + 2]);
        a[4 * half + 1] = _mm256_unpackhi_epi64(c[4 * half], c[4 * half + 2]);
        a[4 * half + 2] = _mm256_unpacklo_epi64(c[4 * half + 1], c[4 * half + 3]);
        a[4 * half + 3] = _mm256_unpackhi_epi64(c[4 * half + 1], c[4 * half + 3]);
    }
}

/* 16 rows of 8 elements -> 8 rows of 16. */
AVX2_INLINE void block_2_tall(char *dst, const char *src, int64_t di, int64_t sj) {
    __m256i a[8];
    for (int k = 0; k < 8; k++) a[k] = pair(src + k * sj, src + (k + 8) * sj);
    lanes_2(a);
    for (int k = 0; k < 8; k++) put(dst + k * di, a[k]);
}

/* 8 rows of 16 elements -> 16 rows of 8. */
AVX2_INLINE void block_2_wide(char *dst, const char *src, int64_t di, int64_t sj) {
    __m256i a[8];
    for (int k = 0; k < 8; k++) a[k] = _mm256_loadu_si256((const __m256i *)(src + k * sj));
    lanes_2(a);
    for (int k = 0; k < 8; k++) put_halves(dst + k * di, dst + (k + 8) * di, a[k]);
}

/* 8 rows of 8 elements -> 8 rows of 8. */
AVX2_INLINE void block_2_small(char *dst, const char *src, int64_t di, int64_t sj) {
    __m256i a[8];
    for (int k = 0; k < 8; k++) a[k] = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(src + k * sj)));
    lanes_2(a);
    for (int k = 0; k < 8; k++) _mm_storeu_si128((__m128i *)(dst + k * di), _mm256_castsi256_si128(a[k]));
}

AVX2_INLINE void block_4(char *dst, const char *src, int64_t di, int64_t sj) {
    for (int half = 0; half < 2; half++) {
        const char *from = src + 16 * half;
        char *to = dst + 4 * half * di;
        __m256i a0 = pair(from, from + 4 * sj), a1 = pair(from + sj, from + 5 * sj);
        __m256i a2 = pair(from + 2 * sj, from + 6 * sj), a3 = pair(from + 3 * sj, from + 7 * sj);
        __m256i b0 = _mm256_unpacklo_epi32(a0, a1), b1 = _mm256_unpackhi_epi32(a0, a1);
        __m256i b2 = _mm256_unpacklo_epi32(a2, a3), b3 = _mm256_unpackhi_epi32(a2, a3);
        put(to, _mm256_unpacklo_epi64(b0, b2));
        put(to + di, _mm256_unpackhi_epi64(b0, b2));
        put(to + 2 * di, _mm256_unpacklo_epi64(b1, b3));
        put(to + 3 * di, _mm256_unpackhi_epi64(b1, b3));
    }
}

AVX2_INLINE void block_8(char *dst, const char *src, int64_t di, int64_t sj) {
    for (int half = 0; half < 2; half++) {
        const char *from = src + 16 * half;
        char *to = dst + 2 * half * di;
        __m256i a0 = pair(from, from + 2 * sj), a1 = pair(from + sj, from + 3 * sj);
        put(to, _mm256_unpacklo_epi64(a0, a1));
        put(to + di, _mm256_unpackhi_epi64(a0, a1));
    }
}

BLOCK_TILE(AVX2, avx2_1, uint8_t, 16, 16, block_1, scalar_1)
BLOCK_TILE(AVX2, avx2_2_small, uint16_t, 8, 8, block_2_small, scalar_2)
BLOCK_TILE(AVX2, avx2_2_tall, uint16_t, 16, 8, block_2_tall, avx2_2_small)
BLOCK_TILE(AVX2, avx2_2_wide, uint16_t, 8, 16, block_2_wide, avx2_2_small)
BLOCK_TILE(AVX2, avx2_4_any, uint32_t, 8, 8, block_4, scalar_4)
BLOCK_TILE(AVX2, avx2_8, uint64_t, 4, 4, block_8, scalar_8)

/* ---- panels of 16 x 9: the weights of 3 x 3 kernels, contiguous where rows have 9 elements ------------------------
 *
 * Cut into vectors of 16 bytes, such a panel begins every row one position later than the row before, because 9 = 8 + 1
 * (and 2 * 4 + 1). A column therefore has one element at every position, and transposing is blending: as many steps as
 * an index of a position has bits, and one rotation for each column. No block overlaps another. */

enum { NINE = 9, SIXTEEN = 16 };

static const uint8_t CIRCLE[32] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
                                   0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* Byte b of each lane becomes byte b + `bytes` of the lane, in a circle. */
AVX2_INLINE __m256i turn(__m256i lanes, int bytes) {
    const __m128i *order = (const __m128i *)(CIRCLE + (bytes & 15));
    return _mm256_shuffle_epi8(lanes, _mm256_broadcastsi128_si256(_mm_loadu_si128(order)));
}

/* Position p of vector k becomes position p of vector (k + p) % 9. */
AVX2_INLINE void skew_nine(__m256i v[NINE + 7], int esize) {
    for (int k = 0; k < 7; k++) v[NINE + k] = v[k];
    if (esize == 2) {
        for (int k = 0; k < NINE + 6; k++) v[k] = _mm256_blend_epi16(v[k], v[k + 1], 0xAA);
        for (int k = 0; k < NINE + 4; k++) v[k] = _mm256_blend_epi32(v[k], v[k + 2], 0xAA);
        for (int k = 0; k < NINE; k++) v[k] = _mm256_blend_epi32(v[k], v[k + 4], 0xCC);
    } else {
        for (int k = 0; k < NINE + 2; k++) v[k] = _mm256_blend_epi32(v[k], v[k + 1], 0xAA);
        for (int k = 0; k < NINE; k++) v[k] = _mm256_blend_epi32(v[k], v[k + 2], 0xCC);
    }
}

/* 16 rows of 9 that follow each other -> 9 rows of 16. Vector k begins with element k * (16 / esize) % 9 of a row. */
AVX2_INLINE void from_nine(char *dst, const char *src, int64_t di, int esize) {
    __m256i v[NINE + 7];
    for (int part = 0; part < esize / 2; part++) { /* 32 bytes of every row of 16 */
        const char *low = src + part * 32 * NINE, *high = low + 16 * NINE;
        for (int k = 0; k < NINE; k++) v[(NINE - k * (16 / esize) % NINE) % NINE] = pair(low + 16 * k, high + 16 * k);
        skew_nine(v, esize);
        for (int i = 0; i < NINE; i++) put(dst + i * di + 32 * part, turn(v[(NINE - i) % NINE], i * esize));
    }
}

/* 9 rows of 16 -> 16 rows of 9 that follow each other. */
AVX2_INLINE void to_nine(char *dst, const char *src, int64_t sj, int esize) {
    __m256i v[NINE + 7];
    for (int part = 0; part < esize / 2; part++) {
        char *low = dst + part * 32 * NINE, *high = low + 16 * NINE;
        for (int j = 0; j < NINE; j++) {
            v[j] = turn(_mm256_loadu_si256((const __m256i *)(src + j * sj + 32 * part)), -j * esize);
        }
        skew_nine(v, esize);
        for (int k = 0; k < NINE; k++) put_halves(low + 16 * k, high + 16 * k, v[k * (16 / esize) % NINE]);
    }
}

AVX2 static void from_nine_2(char *dst, const char *src, int64_t di) { from_nine(dst, src, di, 2); }
AVX2 static void from_nine_4(char *dst, const char *src, int64_t di) { from_nine(dst, src, di, 4); }
AVX2 static void to_nine_2(char *dst, const char *src, int64_t sj) { to_nine(dst, src, sj, 2); }
AVX2 static void to_nine_4(char *dst, const char *src, int64_t sj) { to_nine(dst, src, sj, 4); }

/* Narrow destinations (C0 = 16) want whole rows of 32 bytes, narrow sources whole loads of 32 bytes. */
AVX2 static void avx2_2(char *dst, const char *src, int64_t ni, int64_t nj, int64_t di, int64_t sj) {
    if (ni == NINE && nj == SIXTEEN && sj == NINE * 2) {
        from_nine_2(dst, src, di);
    } else if (nj == NINE && ni == SIXTEEN && di == NINE * 2) {
        to_nine_2(dst, src, sj);
    } else {
        (nj >= 16 && ni > nj ? avx2_2_tall : ni >= 16 ? avx2_2_wide : avx2_2_tall)(dst, src, ni, nj, di, sj);
    }
}

AVX2 static void avx2_4(char *dst, const char *src, int64_t ni, int64_t nj, int64_t di, int64_t sj) {
    if (ni == NINE && nj == SIXTEEN && sj == NINE * 4) {
        from_nine_4(dst, src, di);
    } else if (nj == NINE && ni == SIXTEEN && di == NINE * 4) {
        to_nine_4(dst, src, sj);
    } else {
        avx2_4_any(dst, src, ni, nj, di, sj);
    }
}
#endif

typedef void (*tile_fn)(char *, const char *, int64_t, int64_t, int64_t, int64_t);

static tile_fn pick_tile(int esize, int level) {
#if DS_X86_LEVELS
    if (level >= DS_AVX2) return esize == 1 ? avx2_1 : esize == 2 ? avx2_2 : esize == 4 ? avx2_4 : avx2_8;
#endif
    (void)level;
    return esize == 1 ? scalar_1 : esize == 2 ? scalar_2 : esize == 4 ? scalar_4 : scalar_8;
}

/* ---- runs: contiguous bytes on both sides ------------------------------------------------------------------------ */

#define FIXED_RUNS(N)                                                                                                 \
    for (int64_t j = 0; j < b.n; j++) {                                                                               \
        for (int64_t i = 0; i < a.n; i++) memcpy(dst + i * a.d + j * b.d, src + i * a.s + j * b.s, N);                \
    }

static void copy_runs(char *dst, const char *src, ds_dim a, ds_dim b, int64_t run) {
    switch (run) {
    case 1: FIXED_RUNS(1) return;
    case 2: FIXED_RUNS(2) return;
    case 4: FIXED_RUNS(4) return;
    case 8: FIXED_RUNS(8) return;
    case 16: FIXED_RUNS(16) return;
    case 32: FIXED_RUNS(32) return;
    case 64: FIXED_RUNS(64) return;
    case 128: FIXED_RUNS(128) return;
    default: FIXED_RUNS((size_t)run) return;
    }
}

/* ---- streaming: large results bypass the cache, because reading a line only to overwrite it costs a third ---------- */

/* A tile's copy in cache: pitches along I and K (L follows I), rows of `row` bytes that the destination has too. */
typedef struct {
    int64_t i, k, row, bytes;
    int k_outside, joined;
} ds_mirror;

/* The copy that a tile with these axes needs. */
static ds_mirror mirror(const ds_dim axis[DS_AXES], int esize) {
    ds_dim i = axis[DS_I], k = axis[DS_K];
    int64_t row = axis[DS_J].n * esize, full = (row + LINE - 1) / LINE * LINE;
    int k_outside = k.n == 1 || magnitude(i.d) <= magnitude(k.d);
    const ds_dim *inner = k_outside ? &i : &k;
    int joined = inner->d == row;
    int64_t near_pitch = joined ? row : full;
    int64_t far_pitch = (inner->n * axis[DS_L].n * near_pitch + LINE - 1) / LINE * LINE;
    ds_mirror m = {near_pitch, far_pitch, row, far_pitch * (k_outside ? k.n : i.n), k_outside, joined};
    if (!k_outside) m.i = far_pitch, m.k = near_pitch;
    return m;
}

#if DS_X86_LEVELS
/* Fewer than 64 bytes, without a call. */
AVX2_INLINE void copy_short(char *dst, const char *src, int64_t bytes) {
    if (bytes & 32) {
        put(dst, _mm256_loadu_si256((const __m256i *)src));
        dst += 32, src += 32;
    }
    if (bytes & 16) {
        _mm_storeu_si128((__m128i *)dst, _mm_loadu_si128((const __m128i *)src));
        dst += 16, src += 16;
    }
    if (bytes & 8) memcpy(dst, src, 8), dst += 8, src += 8;
    if (bytes & 4) memcpy(dst, src, 4), dst += 4, src += 4;
    if (bytes & 2) memcpy(dst, src, 2), dst += 2, src += 2;
    if (bytes & 1) *dst = *src;
}

/* Store whole cache lines past the cache; the ragged ends, whose lines a neighbour writes too, go through it. */
AVX2 static void stream_row(char *dst, const char *src, int64_t bytes) {
    int64_t head = smaller(bytes, -(int64_t)(uintptr_t)dst & (LINE - 1));
    copy_short(dst, src, head);
    dst += head, src += head, bytes -= head;
    for (; bytes >= LINE; dst += LINE, src += LINE, bytes -= LINE) {
        __m256i low = _mm256_loadu_si256((const __m256i *)src), high = _mm256_loadu_si256((const __m256i *)src + 1);
        _mm256_stream_si256((__m256i *)dst, low);
        _mm256_stream_si256((__m256i *)dst + 1, high);
    }
    copy_short(dst, src, bytes);
}

/* The part of the next tile's source to prefetch: `groups` of `rows` of `bytes`; now at `row` of `group`. */
typedef struct {
    const char *group;
    int64_t groups, jump, rows, step, bytes, row, at;
    int near;
} ds_cursor;

/* The source of a tile in as few and as long rows as possible. */
static ds_cursor cursor(const char *src, const ds_dim axis[DS_AXES], int esize) {
    ds_dim j = axis[DS_J], k = axis[DS_K], l = axis[DS_L];
    int64_t row = axis[DS_I].n * esize;
    ds_cursor next = {src, k.n, k.s, j.n * l.n, j.s, row, 0, 0, row * j.n * k.n * l.n <= NEAR_UNIT};
    if (j.s == row) { /* the rows of a block follow each other */
        next.rows = 1, next.bytes = row * j.n * l.n;
    } else if (k.s == row) { /* the repeats of a row do */
        next.groups = 1, next.bytes = row * k.n;
    }
    return next;
}

/* Prefetch the next bytes. Requests are spread over the work, since those of a burst would wait for each other. */
static void prefetch(ds_cursor *next, int64_t bytes) {
    while (bytes > 0 && next->groups > 0) {
        const char *line = next->group + next->row * next->step + next->at;
        if (next->near) {
            _mm_prefetch(line, _MM_HINT_T0);
        } else {
            _mm_prefetch(line, _MM_HINT_T1);
        }
        bytes -= smaller(LINE, next->bytes - next->at);
        next->at += LINE;
        if (next->at < next->bytes) continue;
        next->at = 0;
        if (++next->row < next->rows) continue;
        next->row = 0;
        next->group += next->jump;
        next->groups--;
    }
}

/* Transpose into a copy of the tile in cache, then stream its rows; the next tile lies `ahead` bytes further. */
static void stream_tile(tile_fn tile, char *dst, const char *src, const ds_dim axis[DS_AXES], int esize, int64_t ahead) {
    _Alignas(LINE) char scratch[SCRATCH];
    ds_mirror m = mirror(axis, esize);
    ds_dim i = axis[DS_I], j = axis[DS_J], k = axis[DS_K], l = axis[DS_L];
    ds_dim outer = m.k_outside ? k : i, inner = m.k_outside ? i : k;
    int64_t outer_pitch = m.k_outside ? m.k : m.i, inner_pitch = m.k_outside ? m.i : m.k;
    ds_cursor next = cursor(src + ahead, axis, esize);
    if (!ahead) next.groups = 0;
    for (int64_t p = 0; p < l.n; p++) {
        for (int64_t n = 0; n < k.n; n++) {
            prefetch(&next, i.n * m.row / 2);
            tile(scratch + n * m.k + p * i.n * m.i, src + n * k.s + p * l.s, i.n, j.n, m.i, j.s);
        }
    }
    for (int64_t a = 0; a < outer.n; a++) {
        if (m.joined) {
            prefetch(&next, m.row * inner.n * l.n);
            stream_row(dst + a * outer.d, scratch + a * outer_pitch, m.row * inner.n * l.n);
        } else {
            for (int64_t b = 0; b < inner.n; b++) {
                prefetch(&next, m.row);
                stream_row(dst + a * outer.d + b * inner.d, scratch + a * outer_pitch + b * inner_pitch, m.row);
            }
        }
    }
}

/* Runs of whole words between aligned addresses, words of 32 bytes or 16. */
#define STREAM_RUNS(WORD, STORE, LOAD, TYPE)                                                                          \
    for (int64_t j = 0; j < b.n; j++) {                                                                               \
        for (int64_t i = 0; i < a.n; i++) {                                                                           \
            char *to = dst + i * a.d + j * b.d;                                                                       \
            const char *from = src + i * a.s + j * b.s;                                                               \
            for (int64_t k = 0; k < run; k += WORD) STORE((TYPE *)(to + k), LOAD((const TYPE *)(from + k)));          \
        }                                                                                                             \
    }

/* Copy runs past the cache: directly between aligned addresses, else by whole rows if the runs join on the destination. */
AVX2 static void stream_runs(char *dst, const char *src, ds_dim a, ds_dim b, int64_t run) {
    uintptr_t address = (uintptr_t)dst | (uintptr_t)run | (uintptr_t)a.d | (uintptr_t)b.d;
    if (address % 32 == 0) {
        STREAM_RUNS(32, _mm256_stream_si256, _mm256_loadu_si256, __m256i)
    } else if (address % 16 == 0 && a.d != run) {
        STREAM_RUNS(16, _mm_stream_si128, _mm_loadu_si128, __m128i)
    } else if (a.d == run && a.n * run >= 4 * LINE && a.n * run <= SCRATCH) {
        _Alignas(LINE) char scratch[SCRATCH];
        for (int64_t j = 0; j < b.n; j++) {
            copy_runs(scratch, src + j * b.s, (ds_dim){a.n, run, a.s}, (ds_dim){1, 0, 0}, run);
            stream_row(dst + j * b.d, scratch, a.n * run);
        }
    } else {
        copy_runs(dst, src, a, b, run);
    }
}
#endif

/* ---- planning ---------------------------------------------------------------------------------------------------- */

/* Drop axes of one element, order by destination stride, join neighbours; returns the number of axes left. */
static int normalise(ds_dim *out, const ds_dim *dim, int ndim) {
    int n = 0;
    for (int k = 0; k < ndim; k++) {
        if (dim[k].n == 1) continue;
        int at = n++;
        while (at > 0 && magnitude(out[at - 1].d) < magnitude(dim[k].d)) {
            out[at] = out[at - 1];
            at--;
        }
        out[at] = dim[k];
    }
    int m = 0;
    for (int k = 0; k < n; k++) {
        ds_dim *last = out + m - 1;
        if (m && last->d == out[k].n * out[k].d && last->s == out[k].n * out[k].s) {
            last->n *= out[k].n;
            last->d = out[k].d;
            last->s = out[k].s;
        } else {
            out[m++] = out[k];
        }
    }
    return m;
}

/* Take the axis at `index` out of the list (none if index < 0: an axis of one element). */
static ds_dim take(ds_dim *dim, int *n, int index) {
    ds_dim found = {1, 0, 0};
    if (index < 0) return found;
    found = dim[index];
    memmove(dim + index, dim + index + 1, (size_t)(*n - index - 1) * sizeof *dim);
    (*n)--;
    return found;
}

/* The axis with these strides, 0 standing for any; -1 if there is none. */
static int find_unit(const ds_dim *dim, int n, int64_t d, int64_t s) {
    for (int k = 0; k < n; k++) {
        if ((!d || dim[k].d == d) && (!s || dim[k].s == s)) return k;
    }
    return -1;
}

/* The axis with the smallest stride in the destination (or source) that is below `limit`. */
static int find_nearest(const ds_dim *dim, int n, int in_source, int64_t limit) {
    int best = -1;
    for (int k = 0; k < n; k++) {
        int64_t stride = magnitude(in_source ? dim[k].s : dim[k].d);
        if (stride < limit) {
            best = k;
            limit = stride;
        }
    }
    return best;
}

/* Bytes that one step of a loop moves along one side. */
static int64_t reach(ds_loop loop, int by_source) { return magnitude((by_source ? loop.s : loop.d) * loop.tile); }

/* Contiguous bytes that one unit touches on one side. */
static int64_t contiguous(const ds_dim axis[DS_AXES], const int64_t tile[DS_AXES], int64_t bytes, int by_source) {
    for (int again = 1; again;) {
        again = 0;
        for (int k = 0; k < DS_AXES; k++) {
            if (axis[k].n > 1 && (by_source ? axis[k].s : axis[k].d) == bytes) {
                bytes *= tile[k];
                again = tile[k] == axis[k].n && tile[k] > 1;
                break;
            }
        }
    }
    return bytes;
}

/* Insert a loop where its reach belongs, the widest outermost. */
static void add_loop(ds_job *job, int axis, ds_dim dim, int64_t tile, int by_source) {
    if (axis < 0 && dim.n == 1) return;
    if (axis >= 0 && tile >= dim.n) return; /* the axis is inside one unit as a whole */
    ds_loop loop = {axis, dim.n, tile, dim.d, dim.s, (dim.n + tile - 1) / tile};
    int at = job->nloops++;
    while (at > 0 && reach(job->loop[at - 1], by_source) < reach(loop, by_source)) {
        job->loop[at] = job->loop[at - 1];
        at--;
    }
    job->loop[at] = loop;
}

int ds_layout_plan(ds_job *job, const ds_dim *dims, int ndim, int esize, int level, int stream) {
    ds_dim dim[DS_MAX_DIMS];
    if (ndim > DS_MAX_DIMS || (esize != 1 && esize != 2 && esize != 4 && esize != 8)) return -1;
    memset(job, 0, sizeof *job);
    job->esize = esize;
    job->level = level;
    int64_t total = esize;
    for (int k = 0; k < ndim; k++) {
        if (dims[k].n <= 0) return 0; /* nothing to copy: no units */
        total *= dims[k].n;
    }
    int n = normalise(dim, dims, ndim);
    ds_dim *axis = job->axis;
    int64_t tile[DS_AXES] = {1, 1, 1, 1};
    axis[DS_L] = take(dim, &n, -1);
    int i = find_unit(dim, n, 0, esize), j = find_unit(dim, n, esize, 0);
    int both = find_unit(dim, n, esize, esize);
    if (i >= 0 && j >= 0 && both < 0) {
        job->kind = DS_TRANSPOSE;
        ds_dim keep = dim[j];
        axis[DS_I] = take(dim, &n, i);
        axis[DS_J] = take(dim, &n, find_unit(dim, n, keep.d, keep.s));
        int64_t wide_i = axis[DS_I].n * esize, wide_j = axis[DS_J].n * esize;
        int k = -1;
        int64_t repeats = REPEATS;
        if (wide_j <= NARROW) k = find_nearest(dim, n, 0, magnitude(axis[DS_I].d));
        if (k < 0 && wide_i <= NARROW) {
            k = find_nearest(dim, n, 1, magnitude(axis[DS_J].s));
            repeats = SOURCE_REPEATS;
        }
        axis[DS_K] = take(dim, &n, k);
        tile[DS_I] = (wide_j <= NARROW ? TILE_WIDE : TILE_SQUARE) / esize;
        tile[DS_J] = (wide_i <= NARROW ? TILE_WIDE : TILE_SQUARE) / esize;
        int64_t block = smaller(tile[DS_I], axis[DS_I].n) * smaller(tile[DS_J], axis[DS_J].n) * esize;
        int by_rows = k >= 0 && repeats == SOURCE_REPEATS && magnitude(axis[DS_K].d) >= wide_j;
        if (by_rows && axis[DS_I].d == wide_j && axis[DS_I].n * wide_j <= PANEL) {
            /* the block is whole and contiguous in the destination: join what follows it there and its rows here */
            int l = find_unit(dim, n, axis[DS_I].n * wide_j, axis[DS_J].n * axis[DS_J].s);
            axis[DS_L] = take(dim, &n, l);
            tile[DS_L] = smaller(axis[DS_L].n, larger(1, JOINED / block));
            block *= tile[DS_L];
        }
        tile[DS_K] = larger(1, smaller(repeats, UNIT / block));
        if (tile[DS_K] > 4) tile[DS_K] -= tile[DS_K] % 4; /* whole cache lines for blocks of 16 */
    } else {
        job->kind = DS_COPY;
        ds_dim run = take(dim, &n, both);
        int64_t bytes = run.n * esize;
        axis[DS_K] = (ds_dim){bytes, 1, 1};
        axis[DS_I] = take(dim, &n, find_nearest(dim, n, 0, INT64_MAX));
        axis[DS_J] = take(dim, &n, find_nearest(dim, n, 1, INT64_MAX));
        tile[DS_I] = bytes > LONG_RUN / RUNS ? 1 : RUNS;
        tile[DS_J] = larger(1, RUN_BYTES / bytes);
        tile[DS_K] = LONG_RUN;
    }
    job->unit_bytes = job->kind == DS_COPY ? 1 : esize;
    job->units = 1;
    for (int k = 0; k < DS_AXES; k++) {
        tile[k] = smaller(tile[k], axis[k].n);
        job->unit_bytes *= tile[k];
    }
    /* walk along the side with the shorter contiguous runs, which needs its neighbours in cache */
    int64_t least = job->kind == DS_COPY ? 1 : esize;
    int64_t stretch_d = contiguous(axis, tile, least, 0), stretch_s = contiguous(axis, tile, least, 1);
    job->stream = level >= DS_AVX2 && stream != 0 && (stream > 0 || total >= STREAM_FROM);
    if (job->kind == DS_TRANSPOSE && job->stream) {
        ds_dim part[DS_AXES];
        for (int k = 0; k < DS_AXES; k++) part[k] = (ds_dim){tile[k], axis[k].d, axis[k].s};
        job->stream = stretch_d >= LINE && mirror(part, esize).bytes <= SCRATCH;
    }
    int repeated = job->kind == DS_TRANSPOSE && axis[DS_K].n > 1;
    int by_source = stretch_s < stretch_d || (repeated && job->stream); /* streaming stores do not wait, so that reads decide */
    job->ahead = by_source && repeated;
    for (int k = 0; k < DS_AXES; k++) add_loop(job, k, axis[k], tile[k], by_source);
    for (int k = 0; k < n; k++) add_loop(job, -1, dim[k], 1, by_source);
    for (int k = 0; k < job->nloops; k++) job->units *= job->loop[k].count;
    return 0;
}

void ds_layout_run(const ds_job *job, char *dst, const char *src, int64_t begin, int64_t end) {
    int64_t at[DS_MAX_LOOPS];
    int64_t rest = begin;
    tile_fn tile = pick_tile(job->esize, job->level);
    for (int k = job->nloops - 1; k >= 0; k--) {
        at[k] = rest % job->loop[k].count;
        rest /= job->loop[k].count;
    }
#if DS_X86_LEVELS
    int64_t ahead = job->nloops && job->ahead ? job->loop[job->nloops - 1].s * job->loop[job->nloops - 1].tile : 0;
#endif
    for (int64_t unit = begin; unit < end; unit++) {
        ds_dim axis[DS_AXES];
        memcpy(axis, job->axis, sizeof axis);
        char *to = dst;
        const char *from = src;
        for (int k = 0; k < job->nloops; k++) {
            const ds_loop *loop = job->loop + k;
            int64_t start = at[k] * loop->tile;
            to += start * loop->d;
            from += start * loop->s;
            if (loop->axis >= 0) axis[loop->axis].n = smaller(loop->tile, loop->n - start);
        }
        if (job->kind == DS_TRANSPOSE) {
#if DS_X86_LEVELS
            if (job->stream) {
                stream_tile(tile, to, from, axis, job->esize, ahead);
            } else
#endif
                for (int64_t k = 0; k < axis[DS_K].n; k++) {
                    for (int64_t l = 0; l < axis[DS_L].n; l++) {
                        tile(to + k * axis[DS_K].d + l * axis[DS_L].d, from + k * axis[DS_K].s + l * axis[DS_L].s,
                             axis[DS_I].n, axis[DS_J].n, axis[DS_I].d, axis[DS_J].s);
                    }
                }
        } else {
#if DS_X86_LEVELS
            if (job->stream) {
                stream_runs(to, from, axis[DS_I], axis[DS_J], axis[DS_K].n);
            } else
#endif
                copy_runs(to, from, axis[DS_I], axis[DS_J], axis[DS_K].n);
        }
        for (int k = job->nloops - 1; k >= 0 && ++at[k] == job->loop[k].count; k--) at[k] = 0;
    }
#if DS_X86_LEVELS
    if (job->stream) _mm_sfence();
#endif
}
