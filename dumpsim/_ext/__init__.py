"""Compiled modules: statistics, digests, layouts, casts. Sources are in `_ext/`; use them through `dumpsim.tensor`."""
