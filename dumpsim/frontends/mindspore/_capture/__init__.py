"""From Python code to graphs: rewriting, tracing, compiling, gradients."""
