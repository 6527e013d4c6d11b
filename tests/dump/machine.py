"""A machine made of events: tensors in a byte array, tasks raised by hand."""

import itertools
import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from dumpsim.core.abstract import TensorType
from dumpsim.core.clock import VirtualClock
from dumpsim.core.dtype import dtype, from_numpy
from dumpsim.core.events import GraphEvent, RunEvent, TaskEvent, TensorRef
from dumpsim.core.irdoc import ConstRef, IrDoc, IrNode
from dumpsim.core.settings import RunSettings
from dumpsim.dump.control import DumpControl
from dumpsim.dump.service import DumpService, SessionInfo
from dumpsim.modes.environment import read_environment
from dumpsim.tensor.layout import to_device

COMMON, E2E = "common_dump_settings", "e2e_dump_settings"
TARGETS = {"ascend_o0": "Ascend", "ascend_o2": "Ascend", "ascend_ge": "Ascend", "gpu": "GPU", "cpu": "CPU"}
WHOLE = ("ascend_o2", "ascend_ge")


def config(root, **changes):
    """A config that every profile takes; names of fields choose their section."""
    found = {
        COMMON: {
            "dump_mode": 0, "path": str(root), "net_name": "Net", "iteration": "all", "input_output": 0,
            "kernels": [], "support_device": [0],
        },
        E2E: {"enable": True},
    }  # fmt: skip
    ours = {"enable", "trans_flag", "save_kernel_args", "stat_calc_mode", "device_stat_precision_mode",
            "sample_mode", "sample_num"}  # fmt: skip
    for name, value in changes.items():
        found[E2E if name in ours else COMMON][name] = value
    return found


_addresses = itertools.count(1 << 20, 1 << 20)


def ref(array, slot=0, *, kind=None, device=None, layout="DefaultFormat", shape=None, origin="device", name=""):
    """A reference to a tensor: `array` in host form, `device` the number type that the device holds."""
    array = np.asarray(array)
    kind = dtype(kind) if kind else from_numpy(array.dtype)
    held = dtype(device) if device else kind
    values = array.astype(held.numpy) if device else array
    if layout not in ("DefaultFormat", "ND", "NCHW"):
        values = to_device(values, layout)
    data = np.frombuffer(bytearray(values.tobytes()), np.uint8)
    return TensorRef(
        slot=slot,
        dtype=kind,
        shape=tuple(array.shape) if shape is None else shape,
        device_dtype=held,
        device_format=layout,
        device_shape=tuple(values.shape) if shape is None else shape,
        address=next(_addresses) if origin == "device" else 0,
        nbytes=data.size,
        read=lambda: data,
        origin=origin,
        is_weight=bool(name),
        name=name,
    )


def graph(graph_id=0, *, root=0, order=("Default/Add-op0",), constants=(), kind="float32"):
    """A compiled graph that holds one Add."""
    tensor = TensorType(dtype=dtype(kind), shape=(2, 3))
    node = IrNode(
        index=0, name="CNode_1", op_type="Add", prim_func=True,
        operands=tuple(ConstRef(value=value, abstract=abstract) for value, abstract in constants),
        operand_types=tuple(abstract for _, abstract in constants), output=tensor, full_name="Default/Add-op0",
    )  # fmt: skip
    doc = IrDoc(name=f"kernel_graph{graph_id}", graph_id=graph_id, params=(), nodes=(node,))
    return GraphEvent(
        doc=doc, graph_id=graph_id, root_graph_id=root, is_root=graph_id == root, execution_order=tuple(order)
    )


def task(name="Default/Add-op0", operands=(), outputs=(), *, op_type=None, graph_id=0, root=0, **fields):
    """A kernel."""
    last = name.rsplit("/", 1)[-1]
    return TaskEvent(
        op_type=op_type or last.rsplit("-op", 1)[0], full_name=name, graph_id=graph_id, root_graph_id=root,
        operands=tuple(operands), outputs=tuple(outputs), **fields,
    )  # fmt: skip


class Machine:
    """Drives a dump."""

    def __init__(
        self, root, profile="seed/ascend_o0", *, clock=None, settings=None, env=None, disk=None, control=None,
        info=None, **changes,
    ):  # fmt: skip
        self.root = root
        release, device = profile.split("/")
        options = {"manifest": None, **(settings or {})}
        document = config(root, **changes)
        if device in WHOLE:
            del document[E2E]
        env = {"ENABLE_MS_GE_DUMP": "1", **(env or {})} if device == "ascend_ge" else env or {}
        self.log = []
        self.runs = {}
        info = dict(info or {})
        run = RunSettings(mindspore=release, **options)
        target, level = TARGETS[device], "O2" if device in WHOLE else "O0"
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "dump.json"
            file.write_text(json.dumps(document))
            asked = read_environment(
                {"MINDSPORE_DUMP_CONFIG": str(file), **env}, release=release, target=target, jit_level=level,
                device_id=info.get("device_id", 0), exception_dump=info.pop("exception_dump", ""),
                overrides=run.overrides,
            )  # fmt: skip
        self.log += [("WARNING", text) for _, text in asked.warnings]
        self.info = SessionInfo(
            target=target,
            jit_level=level,
            clock=clock or VirtualClock(),
            settings=run,
            disk=disk,
            control=control or DumpControl(),
            log=lambda level, function, text: self.log.append((level, text)),
            **info,
        )
        self.service = DumpService(self.info, asked.profile, asked.request)

    def compile(self, *events):
        for event in events:
            if self.service.wants(event):
                self.service.graph_compiled(event)

    def run(self, *tasks, root=0, parameters=(), kind="train", kernel=None):
        """One run of a root graph."""
        count = self.runs.get(root, 0)
        self.runs[root] = count + 1
        event = RunEvent(root_graph_id=root, graph_id=root, run_count=count, kind=kind)
        self.service.run_begin(event)
        for item in tasks:
            if self.service.wants(item):
                self.service.before_task(item)
                if kernel is not None:
                    kernel(item)
                self.service.after_task(item)
        self.service.run_end(replace(event, run_count=count + 1, parameters={root: parameters}))

    def files(self):
        """Paths below the rank's directory."""
        rank = self.root / "rank_0"
        return sorted(str(p.relative_to(rank)) for p in rank.rglob("*") if p.is_file())

    def names(self):
        """npy names without time stamps, by directory."""
        return sorted(_without_stamp(name) for name in self.files() if name.endswith(".npy"))

    def find(self, part):
        """The one file whose path holds a text."""
        found = [name for name in self.files() if part in name]
        assert len(found) == 1, found
        return self.root / "rank_0" / found[0]


def _without_stamp(name):
    fields = name.split(".")
    return ".".join(field for field in fields if not (field.isdigit() and len(field) == 16))
