"""Compiled modules: statistics, digests, layouts, casts, stacks. Sources are in `_ext/`; use them through `dumpsim.tensor`."""
