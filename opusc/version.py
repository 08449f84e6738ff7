"""The version, in a file of its own so that `opusc --version` imports nothing else."""

__all__ = ["__version__"]

__version__ = "0.1.0"
