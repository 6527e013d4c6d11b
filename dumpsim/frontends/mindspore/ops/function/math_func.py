"""``mindspore.ops.function.math_func``: functions, all of them as `mindspore.ops.function` has them."""

from dumpsim.frontends.mindspore.ops.function import __getattr__  # noqa: F401 - answers for this module, too

__all__: list[str] = []
