"""Scripts to start from, with their data. They are ordinary MindSpore scripts: nothing in them knows of dumpsim."""
