"""``python -m dumpsim.msaccucmp`` and ``python .../msaccucmp.py``: CANN's comparison tool. [seed 001] [spec ge 4]

The seed tells users to look for a script of this name and to run it by its path. Python then puts the script's
directory, which is the package itself, at the front of the search path, where its rooms would be taken for modules of
the same names; so that entry makes way for the directory that holds the package.
"""

import sys
from pathlib import Path

__all__ = ["main"]


def _by_path() -> None:
    """Make the package importable, and hide what is in it, if this file was run by its path."""
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if not entry or Path(entry).resolve() != here]
    if str(here.parent) not in sys.path:
        sys.path.append(str(here.parent))


def main() -> None:
    """Run the tool on the command line's arguments and leave with its exit code."""
    from dumpsim.analysis.msaccucmp.command import run

    raise SystemExit(run(sys.argv[1:]))


if __name__ == "__main__":
    if not __package__:
        _by_path()
    main()
