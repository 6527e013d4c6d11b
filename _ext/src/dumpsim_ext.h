/* Shared by the C kernels: the SIMD levels and how a function is compiled for one of them.
 *
 * Every kernel body is compiled once per level with function target attributes, so that one binary runs on every CPU of
 * its architecture. The levels must give the same bits: build with -ffp-contract=off and never with -ffast-math. */
#ifndef DUMPSIM_EXT_H
#define DUMPSIM_EXT_H

#include <stdint.h>

enum { DS_BASELINE = 0, DS_AVX2 = 1, DS_AVX512 = 2 };

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define DS_X86_LEVELS 1
#define DS_TARGET_AVX2 __attribute__((target("avx2,fma,f16c")))
#define DS_TARGET_AVX512 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,f16c")))
#else
#define DS_X86_LEVELS 0
#endif

/* The highest level that this CPU and its operating system have. */
int ds_cpu_level(void);

#endif
