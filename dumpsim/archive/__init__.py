"""Records on disk: names, trees, and the sink that writes whole files. Takes a profile, knows none."""
