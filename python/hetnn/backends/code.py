"""What stands around a vendor's bytes in a file: by which version they were compiled, and for which spec."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hetnn.errors import InvalidModel

_LENGTH_BYTES = 4  # of the header, little-endian


def with_header(version: str, spec: Mapping[str, Any], code: bytes | bytearray | memoryview) -> bytes:
    """The code as a file keeps it."""
    header = json.dumps({"version": version, "spec": dict(spec)}).encode()
    return len(header).to_bytes(_LENGTH_BYTES, "little") + header + code


def taken_apart(called: str, kept: bytes) -> tuple[str, dict[str, Any], bytes]:
    """Version, spec and code. InvalidModel naming the device, `called`, where there is no header."""
    end = _LENGTH_BYTES + int.from_bytes(kept[:_LENGTH_BYTES], "little")
    try:
        header = json.loads(kept[_LENGTH_BYTES:end])
        return str(header["version"]), dict(header["spec"]), kept[end:]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidModel(
            f"device '{called}': its code has no header that says what compiled it. Compile the model again."
        ) from error
