"""The files of a dump on disk: names, trees, and the sink that writes them."""
