"""One server for the tests that change nothing of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import hetnn
from serve.server import Server, save_networks, serving


@pytest.fixture(scope="session")
def networks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return save_networks(tmp_path_factory.mktemp("networks"))


@pytest.fixture(scope="session")
def store(networks: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    kept = hetnn.Store(folder)
    for name in ("mlp", "sum", "slow"):
        kept.add(name, networks[name])
    return folder


@pytest.fixture(scope="session")
def server(store: Path, networks: dict[str, Path]) -> Iterator[Server]:
    with serving("--store", store, "--model", f"two={networks['two']}") as running:
        yield running
