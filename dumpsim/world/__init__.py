"""Ranks of a parallel job, and what belongs to each of them."""

from dumpsim.world.context import RankContext, World, current

__all__ = ["RankContext", "World", "current"]
