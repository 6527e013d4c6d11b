"""What scripts import: one package per vendor library."""
