"""Graphs of operators, and the passes from what was captured to what a device runs."""
