"""TorchAir: ``torch.compile`` with GE as the back end, on the emulated device."""

from dumpsim.frontends.torchair import scope
from dumpsim.frontends.torchair._backend import get_compiler, get_npu_backend
from dumpsim.frontends.torchair.configs.compiler_config import CompilerConfig

__all__ = ["CompilerConfig", "get_compiler", "get_npu_backend", "scope"]
