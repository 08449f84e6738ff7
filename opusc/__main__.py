"""`python -m opusc`."""

from opusc.cli.main import entry

__all__: list[str] = []

if __name__ == "__main__":
    entry()
