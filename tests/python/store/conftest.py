"""A store for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

import hetnn


@pytest.fixture
def store(tmp_path: Path) -> hetnn.Store:
    return hetnn.Store(tmp_path / "store")
