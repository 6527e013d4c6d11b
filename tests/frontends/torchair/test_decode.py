"""A language model of transformers with a cache of keys and values: a prompt and three further words, dumped."""

import numpy as np
import pytest

import dumpsim
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.acl.dump import finalize_dump
from dumpsim.runtime.session import Session
from dumpsim.world.context import RankContext, use

torch = pytest.importorskip("torch", reason="needs the extra torch")
hf = pytest.importorskip("transformers", reason="needs transformers")

from dumpsim.frontends.torchair._backend import get_npu_backend  # noqa: E402
from dumpsim.frontends.torchair.configs.compiler_config import CompilerConfig  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.dev, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def steps(model, words):
    """Logits of the prompt and of three further words."""
    found = []
    with torch.no_grad():
        out = model(input_ids=words, use_cache=True)
        for _ in range(3):
            found.append(out.logits)
            word = out.logits[:, -1:].argmax(-1)
            out = model(input_ids=word, past_key_values=out.past_key_values, use_cache=True)
    return [*found, out.logits]


def test_a_prompt_and_three_words_are_those_of_eager_torch_and_in_the_dump(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch._dynamo.reset()
    torch.manual_seed(0)
    made = hf.LlamaConfig(vocab_size=20, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
                          num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32,
                          attn_implementation="eager", bos_token_id=0, eos_token_id=0)  # fmt: skip
    net = hf.LlamaForCausalLM(made).eval()
    words = torch.tensor([[3, 4, 5]])
    wanted = steps(net, words)
    with use(RankContext.from_environment()):
        Session.use(Session(RunSettings(quiet=True, manifest=None), environment={}))
        config = CompilerConfig()
        config.dump_config.enable_dump = True
        found = steps(torch.compile(net, backend=get_npu_backend(compiler_config=config)), words)
        finalize_dump()
        assert all(torch.equal(one, other) for one, other in zip(found, wanted, strict=True))
        arrays = [one.array() for one in dumpsim.open(tmp_path) if one.io == "output"]
    for logits in wanted:
        values = logits.numpy()
        assert any(one.size == values.size and np.array_equal(one.ravel(), values.ravel()) for one in arrays)
