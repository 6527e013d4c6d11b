/* The C kernels without Python, for the sanitizers: every type at every level must give the bits of the baseline. The
 * AVX-512 source takes part on any CPU with AVX2: its vectors are taken apart into two of 256 bits. */
#include <stdio.h>
#include <stdlib.h>

#include "dumpsim_ext.h"

#if DS_X86_LEVELS
#include <immintrin.h>
#undef DS_TARGET_AVX512
#define DS_TARGET_AVX512 DS_TARGET_AVX2
typedef struct {
    __m256d low, high;
} pair;
#define EMULATED static inline __attribute__((target("avx2,fma,f16c")))
EMULATED pair pair_set1(double x) { return (pair){_mm256_set1_pd(x), _mm256_set1_pd(x)}; }
EMULATED pair pair_add(pair a, pair b) { return (pair){_mm256_add_pd(a.low, b.low), _mm256_add_pd(a.high, b.high)}; }
EMULATED pair pair_mul(pair a, pair b) { return (pair){_mm256_mul_pd(a.low, b.low), _mm256_mul_pd(a.high, b.high)}; }
EMULATED pair pair_load(const double *p) { return (pair){_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)}; }
EMULATED pair pair_from_i32(__m256i x)
{
    return (pair){_mm256_cvtepi32_pd(_mm256_castsi256_si128(x)), _mm256_cvtepi32_pd(_mm256_extracti128_si256(x, 1))};
}
EMULATED pair pair_fma(pair a, pair b, pair c)
{
    return (pair){_mm256_fmadd_pd(a.low, b.low, c.low), _mm256_fmadd_pd(a.high, b.high, c.high)};
}
EMULATED pair pair_widen(__m256 x)
{
    return (pair){_mm256_cvtps_pd(_mm256_castps256_ps128(x)), _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))};
}
EMULATED void pair_store(double *p, pair x)
{
    _mm256_storeu_pd(p, x.low);
    _mm256_storeu_pd(p + 4, x.high);
}
#define __m512d pair
#define _mm512_set1_pd pair_set1
#define _mm512_add_pd pair_add
#define _mm512_fmadd_pd pair_fma
#define _mm512_cvtps_pd pair_widen
#define _mm512_mul_pd pair_mul
#define _mm512_loadu_pd pair_load
#define _mm512_cvtepi32_pd pair_from_i32
#define _mm512_storeu_pd pair_store
#endif

#include "stats.c"
#undef LANES
#include "digest.c"

typedef void (*lane_fn)(uint32_t *, const uint8_t **, int64_t);

static uint64_t seed = 1;

static uint32_t next(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 32);
}

static ds_stats measured(chunk_fn chunk, const void *data, int64_t n, int dtype)
{
    lanes_t lanes = {.max = -INFINITY, .min = INFINITY};
    chunk(&lanes, data, n, dtype);
    return finish(&lanes, data, n, dtype);
}

static int check_stats(void)
{
    static const int64_t SIZES[] = {1, 2, 7, 15, 16, 17, 31, 33, 2047, 2048, 2049, 4100, 65535, 65536};
    int failures = 0;
    for (int dtype = 0; dtype < DS_DTYPES; dtype++)
        for (unsigned s = 0; s < sizeof SIZES / sizeof *SIZES; s++)
            for (int wild = 0; wild < 3; wild++) {
                const int64_t n = SIZES[s];
                const size_t bytes = (size_t)(n * ds_itemsize(dtype));
                uint8_t *data = malloc(bytes); /* to the byte, so that reading further is seen */
                for (size_t i = 0; i < bytes; i++)
                    data[i] = wild == 2 ? 0 : (uint8_t)next();
                if (wild == 0) /* exponents in the middle: no NaN, no infinity */
                    for (size_t i = ds_itemsize(dtype) - 1; i < bytes; i += (size_t)ds_itemsize(dtype))
                        data[i] = (data[i] & 0x80) | 0x3e;
                const ds_stats want = measured(chunk_baseline, data, n, dtype);
#if DS_X86_LEVELS
                if (ds_cpu_level() >= DS_AVX2) {
                    const ds_stats avx2 = measured(chunk_avx2, data, n, dtype);
                    const ds_stats avx512 = measured(chunk_avx512, data, n, dtype);
                    if (memcmp(&want, &avx2, sizeof want) || memcmp(&want, &avx512, sizeof want)) {
                        printf("statistics of type %d, %d elements, wild %d differ\n", dtype, (int)n, wild);
                        failures++;
                    }
                }
#endif
                ds_tree tree;
                tree.leaves = 0;
                ds_measure(&tree, data, n, dtype, DS_AVX512);
                ds_read_words(data, (int64_t)bytes / 8, DS_AVX512);
                if (ds_tree_root(&tree).count != n || want.count != n) {
                    printf("count of type %d, %d elements\n", dtype, (int)n);
                    failures++;
                }
                free(data);
            }
    return failures;
}

static int check_lanes(const char *name, lane_fn single, lane_fn side, int lanes)
{
    enum { BLOCKS = 3, WIDEST = 16 };
    uint32_t state[5 * WIDEST], alone[5];
    uint8_t *data[WIDEST];
    const uint8_t *p[WIDEST];
    int failures = 0;
    for (int l = 0; l < lanes; l++) {
        data[l] = malloc(64 * BLOCKS);
        for (int i = 0; i < 64 * BLOCKS; i++)
            data[l][i] = (uint8_t)next();
        p[l] = data[l];
        for (int w = 0; w < 5; w++)
            state[w * lanes + l] = START[w];
    }
    side(state, p, BLOCKS);
    for (int l = 0; l < lanes; l++) {
        const uint8_t *one_p = data[l];
        memcpy(alone, START, sizeof alone);
        single(alone, &one_p, BLOCKS);
        for (int w = 0; w < 5; w++)
            if (alone[w] != state[w * lanes + l]) {
                printf("%s: lane %d differs\n", name, l);
                failures++;
                break;
            }
        free(data[l]);
    }
    return failures;
}

static int check_batch(void)
{
    enum { COUNT = 37 };
    int failures = 0;
    for (int algorithm = DS_MD5; algorithm <= DS_SHA1; algorithm++)
        for (int level = DS_BASELINE; level <= DS_AVX512; level++) {
            ds_message messages[COUNT];
            ds_batch batch;
            for (int i = 0; i < COUNT; i++) {
                messages[i].length = i % 3 ? next() % 700 : (uint64_t)i;
                uint8_t *data = malloc(messages[i].length + !messages[i].length);
                for (uint64_t k = 0; k < messages[i].length; k++)
                    data[k] = (uint8_t)next();
                messages[i].data = data;
            }
            ds_batch_begin(&batch, messages, COUNT, algorithm, level);
            while (ds_batch_run(&batch, 1000))
                ;
            for (int i = 0; i < COUNT; i++) {
                uint8_t digest[20];
                ds_stream stream;
                ds_stream_begin(&stream, algorithm, DS_AVX512 - level);
                for (uint64_t k = 0; k < messages[i].length;) {
                    const uint64_t step = messages[i].length - k < 37 ? messages[i].length - k : 37;
                    ds_stream_update(&stream, messages[i].data + k, step);
                    k += step;
                }
                ds_stream_end(&stream, digest);
                if (memcmp(digest, messages[i].digest, algorithm == DS_MD5 ? 16 : 20)) {
                    printf("digest %d, level %d, message %d differs\n", algorithm, level, i);
                    failures++;
                }
                free((void *)messages[i].data);
            }
        }
    return failures;
}

int main(void)
{
    int failures = check_stats() + check_batch();
    failures += check_lanes("md5 baseline", md5_one, md5_baseline, 4);
    failures += check_lanes("sha1 baseline", sha1_one, sha1_baseline, 4);
#if DS_X86_LEVELS
    if (ds_cpu_level() >= DS_AVX2) {
        failures += check_lanes("md5 avx2", md5_one, md5_avx2, 16);
        failures += check_lanes("sha1 avx2", sha1_one, sha1_avx2, 8);
        if (has_sha()) {
            failures += check_lanes("sha1 by instruction", sha1_one, sha1_sha, 1);
            failures += check_lanes("sha1 by instruction, pair", sha1_one, sha1_sha_pair, 2);
        }
        failures += check_lanes("md5 avx512", md5_one, md5_avx512, 16);
        failures += check_lanes("sha1 avx512", sha1_one, sha1_avx512, 16);
    }
#endif
    printf("%d failures\n", failures);
    return failures != 0;
}
