"""A sample of `make fuzz-serve`."""

from __future__ import annotations

import asyncio

from fuzz import fuzz_serve


def test_damaged_requests_meet_no_bug() -> None:
    assert asyncio.run(fuzz_serve.fuzz(2000, seed=3)) == []
