"""``mindspore.profiler.common``."""
