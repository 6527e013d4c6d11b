"""``dumpsim explain``: explain a field, a variable, a code, or a message of the vendor."""

from typing import Annotated

import typer

from dumpsim.cli.output import echo, print_json

__all__ = ["explain"]


def explain(
    word: Annotated[
        list[str],
        typer.Argument(
            help="Config field, field of --set, environment variable, error code, or a whole error message."
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one meaning per line.")] = False,
) -> None:
    """Explain WORD: what it means, what is allowed, and the source of that."""
    from dumpsim.modes.glossary import explain as look_up

    for index, topic in enumerate(look_up(" ".join(word))):
        if as_json:
            print_json(
                {
                    "name": topic.name,
                    "kind": topic.kind,
                    "text": topic.text,
                    "facts": topic.facts,
                    "source": topic.source,
                }
            )
            continue
        lines = [f"{topic.name} ({topic.kind})", f"  {topic.text}"]
        lines += [f"  {title}: {fact}" for title, fact in topic.facts]
        lines += [f"  source: {topic.source}"] if topic.source else []
        echo(("\n" if index else "") + "\n".join(lines))
