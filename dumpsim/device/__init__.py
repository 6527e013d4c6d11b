"""The emulated chip: memory, streams, tasks, events, overflow status, scheduler, faults and the chips as data."""
