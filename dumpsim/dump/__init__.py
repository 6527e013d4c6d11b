"""The dump pipeline: listens to the emulated machine, decides, converts, measures, writes.

The only room that joins the emulator with modes and archive.
"""
