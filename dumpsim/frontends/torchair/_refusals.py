"""What the real converter raises for overloads that it refuses. [spec aten 9.5]"""

__all__ = ["Refused", "refusal"]

_NOT_SUPPORTED = frozenset({"aten.sort.stable", "aten.bitwise_and.Scalar"})


class Refused(Exception):
    """No node stands for this use of an operator; `error` is what the real converter raises."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def refusal(target: str) -> Exception:
    """The error of an overload.

    Examples
    --------
    >>> refusal("aten.prod.default")
    NotImplementedError('torch.ops.aten.prod.default ge_converter is not implemented!')
    """
    if target in _NOT_SUPPORTED:
        return RuntimeError(f"torch.ops.{target} ge_converter is not supported!")
    if target == "aten._native_batch_norm_legit.default":
        target = target.removesuffix(".default")  # as its text is written
    return NotImplementedError(f"torch.ops.{target} ge_converter is not implemented!")
