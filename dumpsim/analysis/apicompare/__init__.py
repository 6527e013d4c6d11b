"""Compares two API dumps: the documented tables of api_dump_compare, and the first divergence."""

from dumpsim.analysis.apicompare.compare import api_dump_compare, compare_api_dumps
from dumpsim.analysis.apicompare.result import ApiComparison, Divergence, StepComparison
from dumpsim.analysis.apicompare.table import Table

__all__ = ["ApiComparison", "Divergence", "StepComparison", "Table", "api_dump_compare", "compare_api_dumps"]
