"""A short, seeded part of `make fuzz`."""

from __future__ import annotations

from fuzz.fuzz_inputs import fuzz


def test_damaged_inputs_raise_errors_of_our_own() -> None:
    tried, accepted = fuzz(seconds=3, seed=1)
    assert tried > 50
    assert accepted < tried
