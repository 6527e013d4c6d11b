"""The version of dumpsim."""

__version__ = "0.1.0"
