"""The network that the tests of model servers ask."""

from __future__ import annotations

from pathlib import Path

import pytest

import hetnn

NETWORK = """
graph @net {stage = imported} (%a: f32[2,3], %b: i64[2,3]) -> (%y, %z) {
  %y = relu(%a) : f32[2,3]
  %z = add(%b, %b) : i64[2,3]
}
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("network") / "net.hetnn"
    hetnn.compile(NETWORK).save(made)
    return made
