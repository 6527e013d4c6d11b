"""The extras that tests need: by the marker of an extra, a test says that it runs only where the extra is installed."""

from importlib.util import find_spec

# marker, which is the extra of pyproject.toml -> the modules that tests import
EXTRAS = {
    "torch": ("torch",),
    "report": ("pandas", "polars", "jinja2"),
    "dask": ("distributed",),
    "mpi": ("mpi4py",),
    "docs": ("mkdocs", "material", "mkdocstrings"),
    "dev": ("transformers", "grimp", "coverage"),
}


def missing(extra: str) -> list[str]:
    """The modules of an extra that are not installed."""
    return [module for module in EXTRAS[extra] if find_spec(module) is None]
