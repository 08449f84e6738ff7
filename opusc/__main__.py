"""`python -m opusc`."""

import sys

from opusc.cli.main import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
