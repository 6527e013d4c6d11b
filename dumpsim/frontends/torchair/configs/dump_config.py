"""``config.dump_config``: the dumps of GE's graphs and of ACL graphs. [spec ge 1.1-1.4]"""

import os
import sys

from dumpsim.frontends.torchair.configs._option import Directory, JsonFile, Option, Options, Text

__all__ = ["DataDumpConfig", "is_layers", "is_steps", "rank_directory"]

_LAYER = frozenset('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_" /\\.')


def is_steps(text: str) -> bool:
    r"""Return whether TorchAir accepts a string as steps: ``^(((\d+)|(\d+-{0,1}\d+))\|{0,1})*$``. [spec ge 1.2]

    Bars between items may be missing, so that ``1-23-4`` is ``1-2`` and ``3-4``; ``1-2-3`` is not accepted.

    Examples
    --------
    >>> [is_steps(text) for text in ("", "0", "02|3|4", "1|", "5-2", "1-23-4")]
    [True, True, True, True, True, True]
    >>> [is_steps(text) for text in ("0ad", "0|2&", "--", "1-", "-1", "02||||34", "1--6", "1-2-3", "|1")]
    [False, False, False, False, False, False, False, False, False]
    """
    pieces = text.removesuffix("\n").split("|")
    if pieces[-1] == "":
        pieces.pop()
    for piece in pieces:
        first, *rest = piece.split("-")
        if not first.isdecimal() or not all(side.isdecimal() for side in rest):
            return False
        if any(len(side) < 2 for side in rest[:-1]):  # the end of one range and the start of the next
            return False
    return True


def is_layers(text: str) -> bool:
    """Return whether TorchAir accepts a string as names of operators.

    Examples
    --------
    >>> is_layers("Add_1 net/Mul.1"), is_layers("Add|Sub")
    (True, False)
    """
    return _LAYER.issuperset(text.removesuffix("\n"))


def rank_directory(path: str) -> str:
    """Return the rank's directory of a dump; a single process has ``worldsize1_global_rank0``. [spec ge 1.4]

    Examples
    --------
    >>> rank_directory("./")
    './worldsize1_global_rank0'
    """
    size, rank = world()
    return os.path.join(path, f"worldsize{size}_global_rank{rank}")


def world() -> tuple[int, int]:
    """Return the world size and the global rank of torch.distributed."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_world_size(), distributed.get_rank()
    return 1, 0


class DataDumpConfig(Options):
    """The options of dumps.

    Examples
    --------
    >>> config = DataDumpConfig()
    >>> config.dump_mode.value, config.as_options("max-autotune")
    ('all', {})
    """

    def __init__(self) -> None:
        members = {
            "enable_dump": Option(False, [False, True]),
            "dump_path": Directory("./"),
            "dump_mode": Option("all", ["input", "output", "all"]),
            "quant_dumpable": Option(False, [False, True]),
            "dump_step": Text("", r"^(((\d+)|(\d+-{0,1}\d+))\|{0,1})*$", "0|1|2-5|6", is_steps),
            "dump_layer": Text("", r'^[0-9a-zA-Z_" "/\\.]*$', "Mul_1 Add1 Conv2D_1", is_layers),
            "dump_data": Option("tensor", ["tensor", "stats"]),
            "dump_config_path": JsonFile(None),
            "data_dump_stage": Option("optimized", ["original", "optimized"]),
        }
        super().__init__("_DataDumpConfig", "dump_config", members)

    def as_options(self, mode: str) -> dict[str, str]:
        """Return GE's options of the process in a mode, and create the directory of the rank. [spec ge 1.3]"""
        found: dict[str, str] = {}
        if self.dump_config_path.value is not None:
            found["ge_dump_with_acl_config"] = self.dump_config_path.value
        if not self.enable_dump:
            return found
        path = self.full_path()
        if mode != "max-autotune":
            stage = {"aclgraph.dumpStage": self.data_dump_stage.value}
            return {**found, "aclgraph.enableDump": "1", "aclgraph.dumpPath": path, **stage}
        found |= {
            "ge.exec.enableDump": "1",
            "ge.exec.dumpPath": path,
            "ge.exec.dumpMode": self.dump_mode.value,
            "ge.quant_dumpable": self.quant_dumpable.value,
        }
        if self.dump_step.value:
            found["ge.exec.dumpStep"] = self.dump_step.value
        if self.dump_layer.value:
            found["ge.exec.dumpLayer"] = self.dump_layer.value
        found["ge.exec.dumpData"] = self.dump_data.value
        return found

    def full_path(self) -> str:
        """Return the directory of the rank, and create it if it is missing."""
        path = rank_directory(self.dump_path.value)
        os.makedirs(path, exist_ok=True)
        return path
