"""Recorded nets whose whole trees, orders and names the emulation gives: one for each rule of names."""

import pytest
from corpus import pack, rates

NETS = {
    "h_operators": "+, ops.add and what the library adds are one function in the scope of its first caller",
    "h_compare": "so are > == !=; ops.less lies in a graph of the default scope",
    "r1_196_eval": "numbers of AddN, which the backend makes anew, follow the execution order",
    "r1_030_parameter": "the backend makes the first Assign of an augmented assignment after the front end's numbers",
    "r1_115_train": "the CPU's ApplyMomentum does not look at use_nesterov",
    "r1_015_train": "the counter of an unrolled loop holds the loop's result back until the functions are inlined",
    "r1_155_train": "the sums of a loss are the function of Tensor.sum, parsed in the scope of its first caller",
    "h_shared": "an operator of Python is a function that a helper calls: under the default scope it keeps that",
    "r1_142_shared": "Tensor.T is the function ops.transpose, parsed in the scope of its first caller",
    "h_pynative": "PYNATIVE's forward and backward graphs are numbered in the order of the partition, and count on",
    "r1_158_pynative": "what LayerNorm gives is saved as one tuple, which takes one number among the parameters",
    "r1_198_pynative": "sums of two types and the zeros of weights take a number each in the compile of a gradient",
    "r1_038_pynative": "equal primitives of a jit function share the default scope",
    "r1_056_eval": "a sum that is a summand of another one is merged into it",
    "r1_135_train": "ExpandDims of ones is not a constant, AdamWeightDecay has ten operands and its results go nowhere",
    "r1_036_eval": "numbers of the pieces of expansions follow the execution order",
    "r231126_057_gradient": "graphs compute on with the zeros behind Floor; a tuple in the result stays a tuple",
    "r1_177_gradient": "the constant of an inner primitive of the library lies in the scope of the root",
    "h_grad_c": "equal primitives take the scope of one of the function before those of its branches",
    "r88_037_gradient": "a branch gives what only a loop takes whose results nobody needs, with gradients of zero",
    "r1_017_gradient": "variables of an unrolled loop are formal parameters, as are those of differentiated branches",
    "h_grad_e": "functions take what they use, then what functions use whose parent they are, in the manager's order",
    "h_grad_g": "whole numbers of a loop have gradients: what a call returns is added, zeros that are known are not",
    "h_grad_h": "the gradient of a whole number's Cast is the Cast of zeros, which is added to that of later rounds",
    "h_grad_f": "the header of a loop adds the zero gradient of its condition",
    "r1_117_gradient": "what nothing reads after a loop has a gradient in rounds, none where the loop is left",
    "r93_037_gradient": "a side whose dead code reads weights takes a token, with gradients too",
    "r629_017_gradient": "unused gradients of weights stay in branches that the analyses do not get to",
    "r622_037_gradient": "gradients of whole numbers, and of outputs that only a token takes, are zeros that pass on",
    "r94_017_gradient": "what a branch computes for nobody is no use of a value where its gradients are summed",
    "r611_037_gradient": "gradients of a value are summed in the order in which branches took what they use",
    "r88_057_gradient": "gradients of max() call one function; zeros that a call passes stay in sums",
    "r507_037_gradient": "a dead cell is gone before equal primitives take the scope of one",
    "r1_167_for": "a read for nobody takes the place of later ones among those that the result waits for",
    "r20261202_018_pynative": "the gradient of a maximum fills masks where the script does not run in GRAPH mode",
    "r20261202_002_shared": "a function that applies an operator and nothing else takes the scope of its call",
    "h_optim": "a learning rate's Cast is its own, not the library's function that its first caller names",
    "h_jitgrad": "a record holds the last step of a jit function",
    "r1_066_while": "where branches leave a loop, what follows it is one function, which each of them calls",
    "r1_067_for": "callers of a library function with a branch share its sides where the types are the same",
    "r1_099_jitstep": "indexes of a jit function's lookups are checked, and a record holds each step",
    "r1_175_train": "the gradient of an operator that takes a weight itself takes it, too",
    "r612_037_gradient": "a loop whose results nobody needs still calls what follows it",
    "h_avgpool": "means with padding are AvgPool3D between ExpandDims and Squeeze, also where nothing is padded",
    "h_crossaxes": "a loss of 3 axes is that of images of one row; weights are multiplied after a view",
    "h_bundle": "who takes a tuple with weights runs before the effect that writes one of these",
    "h_addnbranch": "sums in sums are merged in branches, too, unless another function takes the inner one",
    "r1_082_shared": "names in the body of an earlier function are looked up before those of later ones",
    "h_branch_cast": "a condition on a tensor looks up cast in the default scope",
    "r20261202_015_train": "what a loss computes after the tests of its arguments is in functions of its own",
    "h_padmodes": "PadV3 takes its amounts as a tensor, so the backend makes it anew, with its gradient",
}


@pytest.mark.parametrize("name", NETS)
def test_a_net_is_exact(name, measured):
    (result,) = measured([name]).values()
    assert not result.causes
    assert all(equal == total for measure, (equal, total) in result.counts.items() if measure != "time")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in pack.names() if name not in NETS])
def test_every_other_net_is_exact_or_as_equal_as_it_was(name, measured):
    """What differs for a net is in ``floors.json``; all other nets are exact."""
    (result,) = measured([name]).values()
    known = rates.floors()["different"].get(name)
    if known is None:
        assert not result.causes
    for measure, (equal, total) in result.counts.items():
        if measure != "time" and (known is None or measure != "values"):
            assert equal >= (known or {}).get(measure, total), measure


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("r1_118_pynative", "its merged forward graph is differentiated, which gives values out from its result on"),
        ("r1_055_train", "a list of learning rates is a cell of the vendor's name"),
    ],
)
def test_execution_orders_are_exact(name, rule, measured):
    # memory that is not written has any value
    (result,) = measured([name]).values()
    equal, total = result.counts["orders"]
    assert equal == total, rule


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("r20261125_054_nets", "the result of a function depends on arguments that the function does not use"),
        ("r624_017_gradient", "what an unrolled loop passes on has the order in which its body reads it"),
        ("r628_017_gradient", "what the last turn of an unrolled loop passes on has gradients, and then no users"),
        ("r20261224_017_gradient", "several uses of a rule with one gradient are one call, in a function of its own"),
        ("r621_037_gradient", "tuples of zero gradients stay nodes unless the functions are analysed again"),
    ],
)
def test_names_and_graph_ids_are_exact(name, rule, measured):
    (result,) = measured([name]).values()
    for measure in ("names", "trees", "graphs"):
        equal, total = result.counts[measure]
        assert equal == total, rule
