"""Compiled modules: statistics, digests, layouts, casts, stacks. Sources: `_ext/`, used through `dumpsim.tensor`."""
