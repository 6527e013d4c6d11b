"""Help pages in plain text: options by section, as wide as the terminal."""

import re
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from dumpsim.core.errors import BadInputError, nearest

__all__ = ["WIDEST", "Command", "Commands", "Entry"]

WIDEST = 120  # columns; longer lines are hard to read
_DEFAULT = re.compile(r"\[default: \(([^()]*)\)")  # typer puts the text of `show_default` in parentheses


@dataclass(frozen=True)
class Entry:
    """A command that is imported when it is called.

    Attributes
    ----------
    home : str
        Its module, which has a function of the command's name.
    section : str
        Section of the list of commands.
    summary : str
        The first line of its docstring.
    settings : dict
        Keyword arguments for its parser.
    """

    name: str
    home: str
    section: str
    summary: str
    settings: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def command(self) -> Any:
        """The command."""
        one = typer.Typer(add_completion=False, rich_markup_mode=None)
        function = getattr(import_module(self.home), self.name)
        settings = {"max_content_width": WIDEST, "help_option_names": ["-h", "--help"]} | self.settings
        one.command(self.name, cls=Command, context_settings=settings)(function)
        return typer.main.get_command(one)


class Command(TyperCommand):
    """A command whose options are listed by section."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, each section under its title."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            if parameter.param_type_name == "argument":
                title = "Arguments"
            else:
                title = getattr(parameter, "rich_help_panel", None) or "Options"
            if record := parameter.get_help_record(ctx):
                sections.setdefault(title, []).append((record[0], _DEFAULT.sub(r"[default: \1", record[1])))
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class Commands(TyperGroup):
    """Commands by name; no module of a command is imported before it is called.

    Subclasses list them in `entries`.
    """

    entries: tuple[Entry, ...] = ()

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, in the order of the help page."""
        return [entry.name for entry in self.entries]

    def get_command(self, ctx: Any, name: str) -> Any:
        """Import a command; None for an unknown one."""
        return next((entry.command for entry in self.entries if entry.name == name), None)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; the error for an unknown one suggests the nearest name."""
        names = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in names:
            raise BadInputError(
                f"No such command {args[0]!r}", allowed=names, nearest=nearest(args[0], names), code="DS-RUN-010"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, each section under its title."""
        width = max(len(entry.name) for entry in self.entries)
        for title in dict.fromkeys(entry.section for entry in self.entries):
            with formatter.section(title):
                formatter.write_dl([(e.name.ljust(width), e.summary) for e in self.entries if e.section == title])
