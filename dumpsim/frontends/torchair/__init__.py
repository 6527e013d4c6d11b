"""TorchAir: ``torch.compile`` with GE as its back end, on the emulated device."""
