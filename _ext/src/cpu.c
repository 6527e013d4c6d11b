#include "dumpsim_ext.h"

int ds_cpu_level(void)
{
#if DS_X86_LEVELS
    __builtin_cpu_init();
    if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")))
        return DS_BASELINE;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        return DS_AVX512;
    return DS_AVX2;
#else
    return DS_BASELINE;
#endif
}
