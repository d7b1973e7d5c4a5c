"""A sample of `make fuzz-devices`."""

from __future__ import annotations

from fuzz import fuzz_devices


def test_altered_messages_are_answered_or_refused() -> None:
    findings, counts = fuzz_devices.fuzz(4000, seed=11)
    assert findings == []
    assert counts["answered"] > 500
    assert counts["InvalidModel"] > 2000
