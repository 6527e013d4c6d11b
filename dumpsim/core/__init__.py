"""Value types, ids, clock, errors and the protocols of the seams; imports nothing but the standard library."""
