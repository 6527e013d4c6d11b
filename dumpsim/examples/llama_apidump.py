"""An API dump of a small Llama under bfloat16 autocast: `python -m dumpsim.examples.llama_apidump DIRECTORY`.

Needs ``torch`` and ``transformers``; the weights are random. Runs one forward and backward pass without the dump and
one with it, and says whether loss, logits and gradients are equal bit for bit.
"""

import sys
from typing import Any

from dumpsim.migrator import api_dump_init

__all__ = ["main"]


def main(directory: str) -> bool:
    """Dump into `directory`; return whether the results are those without a dump."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM  # type: ignore[import-not-found,unused-ignore]

    torch.manual_seed(0)
    net = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=256,
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=64,
        )
    )
    tokens = torch.randint(256, (2, 32))

    def step() -> list[Any]:
        net.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            answer = net(input_ids=tokens, labels=tokens)
        answer.loss.backward()
        return [answer.loss, answer.logits, *(parameter.grad.clone() for parameter in net.parameters())]

    plain = step()
    with api_dump_init(net, directory, retain_backward=True) as dump:
        dump.start()
        dumped = step()
        dump.stop()
        skipped = dump.skipped
    same = all(torch.equal(one, other) for one, other in zip(plain, dumped, strict=True))
    print(f"{len(plain)} tensors are {'equal bit for bit' if same else 'NOT EQUAL'}; not recorded: {skipped or 'none'}")
    return same


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1]))
