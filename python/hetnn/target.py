"""From what users call a target to the list of devices the compiler takes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hetnn.errors import InvalidModel
from hetnn.json_text import load_json

# Kinds that need no data sheet.
_PLAIN = ("cpu", "null", "reference")


def resolve_target(target: Any) -> dict[str, Any]:
    """`{"name", "devices": [{"name", "kind", "spec"?}], "links"?}` for a name, a path, a dict or a target.

    "cpu", "relu-only" and "cpu+relu-only" (the general processor comes first and may be left out), any number of NPUs
    ("cpu+relu-only+relu-mul"), paths of NPU data sheets in place of names, a data sheet as a dict, or a dict of this
    function's own form. InvalidModel names the part that is not understood.
    """
    if isinstance(target, Mapping):
        if "devices" in target:
            return dict(target)
        return _assemble([_npu(dict(target))])
    if isinstance(target, os.PathLike):
        target = os.fspath(target)
    if not isinstance(target, str) or not target:
        raise InvalidModel(f"a target is a name, a path or a dict; got {type(target).__name__} {target!r}.")
    return _assemble([_device(part) for part in target.split("+")])


def _assemble(devices: list[dict[str, Any]]) -> dict[str, Any]:
    if all(device["kind"] == "npu" for device in devices):
        devices.insert(0, {"name": "cpu", "kind": "cpu"})
    seen: dict[str, int] = {}
    for device in devices:
        number = seen[device["name"]] = seen.get(device["name"], 0) + 1
        if number > 1:
            device["name"] = f"{device['name']}.{number}"
    return {"name": "+".join(device["name"] for device in devices), "devices": devices}


def _device(part: str) -> dict[str, Any]:
    if part in _PLAIN:
        return {"name": part, "kind": part}
    if part.endswith(".json"):
        path = Path(part)
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise InvalidModel(f"target '{part}' cannot be read: {error.strerror}. Check the path.") from error
        except UnicodeDecodeError as error:
            raise InvalidModel(f"target '{part}' is no text: {error}.") from error
        return _npu(load_json(text, f"target '{part}'"))
    from hetnn.targets import load_spec

    return _npu(load_spec(part))


def _npu(spec: Any) -> dict[str, Any]:
    if not isinstance(spec, dict):
        raise InvalidModel(f"an NPU's data sheet must be an object; got {type(spec).__name__}.")
    name = spec.get("name")
    if not isinstance(name, str):
        raise InvalidModel(f"an NPU's data sheet must have a 'name'; got keys {', '.join(map(str, spec))}.")
    return {"name": name, "kind": "npu", "spec": spec}
