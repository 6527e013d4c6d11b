"""A compiled step of a Llama on the emulated device against the same step of eager torch.

    python tests/bench/bench_torchair.py [--size small|large] [--rounds N] [steps] [dump]

``steps``: processor time of a forward pass and of a training step, without a dump, compiled and eager in turn in one
process, the minimum of some rounds. ``dump``: how fast bin files of every operator are written, against a raw write of
as many files of the same sizes in the same file system, which are renamed when they are whole as ours are, and how long
csv statistics of the same steps take; all of them in turn. What a dump takes is a step with it less a step without.
``raw`` writes its files one after the other, with the kernel's code and one buffer in the caches. ``bare`` makes the
same calls where the dump makes its own, after each operator with its tensors, but without header, name and account. The
small model has 0.7 MB of weights, the large one 108 MB. All of it needs the extra ``torch`` and ``transformers``.
"""

import argparse
import copy
import os
import shutil
import tempfile
import warnings
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from types import FunctionType

SIZES = {
    "small": ({"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4,
               "num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 64}, 16),
    "large": ({"hidden_size": 512, "intermediate_size": 1376, "num_hidden_layers": 6, "num_attention_heads": 8,
               "num_key_value_heads": 8, "vocab_size": 8000, "max_position_embeddings": 128}, 64),
}  # fmt: skip


def llama(size):
    """The model, and words for it."""
    import torch
    import transformers

    config, length = SIZES[size]
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = transformers.LlamaForCausalLM(transformers.LlamaConfig(**config)).eval()
    return net, torch.randint(0, config["vocab_size"], (2, length))


def forward(net, words, optimizer):
    """One forward pass."""
    import torch

    with torch.no_grad():
        return net(input_ids=words, use_cache=False).logits


def training(net, words, optimizer):
    """One training step."""
    optimizer.zero_grad()
    loss = net(input_ids=words, labels=words, use_cache=False).loss
    loss.backward()
    optimizer.step()
    return loss.detach()


def compiled_with(net, **settings):
    """The model, compiled in a fresh session."""
    import torch

    from dumpsim.core.settings import RunSettings
    from dumpsim.frontends.torchair._backend import get_npu_backend
    from dumpsim.frontends.torchair.configs.compiler_config import CompilerConfig
    from dumpsim.runtime.session import Session

    Session.use(Session(RunSettings(quiet=True, manifest=None), environment={}))
    config = CompilerConfig()
    for name, value in settings.items():
        setattr(config.dump_config, name, value)
    return torch.compile(net, backend=get_npu_backend(compiler_config=config))


def measure_steps(size, rounds):
    """Print the ratio of compiled to eager steps."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from dumpsim.world.context import RankContext, use

    for step in (forward, training):
        torch._dynamo.reset()
        eager, words = llama(size)
        other = copy.deepcopy(eager)
        times = [], []
        with use(RankContext()), sdpa_kernel(SDPBackend.MATH):  # as the compiled one has it
            nets = eager, compiled_with(other)
            optimizers = [torch.optim.SGD(net.parameters(), 0.1) for net in (eager, other)]
            for number in range(rounds + 4):
                results = []
                for net, optimizer, taken in zip(nets, optimizers, times, strict=True):
                    begin = process_time()
                    results.append(step(net, words, optimizer))
                    if number >= 4:  # the first ones compile
                        taken.append(process_time() - begin)
                assert torch.equal(*results)
        plain, ours = map(min, times)
        print(f"{size} {step.__name__}: eager {1e3 * plain:.2f} ms, compiled {1e3 * ours:.2f} ms, {ours / plain:.2f}")


def function_of(net, name):
    """A forward pass with code of its own, since dynamo would take what it has compiled of the same code before."""
    import torch

    def step(words):
        with torch.no_grad():
            return net(input_ids=words, use_cache=False).logits

    return FunctionType(step.__code__.replace(co_name=name), globals(), name, None, step.__closure__)


def write_raw(folder, sizes, buffer):
    """Write files of these sizes as a careful program would: under another name, renamed when they are whole."""
    for at, nbytes in enumerate(sizes):
        part = f"{folder}/part-{at}"
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        left = buffer[:nbytes]
        while left:
            left = left[os.write(descriptor, left) :]
        os.close(descriptor)
        os.rename(part, f"{folder}/{at}")


def files_below(folder):
    """The files of a tree; who writes them remembers the directories, so those stay."""
    return [Path(where) / name for where, _, names in os.walk(folder) for name in names]


def bare_plan(files, source, inputs, outputs):
    """In place of `OperatorFiles.plan`: the calls that write an operator's tensors, and nothing else."""
    from dumpsim.core.events import reader_of

    places, numbers, made = [reader_of(ref) for ref in (*inputs, *outputs) if ref.nbytes], count(), set()

    def dump(directory, iteration, task_id):
        if directory not in made:
            os.makedirs(directory, exist_ok=True)
            made.add(directory)
        name = f"{directory}/{source.full_name}.{next(numbers)}"
        part = f"{name}.part"
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.writev(descriptor, [place().data for place in places])
        os.close(descriptor)
        os.rename(part, name)

    return dump


def measure_dump(size, rounds):
    """Print how fast dumps are written."""
    from dumpsim.dump.operatorfiles import OperatorFiles
    from dumpsim.frontends.acl.dump import finalize_dump
    from dumpsim.world.context import RankContext

    net, words = llama(size)
    top = Path(tempfile.mkdtemp(prefix="torchair"))
    ranks = {}
    plan = OperatorFiles.plan
    for kind in ("off", "bare", "tensor", "stats"):
        form = "tensor" if kind == "bare" else kind
        folder = top / kind
        folder.mkdir()
        settings = {} if kind == "off" else {"enable_dump": True, "dump_path": str(folder), "dump_data": form}
        context = RankContext()
        compiled = context.run(compiled_with, function_of(net, kind), **settings)
        OperatorFiles.plan = bare_plan if kind == "bare" else plan
        for _ in range(4):
            for path in files_below(folder):
                path.unlink()
            context.run(compiled, words)
        OperatorFiles.plan = plan
        ranks[kind] = context, compiled, folder
    sizes = [path.stat().st_size for path in files_below(top / "tensor")]
    buffer = memoryview(os.urandom(1 << 20) * (max(sizes) // (1 << 20) + 1))
    print(f"{size}: {len(sizes)} files of {sum(sizes) / 1e6:.1f} MB a step")
    seconds = {kind: [] for kind in ("raw", *ranks)}
    for number in range(rounds):
        for kind, taken in seconds.items():
            if kind == "raw":
                folder = top / f"raw{number}"
                folder.mkdir()
                wall, begin = perf_counter(), process_time()
                write_raw(folder, sizes, buffer)
                taken.append((process_time() - begin, perf_counter() - wall))
            else:
                context, compiled, folder = ranks[kind]
                wall, begin = perf_counter(), process_time()
                context.run(compiled, words)
                taken.append((process_time() - begin, perf_counter() - wall))
            for path in files_below(folder):
                path.unlink()
    for context, _, _ in ranks.values():
        context.run(finalize_dump)
        context.close()
    shutil.rmtree(top)
    for at, what in enumerate(("processor time", "time")):
        best = {kind: min(taken[at] for taken in found) for kind, found in seconds.items()}
        print(f"{size}, {what}: " + ", ".join(f"{kind} {1e3 * found:.1f} ms" for kind, found in best.items()))
        added = [
            raw[at] / (ours[at] - off[at])
            for raw, off, ours in zip(seconds["raw"], seconds["off"], seconds["tensor"], strict=True)
        ]
        speed = best["raw"] / (best["tensor"] - best["off"]), median(added), best["raw"] / best["tensor"]
        print("  bin: {:.2f} of a raw write (median of rounds {:.2f}); with the step itself {:.2f}".format(*speed))
        bare = [
            (found[at] - off[at]) / (ours[at] - off[at])
            for found, off, ours in zip(seconds["bare"], seconds["off"], seconds["tensor"], strict=True)
        ]
        speed = (best["bare"] - best["off"]) / (best["tensor"] - best["off"]), median(bare)
        print("  bin: {:.2f} of bare calls at the same moments (median of rounds {:.2f})".format(*speed))
        print(f"  csv takes {best['stats'] / best['tensor']:.2f} of bin")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", help="steps, dump; by default both")
    parser.add_argument("--size", choices=sorted(SIZES), action="append")
    parser.add_argument("--rounds", type=int, default=8)
    arguments = parser.parse_args()
    chosen = arguments.what or ["steps", "dump"]
    warnings.simplefilter("ignore")
    os.chdir(tempfile.mkdtemp(prefix="torchair"))  # the options file of a dump goes there
    for size in arguments.size or sorted(SIZES, reverse=True):
        if "steps" in chosen:
            measure_steps(size, arguments.rounds)
        if "dump" in chosen:
            measure_dump(size, arguments.rounds)


if __name__ == "__main__":
    main()
