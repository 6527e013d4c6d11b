"""The profile of a run: the times of the device's tasks, as timelines and tables."""
