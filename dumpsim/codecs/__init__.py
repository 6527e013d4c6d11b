"""Readers and writers of single files: npy, bin, statistic.csv, mapping.csv, IR text, IR protobuf and others."""
