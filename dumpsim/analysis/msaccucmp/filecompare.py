"""``msaccucmp file_compare``: two npy files. [spec ge 4.6]"""

import os

from dumpsim.analysis.msaccucmp.convert import make_output
from dumpsim.analysis.msaccucmp.dumpfile import DumpFile
from dumpsim.analysis.msaccucmp.journal import Journal
from dumpsim.analysis.msaccucmp.safepath import existing
from dumpsim.analysis.msaccucmp.status import Status, ToolError
from dumpsim.analysis.wholefile import write_whole
from dumpsim.tensor.metrics import METRICS, Metric, metrics

__all__ = ["file_compare"]

_LEFT_OUT = ("KullbackLeiblerDivergence", "StandardDeviation")
_OF_BOOL = ("CosineSimilarity", "RelativeEuclideanDistance")  # [spec ge 4.5]


def file_compare(own: str, golden: str, out: str, journal: Journal) -> Status:
    """Write ``file_result_{time}.txt``, one ``Name: value`` line a measure."""
    left, right = existing(own, "file"), existing(golden, "file")
    for path in (left, right):
        if not path.endswith(".npy"):
            raise ToolError(Status.INVALID_DUMP_DATA, f"'{path}' is not an npy file.")
    make_output(out)
    journal.info(f"The my output dump file is '{left}'.")
    journal.info(f"The ground truth file is '{right}'.")
    a, b = DumpFile.open(left).outputs[0].raw, DumpFile.open(right).outputs[0].raw
    if a.shape != b.shape:
        raise ToolError(
            Status.INVALID_SHAPE,
            f"My output shape {a.shape} in ''{left}'' does not match the ground truth shape {b.shape} in ''{right}''.",
        )
    for path, array in ((left, a), (right, b)):
        if not array.size:
            journal.warning(f"The dump data size is 0 in '{path}'.")
    names = [name for name in METRICS if name not in _LEFT_OUT]
    known = _OF_BOOL if "bool" in (a.dtype.name, b.dtype.name) else names
    computed = metrics(a, b, [name for name in names if name in known], own_name=left, golden_name=right)
    found = {
        name: computed.get(name) or Metric(text="NaN", note=f"Algorithm {name} does not support Boolean types.")
        for name in names
    }
    journal.info("".join(f"{name} " for name in found))
    journal.info("".join(f"{metric.text:<{len(name)}} " for name, metric in found.items()))
    notes = [metric.note for metric in found.values() if metric.note]
    if notes:
        journal.info(str(notes))
    path = os.path.join(os.path.realpath(out), f"file_result_{journal.stamp()}.txt")
    write_whole(path, ["".join(f"{name}: {metric.text}\n" for name, metric in found.items()).encode()])
    journal.info(f"The file compare result have been written to \"'{path}'\".")
    return Status.OK
