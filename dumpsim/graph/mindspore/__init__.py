"""MindSpore's compiler: side effects, control-flow segments, names, numbers and the IR document."""
