"""Engines: what computes the kernels of a device."""
