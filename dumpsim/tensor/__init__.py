"""Statistics, digests, layouts and casts of numpy arrays, with the help of the compiled modules."""
