"""Profiles of the vendor's modes and releases, and the dialects of their configs, as data and pure functions."""
