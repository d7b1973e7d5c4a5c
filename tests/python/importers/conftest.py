"""What tests of importers share: numbers that do not depend on which others run."""

from __future__ import annotations

import pytest

from importers import tflite_integers


@pytest.fixture
def own_numbers(request: pytest.FixtureRequest) -> None:
    """Each test on TFLite's integers draws its own numbers, whichever others run."""
    tflite_integers.restart(request.node.name)
