/* SHA1 by the CPU's own rounds (SHA extensions). Each group of four rounds waits for the one before, so a second
 * message fills the gaps. digest.c includes this once; only `has_sha` CPUs run it. */

#define SHA_TARGET __attribute__((target("sha,sse4.1,ssse3")))

typedef struct {
    __m128i abcd, e; /* e: in the top word */
} sha_state;

static inline SHA_TARGET sha_state sha_load(const uint32_t *state, int lanes, int l)
{
    sha_state s;
    s.abcd = _mm_set_epi32((int)state[l], (int)state[lanes + l], (int)state[2 * lanes + l], (int)state[3 * lanes + l]);
    s.e = _mm_set_epi32((int)state[4 * lanes + l], 0, 0, 0);
    return s;
}

static inline SHA_TARGET void sha_store(uint32_t *state, int lanes, int l, sha_state s)
{
    uint32_t words[4];
    _mm_storeu_si128((__m128i *)words, s.abcd);
    for (int w = 0; w < 4; w++)
        state[w * lanes + l] = words[3 - w];
    state[4 * lanes + l] = (uint32_t)_mm_extract_epi32(s.e, 3);
}

/* words 4g .. 4g + 3 of message x, the first 16 from memory */
#define READ(x, g)                                                                                                     \
    x##m##g = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(x##p + 16 * g)), bytes);
#define EXTEND(x, a, b, c, d)                                                                                          \
    x##m##a = _mm_sha1msg2_epu32(_mm_xor_si128(_mm_sha1msg1_epu32(x##m##a, x##m##b), x##m##c), x##m##d);
/* four rounds of function f; the e of the next four is the a of before */
#define ROUNDS(x, f, a)                                                                                                \
    x##e = _mm_sha1nexte_epu32(x##e, x##m##a);                                                                         \
    x##t = x##s.abcd;                                                                                                  \
    x##s.abcd = _mm_sha1rnds4_epu32(x##s.abcd, x##e, f);                                                               \
    x##e = x##t;
#define FIRST(x)                                                                                                       \
    READ(x, 0)                                                                                                         \
    x##e = _mm_add_epi32(x##s.e, x##m0);                                                                               \
    x##t = x##s.abcd;                                                                                                  \
    x##s.abcd = _mm_sha1rnds4_epu32(x##s.abcd, x##e, 0);                                                               \
    x##e = x##t;
#define BEGIN(x) const sha_state x##start = x##s;
#define END(x)                                                                                                         \
    x##s.e = _mm_sha1nexte_epu32(x##e, x##start.e);                                                                    \
    x##s.abcd = _mm_add_epi32(x##s.abcd, x##start.abcd);                                                               \
    x##p += 64;
#define DECLARE(x, l)                                                                                                  \
    sha_state x##s = sha_load(state, lanes, l);                                                                        \
    const uint8_t *x##p = p[l];                                                                                        \
    __m128i x##m0, x##m1, x##m2, x##m3, x##e, x##t;
/* EACH(F, ...) does F for every message of the function */
#define SHA_BLOCK                                                                                                      \
    EACH(BEGIN)                                                                                                        \
    EACH(FIRST)                                                                                                        \
    STEP0(1) STEP0(2) STEP0(3)                                                                                         \
    STEP(0, 0, 1, 2, 3)                                                                                                \
    STEP(1, 1, 2, 3, 0) STEP(1, 2, 3, 0, 1) STEP(1, 3, 0, 1, 2) STEP(1, 0, 1, 2, 3) STEP(1, 1, 2, 3, 0)                \
    STEP(2, 2, 3, 0, 1) STEP(2, 3, 0, 1, 2) STEP(2, 0, 1, 2, 3) STEP(2, 1, 2, 3, 0) STEP(2, 2, 3, 0, 1)                \
    STEP(3, 3, 0, 1, 2) STEP(3, 0, 1, 2, 3) STEP(3, 1, 2, 3, 0) STEP(3, 2, 3, 0, 1) STEP(3, 3, 0, 1, 2)                \
    EACH(END)
#define STEP0(g) EACH2(READ, g) EACH3(ROUNDS, 0, g)
#define STEP(f, a, b, c, d) EACH5(EXTEND, a, b, c, d) EACH3(ROUNDS, f, a)

#define EACH(F) F(x)
#define EACH2(F, a) F(x, a)
#define EACH3(F, a, b) F(x, a, b)
#define EACH5(F, a, b, c, d) F(x, a, b, c, d)
static SHA_TARGET void sha1_sha(uint32_t *state, const uint8_t **p, int64_t blocks)
{
    const __m128i bytes = _mm_set_epi64x(0x0001020304050607, 0x08090a0b0c0d0e0f);
    const int lanes = 1;
    DECLARE(x, 0)
    for (; blocks; blocks--) {
        SHA_BLOCK
    }
    p[0] = xp;
    sha_store(state, lanes, 0, xs);
}
#undef EACH
#undef EACH2
#undef EACH3
#undef EACH5

#define EACH(F) F(x) F(y)
#define EACH2(F, a) F(x, a) F(y, a)
#define EACH3(F, a, b) F(x, a, b) F(y, a, b)
#define EACH5(F, a, b, c, d) F(x, a, b, c, d) F(y, a, b, c, d)
static SHA_TARGET void sha1_sha_pair(uint32_t *state, const uint8_t **p, int64_t blocks)
{
    const __m128i bytes = _mm_set_epi64x(0x0001020304050607, 0x08090a0b0c0d0e0f);
    const int lanes = 2;
    DECLARE(x, 0)
    DECLARE(y, 1)
    for (; blocks; blocks--) {
        SHA_BLOCK
    }
    p[0] = xp;
    p[1] = yp;
    sha_store(state, lanes, 0, xs);
    sha_store(state, lanes, 1, ys);
}
#undef EACH
#undef EACH2
#undef EACH3
#undef EACH5
#undef READ
#undef EXTEND
#undef ROUNDS
#undef FIRST
#undef BEGIN
#undef END
#undef DECLARE
#undef SHA_BLOCK
#undef STEP0
#undef STEP

/* CPUID leaf 7, EBX bit 29 */
static int has_sha(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1);
}
