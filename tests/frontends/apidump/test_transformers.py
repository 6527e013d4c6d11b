"""API dump of small nets of transformers in bfloat16 autocast: it changes no bit of loss, logits or gradients."""

import pytest

torch = pytest.importorskip("torch", reason="needs the extra torch")
transformers = pytest.importorskip("transformers", reason="needs the extra dev")

from dumpsim import migrator  # noqa: E402
from dumpsim.codecs.apidump import read_info  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.dev, pytest.mark.filterwarnings("ignore")]
_SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
_TEXT = {**_SIZES, "vocab_size": 99, "max_position_embeddings": 64}
_STILL = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
NETS = {
    "llama": ("LlamaForCausalLM", "LlamaConfig", {**_TEXT, "num_key_value_heads": 2}),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", {**_TEXT, "num_key_value_heads": 2, "num_local_experts": 4}),
    "gpt2": (
        "GPT2LMHeadModel",
        "GPT2Config",
        {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
        | {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
    ),
    "bert": ("BertForMaskedLM", "BertConfig", {**_TEXT, **_STILL}),
    "vit": ("ViTForImageClassification", "ViTConfig", {**_SIZES, **_STILL, "image_size": 32, "patch_size": 8}),
}


@pytest.mark.parametrize("checkpointing", [None, "reentrant", "saved tensors"])
@pytest.mark.parametrize("name", NETS)
def test_the_dump_changes_no_bit(tmp_path, name, checkpointing):
    kind, config, sizes = NETS[name]
    torch.manual_seed(0)
    net = getattr(transformers, kind)(getattr(transformers, config)(**sizes)).train()
    if checkpointing is not None:
        net.gradient_checkpointing_enable({"use_reentrant": checkpointing == "reentrant"})
    tokens = torch.randint(99, (2, 12))
    inputs = {"input_ids": tokens, "labels": tokens}
    if name == "vit":
        inputs = {"pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.tensor([0, 1])}

    def step():
        net.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            answer = net(**inputs)
        answer.loss.backward()
        gradients = [p.grad.clone() for p in net.parameters() if p.grad is not None]
        return [answer.loss.detach(), answer.logits.detach(), *gradients]

    plain = step()
    with migrator.api_dump_init(net, tmp_path, retain_backward=True) as dump:
        dump.start()
        dumped = step()
        dump.stop()
        skipped = dump.skipped
    assert len(plain) > 20
    assert all(torch.equal(one, other) for one, other in zip(plain, dumped, strict=True))
    records = list(read_info(tmp_path / "rank0" / "torch_api_dump_info.pkl"))
    found = [record.name for record in records]
    assert len(found) == len(set(found))
    assert {record.dtype for record in records} >= {"torch.bfloat16", "torch.float32"}
    assert any(n.endswith("_backward_input") for n in found)
    assert set(skipped) <= {"keyword argument", "recomputed in backward", "module outside the network"}
    assert ("recomputed in backward" in skipped) == (checkpointing is not None)
