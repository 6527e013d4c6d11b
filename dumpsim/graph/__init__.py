"""Graphs of operators, their gradients, and the compilers that make programs of them."""
