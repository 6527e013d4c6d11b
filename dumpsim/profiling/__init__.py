"""The profile of a run: what the device's tasks cost on the clock, as timelines and tables."""
