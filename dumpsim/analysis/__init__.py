"""Reads any dump and answers questions about it; knows nothing of the emulator."""
