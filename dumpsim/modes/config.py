"""A dump config that has passed its dialect: typed, with the vendor's fall-backs applied."""

from dataclasses import dataclass

from dumpsim.core.match import KernelRules
from dumpsim.core.steps import Steps

__all__ = ["DumpConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpConfig:
    """The config of one run.

    Attributes
    ----------
    file : str
        Path of the JSON file as the environment gave it.
    text : bytes
        Its bytes; ``.dump_metadata/data_dump.json`` is a copy.
    asynchronous : bool
        Tensors are read by callbacks on the kernels' streams.
    disabled : str or None
        Why a legal config dumps nothing on this device.
    Other attributes are the fields of the JSON file.
    """

    file: str
    text: bytes
    path: str
    net_name: str
    steps: Steps
    dump_mode: int
    input_output: int
    kernels: KernelRules
    support_device: tuple[int, ...] | None
    op_debug_mode: int
    overflow_number: int
    saved_data: str
    statistic_category: tuple[str, ...]
    initial_iteration: int
    file_format: str = "npy"
    e2e: bool = False
    enable: bool = True
    trans_flag: bool = True
    save_kernel_args: bool = False
    stat_calc_mode: str = "host"
    device_stat_precision_mode: str = "high"
    sample_mode: int = 0
    sample_num: int = 100
    asynchronous: bool = False
    disabled: str | None = None

    @property
    def tensors(self) -> bool:
        """npy files are asked for."""
        return self.saved_data in ("tensor", "full")

    @property
    def binary(self) -> bool:
        """One binary file an operator is asked for, not npy."""
        return self.file_format == "bin"

    @property
    def statistics(self) -> bool:
        """statistic.csv is asked for."""
        return self.saved_data in ("statistic", "full")

    @property
    def inputs(self) -> bool:
        """Inputs are asked for."""
        return self.input_output in (0, 1)

    @property
    def outputs(self) -> bool:
        """Outputs are asked for; Parameter files count as outputs. [spec observed 1.4]"""
        return self.input_output in (0, 2)
