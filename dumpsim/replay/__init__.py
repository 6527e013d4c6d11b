"""Dumped operators, recomputed with the operator table: the one room that joins analysis and ops."""
