"""The dump: receives events of the emulated machine, and selects, converts, measures and writes tensors.

It is the only package that uses the emulator, `dumpsim.modes` and `dumpsim.archive` together.
"""
