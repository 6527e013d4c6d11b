"""What a capture treats differently from a function: cells and primitives, which `nn` and `ops` define."""

__all__ = ["CellBase", "PrimitiveBase"]


class CellBase:
    """Base of `nn.Cell`: a capture rewrites its `construct` and enters its scope."""


class PrimitiveBase:
    """Base of `ops.Primitive`: a capture counts its names by its operator type."""

    name: str
