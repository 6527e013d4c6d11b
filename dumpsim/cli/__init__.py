"""The command ``dumpsim``: one file for each command.

Exit codes: 0 ok, 1 findings, 2 usage or config, 3 unreadable data, 4 internal; ``run`` returns the script's own.
"""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; errors of dumpsim become one line on stderr and an exit code."""
    if sys.argv[1:] == ["--version"]:  # asked often by scripts, so answered without a parser
        from dumpsim.core.version import __version__

        print(f"dumpsim {__version__}")
        return
    from dumpsim.core.errors import DumpsimError, UnreadableError

    from .app import app
    from .output import echo

    try:
        app()
    except DumpsimError as error:
        notes = "".join(f"\n  {note}" for note in getattr(error, "__notes__", ()))
        echo(f"dumpsim: {error}{notes}", err=True)
        raise SystemExit(3 if isinstance(error, UnreadableError) else 2) from None
    except OSError as error:
        echo(f"dumpsim: {error.filename}: {error.strerror}", err=True)
        raise SystemExit(3) from None
    except Exception:
        import traceback

        traceback.print_exc()
        echo("dumpsim: this is a bug in dumpsim, not a mistake in your input; please report it", err=True)
        raise SystemExit(4) from None
