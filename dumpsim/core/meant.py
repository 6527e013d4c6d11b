"""Synonyms of legal values (``npu`` for ``ascend``): the lookup table of "did you mean".

`dumpsim.core.errors.nearest` looks here before it compares spellings, so commands, configs, fault plans, functions and
the pytest plugin accept the same synonyms.
"""

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType

__all__ = ["MEANT", "meant"]

# legal word -> what people type for it; one entry if the word is legal for several options
_WORDS: dict[str, str] = {
    # devices
    "ascend": "npu, aicore, atlas, cann, d, davinci, hisilicon, huawei, 910a, 910b, 910c, 310, 310p",
    "gpu": "cuda, nvidia, rocm, a100, h100, v100, p100",
    "cpu": "host, x86, x86_64, arm, aarch64, intel, amd, none",
    # chips, by SoC version, card and server generation
    "910A": "910, a1, 910proa, 910prob, 910premiuma, atlas800, atlas 800",
    "910B": "a2, npu, ascend, atlas a2, 910b1, 910b2, 910b2c, 910b3, 910b4, 910b4-1, 800ia2, 800ta2, 900a2",
    "910_93": "910c, a3, atlas a3, 91093, 910_9361, 910_9362, 910_9372, 910_9381, 910_9382, 910_9391, 910_9392, "
    "800ia3, 800ta3, 900a3, cloudmatrix384",
    "310P": "310, 310p1, 310p3, 310p5, 310p7, 310b, duo, atlas 300i, 300iduo, 300vpro",
    # releases, commands to run
    "seed": "2.0, 2.1, 2.2, 2.3, 2.4, 2.4.0, 2.4.1, 2.4.10, 2.5, 2.5.0, default, documents, docs",
    "2.7": "2.6, 2.6.0, 2.7.0, 2.7.1",
    "2.10": "2.8, 2.8.0, 2.9, 2.9.0, 2.10.0, latest, newest, master, main, real",
    "virtual": "deterministic, fake, simulated, emulated, fixed",
    "wall": "real, realtime, system, host, machine",
    "null": "none, dry, dryrun, shape, shapes, empty, meta, no",
    "numpy": "np, cpu, default, host",
    # compile levels
    "O0": "0, kbk, kernel_by_kernel, eager, off",
    "O1": "1, dvm, graph_kernel",
    "O2": "2, ge, graph, whole, sink, acl",
    # values of dump configs
    "tensor": "npy, bin, data, values, array, arrays, raw",
    "statistic": "stat, stats, statistics, csv, summary, statistical",
    "full": "all, both, everything, complete",
    "host": "cpu",
    "npy": "numpy, npz, np",
    "bin": "binary, raw, protobuf",
    "high": "float32, fp32, full",
    "low": "float16, fp16, half",
    # statistics and digests
    "avg": "mean, average, mu",
    "max": "maximum, largest, amax",
    "min": "minimum, smallest, amin",
    "l2norm": "norm, l2, l2 norm, 2norm, magnitude",
    "nan": "nans, nan_count, num_nan",
    "nan count": "nan, nans, num_nan",
    "positive inf count": "inf, infs, infinity, posinf, positive_inf",
    "negative inf count": "-inf, neginf, negative_inf",
    "positive_inf": "inf, infs, infinity, posinf",
    "negative_inf": "-inf, neginf",
    "zero count": "zeros, sparsity",
    "count": "size, numel, elements, n",
    "md5": "hash, digest, checksum",
    # fields of dump configs
    "path": "dir, directory, dump_path, dump_dir, output, output_path, output_dir, out, folder, root, save_path",
    "iteration": "step, steps, iterations, iter, epoch, epochs",
    "kernels": "op, ops, operator, operators, op_name, op_names, layers, list, whitelist, scope, nodes",
    "support_device": "device, devices, device_id, device_ids, rank, ranks, cards",
    "saved_data": "data, content, level, task, summary_mode, what",
    "statistic_category": "stat, stats, statistics, statistic, categories, columns",
    "stat_calc_mode": "calc_mode, statistic_mode, on_device",
    "device_stat_precision_mode": "precision, precision_mode",
    "input_output": "io, inout, inputs, outputs, input, output, data_mode",
    "op_debug_mode": "debug, debug_mode, overflow_check, overflow_mode, exception_mode",
    "overflow_number": "overflow_nums, max_overflow, overflow_limit",
    "net_name": "network, net, name, model, model_name",
    "dump_mode": "mode, which",
    "file_format": "suffix, extension, output_format, data_format",
    "trans_flag": "transpose, layout, host_format, trans, nchw",
    "sample_mode": "sampling, sample",
    "sample_num": "samples, sample_size, sample_count",
    "save_kernel_args": "args, kernel_args, arguments, attrs",
    "enable": "enabled, on, switch, async, synchronous",
    "initial_iteration": "start_step, first_step, first_iteration, start_iteration",
    # number types and layouts
    "float32": "fp32, f32, single, float",
    "float16": "fp16, f16, half",
    "float64": "fp64, f64, double",
    "bfloat16": "bf16, brain",
    "int32": "i32, int",
    "int64": "i64, long",
    "int16": "i16, short",
    "int8": "i8, byte, char",
    "uint8": "u8, ubyte, uchar",
    "bool": "boolean, bool_",
    "FRACTAL_NZ": "nz",
    "FRACTAL_Z": "fz, zn, fracz, frac_z",
    "NC1HWC0": "5hd, nchwc, nc1hwco",
    "NDC1HWC0": "6hd",
    "ND": "any, none, default, defaultformat",
    # faults
    "aicore_error": "aicore, crash, exception, error, kernel_error, launch_failed, 507015",
    "out_of_memory": "oom, memory, no_memory, memory_limit",
    "stomp": "oob, out_of_bounds, memory_stomp, corruption, overwrite, buffer_overflow",
    "overflow": "nan, inf, infinity, not_finite, nonfinite, nan_inf",
    "disk_full": "enospc, disk, no_space, quota",
    "slow_disk": "slow, nfs, io_delay",
    "kill": "sigkill, die, dead, terminate, abort",
    "hang": "stuck, block, freeze, stall, deadlock",
    "delay": "late, straggler, latency, sleep, wait",
    "diverge": "mismatch, desync, different, inconsistent",
    "nth": "count, when, launch, occurrence, call, number",
    # settings of a run
    "chip": "soc, soc_version, soc_name, card, hardware, npu",
    "device": "target, device_target, platform, backend",
    "mindspore": "release, version, ms_version, profile, framework",
    "overrides": "set, fields",
    "environment": "env, environ, variables",
    "faults": "fault, plan, fault_plan, errors",
    "clock": "time, timer",
    "engine": "kernels, executor",
    "config": "dump, dump_config",
    # commands
    "check": "validate, verify, lint, test, validator",
    "compare": "diff, cmp, accuracy, match, vs",
    "convert": "export, transform, translate, bin2npy, parse, to_npy",
    "explain": "help, doc, what, why, man, info, error",
    "first": "bisect, find, locate, blame, origin, nan, nans, inf, diverge, overflow",
    "ls": "list, dir, tree, files, index, summary, ll",
    "msaccucmp": "msaccucmp.py, accucmp, mindstudio",
    "run": "exec, execute, launch, start, train, python, emulate, simulate",
    "show": "cat, print, view, display, dump, inspect, head",
    "stat": "stats, statistic, statistics, summarize, describe",
    # variables
    "MINDSPORE_DUMP_CONFIG": "dump_config, ms_dump_config, config_path",
    "MS_DIAGNOSTIC_DATA_PATH": "diagnostic, diagnostic_path",
}

# words that resemble a legal one but mean something else: no suggestion is better than a wrong one
_NOTHING = ("tpu", "mps", "metal", "xpu", "mlu", "musa")


def _table() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = dict.fromkeys(_NOTHING, ())
    for legal, words in _WORDS.items():
        for word in words.split(", "):
            found[word] = (*found.get(word, ()), legal)
    return found


# what people type, in lower case -> the legal words that they may mean, one per option
MEANT: Mapping[str, tuple[str, ...]] = MappingProxyType(_table())

_SPELLINGS = (
    lambda word: word,
    lambda word: word.partition(":")[0],  # cuda:0, npu:3
    lambda word: word.replace("-", "_"),
    lambda word: word.replace("_", " "),
    lambda word: re.sub(r"^(?:huawei |atlas |ascend)[ _-]?(?=\w*\d)", "", word),  # Ascend910B4, Atlas A2
    lambda word: re.sub(r"^mindspore ?(?===|\d)=*", "", word),  # mindspore==2.5.0
)


def meant(value: str, allowed: Collection[str]) -> str | None:
    """Return the legal value of a synonym, an empty text if no legal value is meant, None for an unknown word.

    Examples
    --------
    >>> meant("NPU", ["ascend", "gpu", "cpu"]), meant("Ascend910B4", ["910A", "910B"]), meant("mean", ["avg", "max"])
    ('ascend', '910B', 'avg')
    >>> meant("tpu", ["ascend", "gpu", "cpu"]), meant("ascned", ["ascend", "gpu", "cpu"])
    ('', None)
    """
    legal = {one.lower(): one for one in allowed}
    for spelled in _SPELLINGS:
        word = spelled(value.strip().lower())
        if word not in MEANT:
            continue
        if not MEANT[word]:
            return ""
        for target in MEANT[word]:
            if target.lower() in legal:
                return legal[target.lower()]
    return None
