"""``mindspore.ops.operations.image_ops``: primitives, all of them as `mindspore.ops.operations` has them."""

from dumpsim.frontends.mindspore.ops.operations import __getattr__  # noqa: F401 - answers for this module, too

__all__: list[str] = []
