"""Strategies that do not fit their operator, with what MindSpore 2.10 says of each.

``python tests/graph/parallel/illegal.py FOLDER`` writes the scripts, which `record.py` compiles;
``python tests/graph/parallel/illegal.py FOLDER RECORDED`` then takes the texts from the logs.
"""

import json
import re
import sys
from pathlib import Path

__all__ = ["load", "script_of"]

RECORDED = Path(__file__).resolve().parents[3] / "fixtures" / "mindspore_2_10" / "parallel" / "illegal.json"
SCRIPT = """import numpy as np
import mindspore as ms
from mindspore import nn, Tensor, context
from mindspore.ops import operations as P

SETTINGS = {{"device_num": 8, "global_rank": 0, "dataset_strategy": "full_batch"}}


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.op0 = P.{op}.shard({strategy})

    def construct(self, {names}):
        return self.op0({call}){item}


def inputs():
    return [{inputs}]


def network():
    return Net()
"""
_TUPLES = ("LayerNorm", "TopK", "Split", "SoftmaxCrossEntropyWithLogits")


def load() -> dict[str, dict]:
    """Calls with their strategies, by name; ``said`` is the vendor's line, "" where nothing is refused."""
    found: dict[str, dict] = json.loads(RECORDED.read_text())
    return found


def script_of(case: dict) -> str:
    """The script of a case; an operand ``i`` is of integers."""
    names = [name for name in "xyzi" if re.search(rf"\b{name}\b", case["call"])]
    shapes = zip(names, map(tuple, case["shapes"]), strict=True)
    inputs = [f"Tensor(np.ones({shape}, np.{'int32' if name == 'i' else 'float32'}))" for name, shape in shapes]
    item = "[0]" if case["op"].split("(")[0] in _TUPLES else ""
    return SCRIPT.format(**case, names=", ".join(names), inputs=", ".join(inputs), item=item)


def said(log: str) -> str:
    """The first line of a log that tells why a strategy does not fit, without the number of the operator."""
    for line in re.findall(r"^\[ERROR\] PARALLEL.*?\] \w+\] (.*)$", log, re.MULTILINE):
        if not re.search(r"(CheckStrategy|Init) failed", line):
            return re.sub(r"^\w+ ?: ?", "", re.sub(r"Info\d+\b", "", line))
    return ""


def main() -> None:
    """Command line."""
    folder, cases = Path(sys.argv[1]), load()
    for name, case in cases.items():
        if len(sys.argv) == 2:
            (folder / f"{name}.py").write_text(script_of(case))
        else:
            log = Path(sys.argv[2]) / name / "refused.txt"
            case["said"] = said(log.read_text()) if log.exists() else ""
    if len(sys.argv) > 2:
        RECORDED.write_text("{\n" + ",\n".join(f"{json.dumps(n)}: {json.dumps(c)}" for n, c in cases.items()) + "\n}\n")


if __name__ == "__main__":
    main()
