"""``mindspore.ops.auto_generate.gen_ops_prim``: as `mindspore.ops.auto_generate`."""

from dumpsim.frontends.mindspore.ops.auto_generate import __getattr__  # noqa: F401 - answers for this module, too

__all__: list[str] = []
