"""One table of names: what means the same, and what does not."""

import pytest

from dumpsim.analysis.apiname import COMPOUNDS, RENAMES, canonical
from dumpsim.analysis.meaning import meaning


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("expand", "broadcast_to"),  # not "expan"
        ("BroadcastToD", "broadcast_to"),
        ("MatMulV2", "matmul"),
        ("batch_mat_mul_v2", "bmm"),
        ("TransposeD", "permute"),
        ("swapaxes", "transpose"),
        ("SumExt", "sum"),
        ("sum_ext", "ReduceSumD"),
        ("t", "transpose"),
        ("__iadd__", "add_"),
        ("BatchNorm2d", "batch_norm"),
        ("ExpandDims", "unsqueeze"),
        ("repeat", "tile"),
        ("view", "reshape"),
        ("clamp", "ClipByValue"),
        ("CrossEntropyLoss", "cross_entropy"),
        ("SiLU", "swish"),
    ],
)
def test_same_operation(one, other):
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize("word", ["add", "pad", "round", "unfold", "index_add", "grad", "Conv2D", "context", "expand"])
def test_last_letters_that_are_no_version(word):
    plain = word.replace("_", "").lower()
    assert canonical(word) in (plain, "broadcastto" if word == "expand" else plain)


def test_different_operations_stay_apart():
    words = "add sub mul div matmul relu gelu exp log sqrt sum mean amax amin less greater equal notequal cat stack"
    assert len({canonical(word) for word in words.split()}) == len(words.split())


def test_both_names_of_a_rename_mean_one_operation():
    assert len(RENAMES) == 34
    assert all(canonical(ours) == canonical(theirs) for (_, ours), (_, theirs) in RENAMES.items())


def test_canonical_words_are_their_own():
    words = {canonical(word) for key in (*RENAMES, *RENAMES.values()) for word in key[1:]}
    assert {canonical(word) for word in words} == words


def test_hints_are_in_canonical_words():
    words = {word for parts in COMPOUNDS.values() for part in parts for word in part} | set(COMPOUNDS)
    assert {canonical(word) for word in words} == words


@pytest.mark.parametrize(
    ("framework", "kind", "api", "word", "sense", "rank"),
    [
        ("torch", "NN", "SELU", "nn_SeLU", "selu", 0), ("torch", "NN", "CELU", "nn_CELU", "celu", 0),
        ("torch", "Functional", "SELU", "functional_SELU", "selu", 1),
        ("torch", "NN", "Linear", "nn_Dense", "dense", 0), ("mindtorch", "NN", "Linear", "nn_Dense", "dense", 0),
        ("mindspore", "NN", "SELU", "nn_SELU", "selu", 0), ("mindspore", "Tensor", "add", "tensor_add", "add", 2),
        ("torch", "Torch", "add", "functional_add", "add", 1), ("torch", "VF", "lstm", "vf_lstm", "lstm", 3),
        ("torch", "LAYER", "Block", "layer_Block", "layer_Block", 3),
    ],
)  # fmt: skip
def test_a_name_means_a_word_of_mindspore(framework, kind, api, word, sense, rank):
    found = meaning(framework, kind, api)
    assert (found.word, found.sense, found.rank) == (word, sense, rank)
