"""A sample of `make fuzz-devices`."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest

from fuzz import fuzz_devices
from hetnn.errors import Unavailable
from hetnn.remote.wire import Wire

ALTERED = r"altered|another protocol"


def test_altered_messages_are_answered_or_refused() -> None:
    findings, counts = fuzz_devices.fuzz(4000, seed=11)
    assert findings == []
    assert counts["answered"] > 500
    assert counts["InvalidModel"] > 1500
    assert counts["Refused"] > 500


def test_no_flipped_bit_is_taken_for_what_was_sent() -> None:
    """Each of a request and of its answer, and some of the code's."""
    made = fuzz_devices.Fuzz(0)
    plain = random.Random(0)
    run, keep, *_ = (fuzz_devices.message(header, payload, plain, 0) for header, payload in made.seeds())
    answer = made.answers(keep + run)
    assert answer.endswith(np.maximum(fuzz_devices.X, 0).tobytes())
    for sound, bits in ((run, range(8 * len(run))), (keep, plain.sample(range(8 * len(keep)), 3000))):
        for bit in bits:
            with pytest.raises(Unavailable, match=ALTERED):
                made.answers(flipped(sound, bit))
    for bit in range(8 * len(answer)):
        with pytest.raises(Unavailable, match=ALTERED):
            received_twice(flipped(answer, bit))
    made.server.end()


def received_twice(said: bytes) -> None:
    wire = Wire(fuzz_devices.Memory(said))  # type: ignore[arg-type]
    for _ in range(2):
        wire.receive(time.monotonic() + 60)


def flipped(sound: bytes, bit: int) -> bytes:
    out = bytearray(sound)
    out[bit // 8] ^= 1 << bit % 8
    return bytes(out)
