"""``python -m dumpsim`` is the command ``dumpsim``."""

from dumpsim.cli import main

if __name__ == "__main__":
    main()
