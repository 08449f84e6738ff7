"""Shared fixtures."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared() -> Path:
    """The reference data that stands beside the repository where it is developed."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip("the reference data does not stand beside this checkout")
    return folder
