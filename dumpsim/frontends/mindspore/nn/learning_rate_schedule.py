"""``mindspore.nn.learning_rate_schedule``: learning rates that follow the step."""

from typing import Any

from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.nn.cell import Cell

__all__ = ["LearningRateSchedule"]


class LearningRateSchedule(Cell):
    """Base of the schedules of a script: `construct` takes the step and returns the rate."""

    def construct(self, global_step: Any) -> Any:
        raise NotImplementedError(
            "The `LearningRateSchedule` is an abstract class, please implement `construct` of the subclass."
        )


class IteratorLearningRate(LearningRateSchedule):
    """One rate for each step."""

    def __init__(self, learning_rate: Tensor, name: str) -> None:
        super().__init__()
        self.learning_rate = Parameter(learning_rate, name)
        self.gather = ops.Gather()

    def construct(self, global_step: Any) -> Any:
        return self.gather(self.learning_rate, global_step, 0)
