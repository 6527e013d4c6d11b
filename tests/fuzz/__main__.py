"""``python -m tests.fuzz --minutes 10``: fuzz the readers for a time. Not part of the test suite.

Exit code 0 without a crash, 1 with one; inputs that crash are written to ``--out``.
"""

import argparse
import sys
from hashlib import sha1
from pathlib import Path

from .campaign import has_atheris, search, search_with_atheris, serve_atheris


def main(arguments: list[str]) -> int:
    """The command."""
    if arguments[:1] == ["--atheris"]:
        serve_atheris(arguments[1], arguments[2:])
    from .targets import targets

    known = targets()
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz the readers of dumps.")
    parser.add_argument("--minutes", type=float, default=10, help="for all targets together")
    parser.add_argument("--target", choices=known, action="append", help="only this one; may be given again")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="count lines ourselves even where atheris is there")
    parser.add_argument("--out", type=Path, default=Path(), help="directory for inputs that crash")
    options = parser.parse_args(arguments)
    chosen = options.target or list(known)
    run = search if options.plain or not has_atheris() else search_with_atheris
    crashes = 0
    for name in chosen:
        result = run(known[name], options.minutes * 60 / len(chosen), options.seed)
        print(result, flush=True)
        for where, data in result.crashes.items():
            crashes += 1
            path = options.out / f"fuzz-crash-{name}-{sha1(data).hexdigest()[:12]}"
            path.write_bytes(data)
            print(f"  {path}: {where}", flush=True)
    return 1 if crashes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
