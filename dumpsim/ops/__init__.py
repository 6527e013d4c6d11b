"""Operators: kernel, shape rule, gradient rule and attributes in one place. Tables, loaded on first use."""
