"""Bytes to values and back: npy, statistic.csv, mapping.csv, IR text, IR protobuf. Knows no tree and no mode."""
