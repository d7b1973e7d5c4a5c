"""The code of a subgraph: an archive of arrays (.npz), Vela's raw output with hetnn's two entries beside it."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from hetnn.errors import InvalidModel

MEANING, REPORT = "hetnn_meaning", "hetnn_report"


def with_meaning(raw: bytes, meaning: bytes, report: dict[str, Any]) -> bytes:
    """Vela's archive, an executable that computes the same on a general processor, and Vela's report."""
    arrays = arrays_of(raw)
    arrays[MEANING] = np.frombuffer(meaning, np.uint8)
    arrays[REPORT] = np.frombuffer(json.dumps(report).encode(), np.uint8)
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def arrays_of(code: bytes) -> dict[str, Any]:
    """The entries by name. InvalidModel where the bytes are no such archive."""
    try:
        with np.load(io.BytesIO(code), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, OSError, KeyError, EOFError) as error:
        raise InvalidModel(f"an Ethos-U's code is no archive of Vela's: {error}. Compile the model again.") from error
