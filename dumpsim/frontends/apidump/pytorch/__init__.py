"""API dumps of torch networks; imports torch, which is an extra."""
