"""Graphs of operators, their gradients, and the compilers that turn them into programs."""
