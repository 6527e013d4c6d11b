"""Engines, which compute the kernels of a device."""
