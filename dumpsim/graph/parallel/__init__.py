"""Sharding: layouts of tensors over devices, and the pass that splits a captured network. [spec parallel 2]"""
