"""Ranks of a parallel job, and what belongs to each of them."""

from dumpsim.world.context import RankContext, World, current
from dumpsim.world.launch import launch

__all__ = ["RankContext", "World", "current", "launch"]
