"""Base classes of cells and primitives, which a capture treats differently from functions."""

__all__ = ["CellBase", "PrimitiveBase"]


class CellBase:
    """Base of `nn.Cell`: a capture rewrites its `construct` and enters its scope."""


class PrimitiveBase:
    """Base of `ops.Primitive`: a capture counts its node numbers by its operator type."""

    name: str
