"""The texts around sharding as a whole: our front end compiles the recorded scripts.

Compared are operators, operands, numbers and variables, instance names, strategies, types and scopes of each line.
"""

import re

import pytest
from graph.parallel.replay import forward, load
from graph.parallel.stages import read
from graph.parallel.texts import same, texts_of, trains

RATE = 0.65  # of evaluation nets that are equal in everything; most others differ in the base of the numbers
TRAINING = 0.62  # of training steps that are equal but for numbers and variables


def _evaluations():
    return {name: net for name, net in load().items() if not trains(net)}


# together with the training steps they execute each line of the pass at least five times, where so many nets do
EQUAL = (
    "net_0005",
    "net_0008",
    "net_0023",
    "net_0024",
    "net_0027",
    "net_0029",
    "net_0032",
    "net_0035",
    "net_0056",
    "net_0086",
    "net_0088",
    "net_0089",
    "net_0092",
    "net_0094",
    "net_0096",
    "net_0155",
    "net_0178",
    "net_0180",
    "net_0197",
    "net_0200",
    "net_0221",
    "net_0230",
    "net_0236",
    "net_0256",
    "net_0259",
    "net_0267",
    "net_6123",
    "net_6127",
    "net_6138",
    "net_6143",
    "net_6150",
    "net_6154",
    "net_6177",
    "net_6178",
    "net_6181",
    "net_6213",
    "net_6233",
    "net_6250",
)
ALIKE = (
    "net_0003",
    "net_0028",
    "net_0040",
    "net_0042",
    "net_0051",
    "net_0058",
    "net_0060",
    "net_0063",
    "net_0067",
    "net_0095",
    "net_0170",
    "net_0184",
    "net_0241",
    "net_6161",
)


MORE = """
0000 0001 0002 0006 0007 0009 0011 0012 0013 0014 0015 0016 0018 0020 0021 0022 0025 0026 0034 0038 0041 0044 0045
0046 0047 0048 0049 0052 0053 0054 0055 0057 0059 0061 0062 0064 0065 0066 0068 0069 0070 0072 0073 0076 0079 0080
0081 0083 0087 0093 0097 0098 0099 0100 0101 0102 0104 0106 0107 0109 0110 0111 0112 0113 0114 0115 0116 0117 0118
0119 0120 0121 0122 0124 0127 0131 0133 0134 0136 0137 0139 0140 0141 0143 0144 0146 0147 0148 0149 0150 0152 0154
0156 0159 0161 0163 0164 0165 0168 0171 0172 0173 0174 0175 0177 0179 0181 0182 0183 0185 0186 0187 0189 0190 0191
0192 0193 0195 0196 0198 0199 0204 0205 0206 0207 0209 0211 0212 0214 0215 0216 0217 0218 0220 0222 0223 0224 0225
0226 0227 0231 0234 0235 0237 0238 0239 0240 0243 0244 0249 0251 0252 0253 0254 0255 0257 0258 0260 0261 0262 0263
0264 0265 0266 6120 6122 6126 6128 6129 6130 6131 6132 6135 6136 6137 6139 6140 6144 6145 6146 6147 6149 6151 6152
6153 6155 6156 6157 6159 6160 6162 6163 6166 6167 6168 6169 6170 6171 6172 6173 6174 6175 6176 6179 6182 6183 6185
6186 6187 6188 6189 6190 6192 6193 6194 6195 6196 6197 6199 6200 6201 6202 6203 6204 6205 6207 6209 6210 6211 6212
6214 6215 6216 6217 6218 6220 6221 6222 6223 6224 6225 6228 6229 6230 6231 6232 6234 6235 6240 6241 6242 6244 6245
6248 6251 6252 6254 6255 6256 6257 6258 6260 6262 6263 6264 6265 6267 6268 6271 6272 6273 6275 6278
"""  # further nets that are equal but for numbers and variables


@pytest.mark.parametrize("name", EQUAL)
def test_equal_in_everything(name):
    assert not same(load("nets", "moving")[name])


def test_the_formal_parameters_are_those_of_the_function_that_is_differentiated():
    net = load("moving")["net_6126"]
    for text in ("begin", "end"):
        ours, theirs = (forward(one[text]) for one in (texts_of(net["script"]), net))
        assert [line.operands for line in ours.lines if line.call == "_VirtualDataset"] == [
            line.operands for line in theirs.lines if line.call == "_VirtualDataset"
        ]


def test_a_number_type_is_shown_by_its_number():
    net = load("moving")["net_6253"]
    ours, theirs = (forward(one["end"]) for one in (texts_of(net["script"]), net))
    casts = [[(line.operands, line.types) for line in one.lines if "Cast" in line.call] for one in (ours, theirs)]
    assert casts[0] == casts[1] != []


@pytest.mark.slow
def test_all_evaluations():
    nets = _evaluations()
    equal = [name for name, net in nets.items() if not same(net)]
    assert len(equal) >= RATE * len(nets), sorted(set(nets) - set(equal))


def plain(value):
    """Names of functions without the numbers of the compile."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    value = re.sub(r"\d+_net_Net_construct_\d+|Net_construct", "Net", value or "")
    return re.sub(r"1_mindspore_\w+_TrainOneStepCell_construct_\d+|TrainOneStepCell(?=:|$)", "Train", value)


def is_alike(net):
    """Whether both texts of a training step are those of MindSpore but for numbers and variables."""
    fields = ("call", "operands", "instance", "strategy", "types", "scope")
    mine = texts_of(net["script"])
    for text in ("begin", "end"):
        stages = [
            [[plain(getattr(line, field)) for line in stage.lines for field in fields] for stage in read(one[text])]
            for one in (mine, net)
        ]
        if stages[0] != stages[1]:
            return False
    return True


@pytest.mark.parametrize("name", ALIKE)
def test_a_training_step_is_alike(name):
    assert is_alike(load("nets", "moving")[name])


def marks_of(text):
    """Attributes of the nodes that order others or belong to calls."""
    lines = (line for stage in read(text) for line in stage.lines)
    kinds = ("Depend", "J", "UpdateState", "Load", "EnvironGet", "RefToEmbed", "MakeTuple", "TupleGetItem")
    return {(line.call, str(line.attrs.get("cnode_primal_attrs")), str(line.attrs.get("primitive_attrs")))
            for line in lines if line.call in kinds}  # fmt: skip


def test_nodes_of_order_have_the_attributes_of_mindspore():
    net = load("nets", "moving")[ALIKE[0]]
    mine = texts_of(net["script"])
    for text in ("begin", "end"):
        assert marks_of(mine[text]) == marks_of(net[text])


@pytest.mark.slow
@pytest.mark.parametrize("number", MORE.split())
def test_further_nets_are_alike(number):
    assert is_alike(load("nets", "moving")[f"net_{number}"])


def test_most_training_steps_are_held_to_the_record():
    """Each that is listed is compared in a test of its own."""
    nets = {name for name, net in load("nets", "moving").items() if trains(net)}
    alike = nets & {*ALIKE, *(f"net_{number}" for number in MORE.split())}
    assert len(alike) >= TRAINING * len(nets), sorted(nets - alike)


def _shown(stage):
    """What calls what: operators and the nodes and constants that they take; names of functions count on."""
    return [
        (
            line.call.partition("@")[0],
            [o for o in line.operands if not o.startswith(("%para", "$(", "@"))],
            line.instance,
        )
        for line in stage.lines
    ]


@pytest.mark.parametrize("name", ["net_0028", "net_0122"])
def test_a_training_step_is_two_functions(name):
    net = load()[name]
    mine = texts_of(net["script"])
    for text in ("begin", "end"):
        ours, theirs = read(mine[text]), read(net[text])
        assert len(ours) == len(theirs) == 2
        for one, two in zip(ours, theirs, strict=True):
            assert len(one.params) == len(two.params)
            if name == "net_0122" and "Net_construct" in two.name:
                continue  # Loads of its forward pass are joined otherwise
            assert _shown(one) == _shown(two)


def test_the_function_that_reads_a_weight_first_comes_last():
    net = load()["net_0025"]
    ours = read(texts_of(net["script"])["begin"])
    theirs = read(net["begin"])
    assert ["Train" in stage.name for stage in ours] == ["Train" in stage.name for stage in theirs] == [True, False]


def test_a_cast_is_cut_as_the_script_says():
    """[recorded: Cast to float16 with the strategy (4, 1) on four devices]"""
    net = load("moving")["net_6127"]["script"]
    lines = net.splitlines()
    fields = [at for at, line in enumerate(lines) if line.startswith("        self.")]
    body = [at for at, line in enumerate(lines) if line.startswith("    def construct")]
    lines[fields[0] : body[0]] = ["        self.op0 = P.Cast().shard(((4, 1, 1),))", ""]
    start = next(at for at, line in enumerate(lines) if line.startswith("    def construct"))
    stop = next(at for at, line in enumerate(lines) if line.startswith("def inputs"))
    lines[start:stop] = ["    def construct(self, x):", "        return self.op0(x, ms.float16)", "", ""]
    (cast,) = [line for line in forward(texts_of("\n".join(lines))["end"]).lines if line.call == "PrimFunc_Cast"]
    assert cast.operands[1:] == ["I64(42)"]
    assert (cast.instance, cast.strategy) == ("op0", "((4, 1, 1))")
