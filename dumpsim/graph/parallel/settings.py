"""The settings of the parallel context for a compilation."""

from dataclasses import dataclass

from dumpsim.core.tensorlayout import TensorLayout

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one rank.

    Attributes
    ----------
    device_num, rank : int
        Devices of the stage, and this rank's index among them.
    mode : str
        ``semi_auto_parallel`` or ``auto_parallel``, which propagates the script's strategies.
    dataset_strategy : str or tuple of tuple of int
        ``full_batch``: every rank gets the whole batch; ``data_parallel``: a part; otherwise the cuts of each argument.
    target : str
        The device target, which decides the name of the group of all ranks.
    is_training : bool
        Whether mirrors are inserted and the loss is divided, even if the network itself takes no gradient.
    enable_alltoall, gradients_mean, loss_repeated_mean, enable_parallel_optimizer : bool
        See MindSpore's parallel context.
    optimizer_threshold : int
        Bytes of the smallest weight that the parallel optimizer cuts.
    tensordump : str
        The generation of TensorDump. [spec parallel 1.1]
    clones : frozenset of (str, str)
        Weights that the optimizer has cloned, and the originals, which are cut in the same way.
    frozen : frozenset of str
        Weights that are not trained, and get no mirror.
    alone : frozenset of str
        Weights that the parallel optimizer does not cut.
    planned : tuple of (str, tuple or TensorLayout)
        Weights for which the script has a plan, and their cuts or layouts.
    """

    device_num: int
    rank: int
    mode: str = "semi_auto_parallel"
    dataset_strategy: str | tuple[tuple[int, ...], ...] = "data_parallel"
    target: str = "Ascend"
    is_training: bool = False
    enable_alltoall: bool = False
    gradients_mean: bool = False
    loss_repeated_mean: bool = True
    enable_parallel_optimizer: bool = False
    optimizer_threshold: int = 64 * 1024
    tensordump: str = "A"
    clones: frozenset[tuple[str, str]] = frozenset()
    frozen: frozenset[str] = frozenset()
    alone: frozenset[str] = frozenset()
    planned: tuple[tuple[str, tuple[int, ...] | TensorLayout], ...] = ()

    def cuts(self, number: int, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the cuts of argument `number`.

        Examples
        --------
        >>> Settings(device_num=4, rank=0).cuts(0, (16, 32))
        (4, 1)
        """
        if isinstance(self.dataset_strategy, tuple):
            return self.dataset_strategy[number]
        if self.dataset_strategy == "full_batch" or not shape:
            return (1,) * len(shape)
        return (self.device_num, *(1 for _ in shape[1:]))
