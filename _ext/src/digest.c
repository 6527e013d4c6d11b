/* MD5 and SHA1. One message cannot be split, so many are hashed side by side: one message a SIMD lane, 4 lanes at
 * baseline, 8 or 16 with AVX2, 16 with AVX-512. SHA1 by the CPU's own instructions takes two at a time, and only from
 * the level AVX2 on, so that a forced baseline does not use them. A lane whose message ends takes the next one; when
 * fewer messages than a third of the lanes are left, they are hashed one by one. */
#include <string.h>

#include "digest.h"
#include "dumpsim_ext.h"

#if DS_X86_LEVELS
#include <cpuid.h>
#include <immintrin.h>
#endif

static inline uint32_t little(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint32_t big(const uint8_t *p)
{
    return (uint32_t)p[3] | (uint32_t)p[2] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[0] << 24;
}

#define MD5 1
#define SHA1 1
#define NAME(f) f##_one
#define TARGET
#define WORD uint32_t
#define LANES 1
#define GATHER(f, p, at) f((p)[0] + (at))
#include "digest_body.inc.h"
#undef NAME
#undef TARGET
#undef WORD
#undef LANES
#undef GATHER

#if defined(__GNUC__) || defined(__clang__)
#define DS_VECTORS 1
typedef uint32_t word4 __attribute__((vector_size(16)));
typedef uint32_t word8 __attribute__((vector_size(32)));
typedef uint32_t word16 __attribute__((vector_size(64)));
#define AT(f, p, at, l) f((p)[l] + (at))
#define FOUR(f, p, at, l) AT(f, p, at, l), AT(f, p, at, l + 1), AT(f, p, at, l + 2), AT(f, p, at, l + 3)

#define NAME(f) f##_baseline
#define TARGET
#define WORD word4
#define LANES 4
#define GATHER(f, p, at) ((word4){FOUR(f, p, at, 0)})
#include "digest_body.inc.h"
#undef NAME
#undef TARGET
#undef WORD
#undef LANES
#undef GATHER
#else
#define DS_VECTORS 0
#endif

#if DS_X86_LEVELS
#define SIXTEEN(f, p, at) ((word16){FOUR(f, p, at, 0), FOUR(f, p, at, 4), FOUR(f, p, at, 8), FOUR(f, p, at, 12)})

/* each step of MD5 waits for the one before, and a second vector fills the gaps */
#undef MD5
#define MD5 0
#define NAME(f) f##_avx2
#define TARGET DS_TARGET_AVX2
#define WORD word8
#define LANES 8
#define GATHER(f, p, at) ((word8){FOUR(f, p, at, 0), FOUR(f, p, at, 4)})
#include "digest_body.inc.h"
#undef NAME
#undef TARGET
#undef WORD
#undef LANES
#undef GATHER

#undef MD5
#undef SHA1
#define MD5 1
#define SHA1 0
#define NAME(f) f##_avx2
#define TARGET DS_TARGET_AVX2
#define WORD word16
#define LANES 16
#define GATHER SIXTEEN
#include "digest_body.inc.h"
#undef NAME
#undef TARGET
#undef WORD
#undef LANES
#undef GATHER

#undef SHA1
#define SHA1 1
#define NAME(f) f##_avx512
#define TARGET DS_TARGET_AVX512
#define WORD word16
#define LANES 16
#define GATHER SIXTEEN
#include "digest_body.inc.h"
#undef NAME
#undef TARGET
#undef WORD
#undef LANES
#undef GATHER

#include "digest_sha.inc.h"
#endif
#undef MD5
#undef SHA1

static const uint32_t START[5] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u, 0xc3d2e1f0u};

/* ---- the functions of a level ---- */

typedef void (*blocks_fn)(uint32_t *, const uint8_t **, int64_t);

typedef struct {
    blocks_fn one, side; /* `side` does `lanes` messages at a time */
    int lanes;
} engine;

static engine engine_of(int algorithm, int level)
{
    const int md5 = algorithm == DS_MD5, has = ds_cpu_level();
    engine e = {md5 ? md5_one : sha1_one, md5 ? md5_one : sha1_one, 1};
    level = level < has ? level : has;
#if DS_VECTORS
    e.side = md5 ? md5_baseline : sha1_baseline;
    e.lanes = 4;
#endif
#if DS_X86_LEVELS
    if (level >= DS_AVX2 && !md5 && has_sha())
        return (engine){sha1_sha, sha1_sha_pair, 2};
    if (level == DS_AVX512)
        return (engine){e.one, md5 ? md5_avx512 : sha1_avx512, 16};
    if (level == DS_AVX2)
        return (engine){e.one, md5 ? md5_avx2 : sha1_avx2, md5 ? 16 : 8};
#endif
    return e;
}

/* ---- one stream ---- */

static void one(const ds_stream *stream, uint32_t *state, const uint8_t *data, uint64_t blocks)
{
    engine_of(stream->algorithm, stream->level).one(state, &data, (int64_t)blocks);
}

/* The padded end of a message of `length` bytes whose last `length % 64` bytes are `rest`: 1 or 2 blocks. */
static int pad(int algorithm, const uint8_t *rest, uint64_t length, uint8_t *tail)
{
    const int left = (int)(length % 64), blocks = left < 56 ? 1 : 2;
    memset(tail, 0, 128);
    if (left)
        memcpy(tail, rest, left);
    tail[left] = 0x80;
    for (int i = 0; i < 8; i++)
        tail[64 * blocks - 8 + i] = (uint8_t)(length * 8 >> 8 * (algorithm == DS_MD5 ? i : 7 - i));
    return blocks;
}

static void put(int algorithm, const uint32_t *state, uint8_t *digest)
{
    for (int i = 0; i < (algorithm == DS_MD5 ? 16 : 20); i++)
        digest[i] = (uint8_t)(state[i / 4] >> 8 * (algorithm == DS_MD5 ? i % 4 : 3 - i % 4));
}

void ds_stream_begin(ds_stream *stream, int algorithm, int level)
{
    memcpy(stream->state, START, sizeof START);
    stream->algorithm = algorithm;
    stream->level = level;
    stream->length = 0;
}

void ds_stream_update(ds_stream *stream, const uint8_t *data, uint64_t length)
{
    const uint64_t held = stream->length % 64;
    if (!length)
        return;
    stream->length += length;
    if (held) {
        const uint64_t fill = length < 64 - held ? length : 64 - held;
        memcpy(stream->pending + held, data, fill);
        if (held + fill < 64)
            return;
        one(stream, stream->state, stream->pending, 1);
        data += fill;
        length -= fill;
    }
    one(stream, stream->state, data, length / 64);
    memcpy(stream->pending, data + length / 64 * 64, length % 64);
}

void ds_stream_end(ds_stream *stream, uint8_t *digest)
{
    uint8_t tail[128];
    const int blocks = pad(stream->algorithm, stream->pending, stream->length, tail);
    one(stream, stream->state, tail, (uint64_t)blocks);
    put(stream->algorithm, stream->state, digest);
}

/* ---- many messages ---- */

/* Set a lane's next blocks: its tail, or its next message. Returns 0 if there is none. */
static int advance(ds_batch *batch, ds_lane *lane)
{
    while (!lane->message || !lane->blocks) {
        if (lane->message && lane->tail_blocks) {
            lane->at = lane->tail;
            lane->blocks = (uint64_t)lane->tail_blocks;
            lane->tail_blocks = 0;
        } else {
            if (lane->message)
                put(batch->algorithm, lane->state, lane->message->digest);
            lane->message = 0;
            if (batch->next == batch->count)
                return 0;
            ds_message *message = &batch->messages[batch->next++];
            lane->message = message;
            lane->at = message->data;
            lane->blocks = message->length / 64;
            lane->tail_blocks =
                pad(batch->algorithm, message->data + message->length / 64 * 64, message->length, lane->tail);
            memcpy(lane->state, START, sizeof START);
        }
    }
    return 1;
}

void ds_batch_begin(ds_batch *batch, ds_message *messages, int64_t count, int algorithm, int level)
{
    batch->messages = messages;
    batch->count = count;
    batch->next = 0;
    batch->algorithm = algorithm;
    batch->level = level;
    for (int l = 0; l < DS_DIGEST_LANES; l++)
        batch->lane[l].message = 0;
}

int ds_batch_run(ds_batch *batch, int64_t budget)
{
    const engine e = engine_of(batch->algorithm, batch->level);
    const int lanes = e.lanes;
    while (budget > 0) {
        ds_lane *active[DS_DIGEST_LANES];
        uint64_t blocks = (uint64_t)(budget + 63) / 64;
        int n = 0;
        for (int l = 0; l < lanes; l++) {
            ds_lane *lane = &batch->lane[l];
            if (!advance(batch, lane))
                continue;
            active[n++] = lane;
            blocks = lane->blocks < blocks ? lane->blocks : blocks;
        }
        if (!n)
            return 0;
        if (3 * n < lanes || n == 1) {
            ds_lane *lane = active[0];
            blocks = (uint64_t)(budget + 63) / 64;
            blocks = lane->blocks < blocks ? lane->blocks : blocks;
            e.one(lane->state, &lane->at, (int64_t)blocks);
            lane->blocks -= blocks;
            budget -= (int64_t)blocks * 64;
            continue;
        }
        uint32_t state[5 * DS_DIGEST_LANES];
        const uint8_t *p[DS_DIGEST_LANES];
        const uint64_t share = (uint64_t)(budget / n + 63) / 64;
        blocks = blocks < share ? blocks : share;
        for (int l = 0; l < lanes; l++) { /* an idle lane repeats the first one; its result is not used */
            const ds_lane *lane = active[l < n ? l : 0];
            p[l] = lane->at;
            for (int w = 0; w < 5; w++)
                state[w * lanes + l] = lane->state[w];
        }
        e.side(state, p, (int64_t)blocks);
        for (int l = 0; l < n; l++) {
            active[l]->at = p[l];
            active[l]->blocks -= blocks;
            for (int w = 0; w < 5; w++)
                active[l]->state[w] = state[w * lanes + l];
        }
        budget -= (int64_t)blocks * 64 * n;
    }
    return 1;
}
