"""What the NPU commands share: data sheets by name or path."""

from __future__ import annotations

from typing import Any

from hetnn.errors import InvalidModel
from hetnn.target import resolve_target


def npu_spec(target: str) -> dict[str, Any]:
    """The data sheet of the one NPU that `target` names. InvalidModel when it names none or several."""
    specs = [device["spec"] for device in resolve_target(target)["devices"] if device["kind"] == "npu"]
    if len(specs) != 1:
        raise InvalidModel(f"'{target}' names {len(specs)} NPUs; expected one. `hetnn targets` lists them.")
    spec: dict[str, Any] = specs[0]
    return spec
