"""The front of the compiled kernels: statistics, digests, layouts and casts of numpy arrays."""
