"""Trees that real MindSpore 2.10 wrote on a CPU: nothing is suspect, and what is skipped is known."""

import numpy as np
import pytest
import recorded
from rebuild import rebuild

import dumpsim

CASES = [name for name in recorded.cases() if name != "tensordump"]
# tensors of more than 2048 elements are not in the fixtures
NOT_RECORDED = "was not dumped"
REASONS = {
    NOT_RECORDED,
    "no output was dumped",
    "draws random numbers",
    "needs the tensors of other ranks",
    "before the operator overwrote them",
    "unknown operator type",
}


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_suspect(tmp_path, name):
    rebuild(name, tmp_path)
    if not list(tmp_path.rglob("*.npy")):
        return
    result = dumpsim.replay(tmp_path)
    assert result.suspects == ()
    for row in result:
        assert row.verdict == "ok" or any(reason in row.reason for reason in REASONS), row


# nets of which every tensor is in the fixtures
WHOLE = {"simple_3steps": 15, "longname": 2, "iter_ABAB": 4, "dtypes": 25, "multi_output_constants": 20}


@pytest.mark.parametrize("name", WHOLE)
def test_everything_is_recomputed(tmp_path, name):
    rebuild(name, tmp_path)
    assert dumpsim.replay(tmp_path).counts == {"ok": WHOLE[name]}


def test_segments_of_a_control_flow(tmp_path):
    """What a segment of a loop takes from another one is not in the dump."""
    rebuild("control_flow", tmp_path)
    result = dumpsim.replay(tmp_path)
    assert result.counts == {"ok": 15, "skipped": 32}
    assert {row.reason for row in result if row.verdict == "skipped"} == {"input.0 was not dumped"}


STEPS = {
    "lenet_train": "ApplyMomentum",
    "mlp_layernorm_train": "Adam",
    "attention_block_train": "Adam",
    "resnet_block_train": "SGD",
}


@pytest.mark.parametrize(("name", "op_type"), STEPS.items())
def test_a_wrong_parameter_after_a_step(tmp_path, name, op_type):
    """Optimizers are recomputed although the CPU's files hold their Parameters as they are afterwards."""
    rebuild(name, tmp_path)
    dump = dumpsim.open(tmp_path)
    done = {row.op_name for row in dumpsim.replay(dump) if row.op_type == op_type and row.verdict == "ok"}
    entry = next(one for one in dump.filter(op_type=op_type, io="input", slot=0) if one.op_name in done)
    array = np.load(entry.path)
    array.reshape(-1)[np.argmax(np.abs(array))] *= 1.01
    np.save(entry.path, array)
    assert [row.op_name for row in dumpsim.replay(dump).suspects] == [entry.op_name]
