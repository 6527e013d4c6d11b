"""Tables of operators, loaded on first use: kernel, shape rule, gradient rule and attributes of each type."""
