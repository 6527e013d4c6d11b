"""The MindSpore side of an API dump: cells, functions and methods of the front end, op by op."""
