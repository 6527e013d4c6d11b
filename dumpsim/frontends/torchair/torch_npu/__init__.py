"""torch_npu: the names of the device in scripts. Tensors of the emulated NPU are torch's CPU tensors.

The device ``npu`` is the CPU to torch, so that eager operators run and ``tensor.device`` is ``cpu``; compiled graphs
run on the emulated device, see `dumpsim.frontends.torchair`. `install` is called when the module is imported, and
`uninstall` restores torch.
"""

from dumpsim.frontends.torchair._quantise import npu_anti_quant, npu_quantize
from dumpsim.frontends.torchair.torch_npu import npu
from dumpsim.frontends.torchair.torch_npu._names import install, uninstall

__all__ = ["__version__", "install", "npu", "npu_anti_quant", "npu_quantize", "uninstall"]

__version__ = "2.14.0"

install()
