"""One profile per vendor mode and release, and the dialects of their configs. Data and pure functions."""
