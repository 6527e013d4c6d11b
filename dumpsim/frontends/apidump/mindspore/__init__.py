"""API dumps of MindSpore networks: cells, functions and methods of the front end, op by op."""
