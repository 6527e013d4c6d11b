/* MD5 (RFC 1321) and SHA1 (RFC 3174) over whole blocks of 64 bytes, LANES messages side by side. digest.c includes this
 * once for one message (WORD = uint32_t) and once per SIMD level (WORD = a vector of LANES words) with
 *   NAME(f)         the name of a function of this width
 *   TARGET          its target attribute
 *   WORD, LANES     one word of every message
 *   GATHER(f, p, at) f(p[0] + at) ... f(p[LANES - 1] + at) as one WORD
 *   MD5, SHA1       which of the two it is for
 * state holds word after word, LANES of each; p[l] points to the blocks of message l and is advanced past them. */

#define ROTATE(x, n) (((x) << (n)) | ((x) >> (32 - (n))))

#if MD5
#define F(x, y, z) ((z) ^ ((x) & ((y) ^ (z))))
#define G(x, y, z) ((y) ^ ((z) & ((x) ^ (y))))
#define H(x, y, z) ((x) ^ (y) ^ (z))
#define I(x, y, z) ((y) ^ ((x) | ~(z)))
#define STEP(f, a, b, c, d, k, s, t)                                                                                   \
    a += f(b, c, d) + m[k] + t;                                                                                        \
    a = ROTATE(a, s) + b;

TARGET static void NAME(md5)(uint32_t *state, const uint8_t **p, int64_t blocks)
{
    WORD a, b, c, d, m[16];
    memcpy(&a, state, sizeof a);
    memcpy(&b, state + LANES, sizeof b);
    memcpy(&c, state + 2 * LANES, sizeof c);
    memcpy(&d, state + 3 * LANES, sizeof d);
    for (; blocks; blocks--) {
        const WORD a0 = a, b0 = b, c0 = c, d0 = d;
        for (int k = 0; k < 16; k++)
            m[k] = GATHER(little, p, 4 * k);
        STEP(F, a, b, c, d, 0, 7, 0xd76aa478u)
        STEP(F, d, a, b, c, 1, 12, 0xe8c7b756u)
        STEP(F, c, d, a, b, 2, 17, 0x242070dbu)
        STEP(F, b, c, d, a, 3, 22, 0xc1bdceeeu)
        STEP(F, a, b, c, d, 4, 7, 0xf57c0fafu)
        STEP(F, d, a, b, c, 5, 12, 0x4787c62au)
        STEP(F, c, d, a, b, 6, 17, 0xa8304613u)
        STEP(F, b, c, d, a, 7, 22, 0xfd469501u)
        STEP(F, a, b, c, d, 8, 7, 0x698098d8u)
        STEP(F, d, a, b, c, 9, 12, 0x8b44f7afu)
        STEP(F, c, d, a, b, 10, 17, 0xffff5bb1u)
        STEP(F, b, c, d, a, 11, 22, 0x895cd7beu)
        STEP(F, a, b, c, d, 12, 7, 0x6b901122u)
        STEP(F, d, a, b, c, 13, 12, 0xfd987193u)
        STEP(F, c, d, a, b, 14, 17, 0xa679438eu)
        STEP(F, b, c, d, a, 15, 22, 0x49b40821u)
        STEP(G, a, b, c, d, 1, 5, 0xf61e2562u)
        STEP(G, d, a, b, c, 6, 9, 0xc040b340u)
        STEP(G, c, d, a, b, 11, 14, 0x265e5a51u)
        STEP(G, b, c, d, a, 0, 20, 0xe9b6c7aau)
        STEP(G, a, b, c, d, 5, 5, 0xd62f105du)
        STEP(G, d, a, b, c, 10, 9, 0x02441453u)
        STEP(G, c, d, a, b, 15, 14, 0xd8a1e681u)
        STEP(G, b, c, d, a, 4, 20, 0xe7d3fbc8u)
        STEP(G, a, b, c, d, 9, 5, 0x21e1cde6u)
        STEP(G, d, a, b, c, 14, 9, 0xc33707d6u)
        STEP(G, c, d, a, b, 3, 14, 0xf4d50d87u)
        STEP(G, b, c, d, a, 8, 20, 0x455a14edu)
        STEP(G, a, b, c, d, 13, 5, 0xa9e3e905u)
        STEP(G, d, a, b, c, 2, 9, 0xfcefa3f8u)
        STEP(G, c, d, a, b, 7, 14, 0x676f02d9u)
        STEP(G, b, c, d, a, 12, 20, 0x8d2a4c8au)
        STEP(H, a, b, c, d, 5, 4, 0xfffa3942u)
        STEP(H, d, a, b, c, 8, 11, 0x8771f681u)
        STEP(H, c, d, a, b, 11, 16, 0x6d9d6122u)
        STEP(H, b, c, d, a, 14, 23, 0xfde5380cu)
        STEP(H, a, b, c, d, 1, 4, 0xa4beea44u)
        STEP(H, d, a, b, c, 4, 11, 0x4bdecfa9u)
        STEP(H, c, d, a, b, 7, 16, 0xf6bb4b60u)
        STEP(H, b, c, d, a, 10, 23, 0xbebfbc70u)
        STEP(H, a, b, c, d, 13, 4, 0x289b7ec6u)
        STEP(H, d, a, b, c, 0, 11, 0xeaa127fau)
        STEP(H, c, d, a, b, 3, 16, 0xd4ef3085u)
        STEP(H, b, c, d, a, 6, 23, 0x04881d05u)
        STEP(H, a, b, c, d, 9, 4, 0xd9d4d039u)
        STEP(H, d, a, b, c, 12, 11, 0xe6db99e5u)
        STEP(H, c, d, a, b, 15, 16, 0x1fa27cf8u)
        STEP(H, b, c, d, a, 2, 23, 0xc4ac5665u)
        STEP(I, a, b, c, d, 0, 6, 0xf4292244u)
        STEP(I, d, a, b, c, 7, 10, 0x432aff97u)
        STEP(I, c, d, a, b, 14, 15, 0xab9423a7u)
        STEP(I, b, c, d, a, 5, 21, 0xfc93a039u)
        STEP(I, a, b, c, d, 12, 6, 0x655b59c3u)
        STEP(I, d, a, b, c, 3, 10, 0x8f0ccc92u)
        STEP(I, c, d, a, b, 10, 15, 0xffeff47du)
        STEP(I, b, c, d, a, 1, 21, 0x85845dd1u)
        STEP(I, a, b, c, d, 8, 6, 0x6fa87e4fu)
        STEP(I, d, a, b, c, 15, 10, 0xfe2ce6e0u)
        STEP(I, c, d, a, b, 6, 15, 0xa3014314u)
        STEP(I, b, c, d, a, 13, 21, 0x4e0811a1u)
        STEP(I, a, b, c, d, 4, 6, 0xf7537e82u)
        STEP(I, d, a, b, c, 11, 10, 0xbd3af235u)
        STEP(I, c, d, a, b, 2, 15, 0x2ad7d2bbu)
        STEP(I, b, c, d, a, 9, 21, 0xeb86d391u)
        a += a0;
        b += b0;
        c += c0;
        d += d0;
        for (int l = 0; l < LANES; l++)
            p[l] += 64;
    }
    memcpy(state, &a, sizeof a);
    memcpy(state + LANES, &b, sizeof b);
    memcpy(state + 2 * LANES, &c, sizeof c);
    memcpy(state + 3 * LANES, &d, sizeof d);
}

#undef F
#undef G
#undef H
#undef I
#undef STEP
#endif

#if SHA1
#define CHOOSE(x, y, z) ((z) ^ ((x) & ((y) ^ (z))))
#define PARITY(x, y, z) ((x) ^ (y) ^ (z))
#define MAJORITY(x, y, z) (((x) & (y)) | ((z) & ((x) | (y))))
#define NEXT(i) (w = m[((i) + 13) % 16] ^ m[((i) + 8) % 16] ^ m[((i) + 2) % 16] ^ m[i], m[i] = ROTATE(w, 1))
#define ROUND(f, a, b, c, d, e, word, k)                                                                               \
    e += ROTATE(a, 5) + f(b, c, d) + (word) + k;                                                                       \
    b = ROTATE(b, 30);

TARGET static void NAME(sha1)(uint32_t *state, const uint8_t **p, int64_t blocks)
{
    WORD a, b, c, d, e, w, m[16];
    memcpy(&a, state, sizeof a);
    memcpy(&b, state + LANES, sizeof b);
    memcpy(&c, state + 2 * LANES, sizeof c);
    memcpy(&d, state + 3 * LANES, sizeof d);
    memcpy(&e, state + 4 * LANES, sizeof e);
    for (; blocks; blocks--) {
        const WORD a0 = a, b0 = b, c0 = c, d0 = d, e0 = e;
        for (int k = 0; k < 16; k++)
            m[k] = GATHER(big, p, 4 * k);
        ROUND(CHOOSE, a, b, c, d, e, m[0], 0x5a827999u)
        ROUND(CHOOSE, e, a, b, c, d, m[1], 0x5a827999u)
        ROUND(CHOOSE, d, e, a, b, c, m[2], 0x5a827999u)
        ROUND(CHOOSE, c, d, e, a, b, m[3], 0x5a827999u)
        ROUND(CHOOSE, b, c, d, e, a, m[4], 0x5a827999u)
        ROUND(CHOOSE, a, b, c, d, e, m[5], 0x5a827999u)
        ROUND(CHOOSE, e, a, b, c, d, m[6], 0x5a827999u)
        ROUND(CHOOSE, d, e, a, b, c, m[7], 0x5a827999u)
        ROUND(CHOOSE, c, d, e, a, b, m[8], 0x5a827999u)
        ROUND(CHOOSE, b, c, d, e, a, m[9], 0x5a827999u)
        ROUND(CHOOSE, a, b, c, d, e, m[10], 0x5a827999u)
        ROUND(CHOOSE, e, a, b, c, d, m[11], 0x5a827999u)
        ROUND(CHOOSE, d, e, a, b, c, m[12], 0x5a827999u)
        ROUND(CHOOSE, c, d, e, a, b, m[13], 0x5a827999u)
        ROUND(CHOOSE, b, c, d, e, a, m[14], 0x5a827999u)
        ROUND(CHOOSE, a, b, c, d, e, m[15], 0x5a827999u)
        ROUND(CHOOSE, e, a, b, c, d, NEXT(0), 0x5a827999u)
        ROUND(CHOOSE, d, e, a, b, c, NEXT(1), 0x5a827999u)
        ROUND(CHOOSE, c, d, e, a, b, NEXT(2), 0x5a827999u)
        ROUND(CHOOSE, b, c, d, e, a, NEXT(3), 0x5a827999u)
        ROUND(PARITY, a, b, c, d, e, NEXT(4), 0x6ed9eba1u)
        ROUND(PARITY, e, a, b, c, d, NEXT(5), 0x6ed9eba1u)
        ROUND(PARITY, d, e, a, b, c, NEXT(6), 0x6ed9eba1u)
        ROUND(PARITY, c, d, e, a, b, NEXT(7), 0x6ed9eba1u)
        ROUND(PARITY, b, c, d, e, a, NEXT(8), 0x6ed9eba1u)
        ROUND(PARITY, a, b, c, d, e, NEXT(9), 0x6ed9eba1u)
        ROUND(PARITY, e, a, b, c, d, NEXT(10), 0x6ed9eba1u)
        ROUND(PARITY, d, e, a, b, c, NEXT(11), 0x6ed9eba1u)
        ROUND(PARITY, c, d, e, a, b, NEXT(12), 0x6ed9eba1u)
        ROUND(PARITY, b, c, d, e, a, NEXT(13), 0x6ed9eba1u)
        ROUND(PARITY, a, b, c, d, e, NEXT(14), 0x6ed9eba1u)
        ROUND(PARITY, e, a, b, c, d, NEXT(15), 0x6ed9eba1u)
        ROUND(PARITY, d, e, a, b, c, NEXT(0), 0x6ed9eba1u)
        ROUND(PARITY, c, d, e, a, b, NEXT(1), 0x6ed9eba1u)
        ROUND(PARITY, b, c, d, e, a, NEXT(2), 0x6ed9eba1u)
        ROUND(PARITY, a, b, c, d, e, NEXT(3), 0x6ed9eba1u)
        ROUND(PARITY, e, a, b, c, d, NEXT(4), 0x6ed9eba1u)
        ROUND(PARITY, d, e, a, b, c, NEXT(5), 0x6ed9eba1u)
        ROUND(PARITY, c, d, e, a, b, NEXT(6), 0x6ed9eba1u)
        ROUND(PARITY, b, c, d, e, a, NEXT(7), 0x6ed9eba1u)
        ROUND(MAJORITY, a, b, c, d, e, NEXT(8), 0x8f1bbcdcu)
        ROUND(MAJORITY, e, a, b, c, d, NEXT(9), 0x8f1bbcdcu)
        ROUND(MAJORITY, d, e, a, b, c, NEXT(10), 0x8f1bbcdcu)
        ROUND(MAJORITY, c, d, e, a, b, NEXT(11), 0x8f1bbcdcu)
        ROUND(MAJORITY, b, c, d, e, a, NEXT(12), 0x8f1bbcdcu)
        ROUND(MAJORITY, a, b, c, d, e, NEXT(13), 0x8f1bbcdcu)
        ROUND(MAJORITY, e, a, b, c, d, NEXT(14), 0x8f1bbcdcu)
        ROUND(MAJORITY, d, e, a, b, c, NEXT(15), 0x8f1bbcdcu)
        ROUND(MAJORITY, c, d, e, a, b, NEXT(0), 0x8f1bbcdcu)
        ROUND(MAJORITY, b, c, d, e, a, NEXT(1), 0x8f1bbcdcu)
        ROUND(MAJORITY, a, b, c, d, e, NEXT(2), 0x8f1bbcdcu)
        ROUND(MAJORITY, e, a, b, c, d, NEXT(3), 0x8f1bbcdcu)
        ROUND(MAJORITY, d, e, a, b, c, NEXT(4), 0x8f1bbcdcu)
        ROUND(MAJORITY, c, d, e, a, b, NEXT(5), 0x8f1bbcdcu)
        ROUND(MAJORITY, b, c, d, e, a, NEXT(6), 0x8f1bbcdcu)
        ROUND(MAJORITY, a, b, c, d, e, NEXT(7), 0x8f1bbcdcu)
        ROUND(MAJORITY, e, a, b, c, d, NEXT(8), 0x8f1bbcdcu)
        ROUND(MAJORITY, d, e, a, b, c, NEXT(9), 0x8f1bbcdcu)
        ROUND(MAJORITY, c, d, e, a, b, NEXT(10), 0x8f1bbcdcu)
        ROUND(MAJORITY, b, c, d, e, a, NEXT(11), 0x8f1bbcdcu)
        ROUND(PARITY, a, b, c, d, e, NEXT(12), 0xca62c1d6u)
        ROUND(PARITY, e, a, b, c, d, NEXT(13), 0xca62c1d6u)
        ROUND(PARITY, d, e, a, b, c, NEXT(14), 0xca62c1d6u)
        ROUND(PARITY, c, d, e, a, b, NEXT(15), 0xca62c1d6u)
        ROUND(PARITY, b, c, d, e, a, NEXT(0), 0xca62c1d6u)
        ROUND(PARITY, a, b, c, d, e, NEXT(1), 0xca62c1d6u)
        ROUND(PARITY, e, a, b, c, d, NEXT(2), 0xca62c1d6u)
        ROUND(PARITY, d, e, a, b, c, NEXT(3), 0xca62c1d6u)
        ROUND(PARITY, c, d, e, a, b, NEXT(4), 0xca62c1d6u)
        ROUND(PARITY, b, c, d, e, a, NEXT(5), 0xca62c1d6u)
        ROUND(PARITY, a, b, c, d, e, NEXT(6), 0xca62c1d6u)
        ROUND(PARITY, e, a, b, c, d, NEXT(7), 0xca62c1d6u)
        ROUND(PARITY, d, e, a, b, c, NEXT(8), 0xca62c1d6u)
        ROUND(PARITY, c, d, e, a, b, NEXT(9), 0xca62c1d6u)
        ROUND(PARITY, b, c, d, e, a, NEXT(10), 0xca62c1d6u)
        ROUND(PARITY, a, b, c, d, e, NEXT(11), 0xca62c1d6u)
        ROUND(PARITY, e, a, b, c, d, NEXT(12), 0xca62c1d6u)
        ROUND(PARITY, d, e, a, b, c, NEXT(13), 0xca62c1d6u)
        ROUND(PARITY, c, d, e, a, b, NEXT(14), 0xca62c1d6u)
        ROUND(PARITY, b, c, d, e, a, NEXT(15), 0xca62c1d6u)
        a += a0;
        b += b0;
        c += c0;
        d += d0;
        e += e0;
        for (int l = 0; l < LANES; l++)
            p[l] += 64;
    }
    memcpy(state, &a, sizeof a);
    memcpy(state + LANES, &b, sizeof b);
    memcpy(state + 2 * LANES, &c, sizeof c);
    memcpy(state + 3 * LANES, &d, sizeof d);
    memcpy(state + 4 * LANES, &e, sizeof e);
}

#undef CHOOSE
#undef PARITY
#undef MAJORITY
#undef NEXT
#undef ROUND
#endif

#undef ROTATE
