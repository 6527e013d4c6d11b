"""Which operators `dump_mode` and `kernels` choose, and which elements of `kernels` chose anything."""

from collections.abc import Iterator

from dumpsim.core.events import TaskEvent
from dumpsim.dump import decide
from dumpsim.modes.config import DumpConfig

__all__ = ["KernelChoice"]


class KernelChoice:
    """The operators of a run that a config selects; each name is looked at once.

    Examples
    --------
    >>> from dumpsim.modes.configfile import load
    >>> from dumpsim.modes.profile import find
    >>> text = b'''{"common_dump_settings": {"dump_mode": 1, "path": "/d", "net_name": "n", "iteration": "all",
    ... "input_output": 0, "kernels": ["Exp", "Log"]}, "e2e_dump_settings": {"enable": true}}'''
    >>> choice = KernelChoice(load(text, {}, find("seed", "ascend_o0"))[0])
    >>> choice.use("Default/Exp-op0")
    >>> list(choice.unused())
    ['Log']
    """

    def __init__(self, config: DumpConfig) -> None:
        self._config = config
        self._selected: dict[tuple[str, str], bool] = {}
        self._used: set[str] = set()  # elements of `kernels` that matched something

    def __contains__(self, event: object) -> bool:
        """Whether an operator is selected."""
        if self._config.dump_mode == 0:
            return True
        assert isinstance(event, TaskEvent)
        key = (event.full_name, str(event.attrs.get("dump", "")) if self._config.dump_mode == 2 else "")
        found = self._selected.get(key)
        if found is None:
            found = self._selected[key] = decide.is_selected(self._config, event.full_name, event.attrs)
            self.use(event.full_name)
        return found

    def use(self, name: str) -> None:
        """Remember which element of `kernels` matches a name."""
        rule = self._config.kernels.match(name) if self._config.dump_mode == 1 else None
        if rule is not None:
            self._used.add(rule.text)

    def unused(self) -> Iterator[str]:
        """Elements of `kernels` that matched nothing."""
        if self._config.dump_mode == 1:
            yield from sorted({rule.text for rule in self._config.kernels.rules} - self._used)
