"""``mindspore.common.dump``: `set_dump` where releases up to 2.7 have it."""

from dumpsim.frontends.mindspore.tools.data_dump import set_dump

__all__ = ["set_dump"]
