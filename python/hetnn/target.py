"""From what users call a target to the list of devices the compiler takes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hetnn.backends.registry import device_of, prepare_to_compile
from hetnn.errors import InvalidModel
from hetnn.files import read_text
from hetnn.json_text import load_json
from hetnn.targets import load_spec, plain_kinds, preset_names

# Of a device that stands behind a device server, in its row of a target.
PLACE_KEYS = frozenset({"at", "token_file", "timeout_s", "tls", "tls_ca"})


def resolve_target(target: Any) -> dict[str, Any]:
    """`{"name", "devices": [{"name", "kind", "spec"?}], "links"?}` for a name, a path, a dict or a target.

    "cpu", "relu-only" and "cpu+relu-only" (the general processor comes first and may be left out), any number of NPUs
    ("cpu+relu-only+relu-mul"), paths of NPU data sheets in place of names, a data sheet as a dict; or a dict of this
    function's own form, or the path of a file of it, as `hetnn targets NAME --json` prints. InvalidModel names the part
    that is not understood. Where devices stand is left out (`places_in`).
    """
    found = _resolved(target)
    for device in found["devices"]:
        if isinstance(device, Mapping):
            prepare_to_compile(str(device.get("kind")))
    if any(_stands_elsewhere(device) for device in found["devices"]):
        found = {**found, "devices": [_without_place(device) for device in found["devices"]]}
    return found


def places_in(target: Any) -> dict[str, dict[str, Any]]:
    """Where those devices of a target stand that say so (`at`, `token_file`, ... beside `name` and `kind`), by their
    names, as `hetnn.load` takes them."""
    return {
        str(device.get("name", device.get("kind"))): {key: device[key] for key in PLACE_KEYS & set(device)}
        for device in _resolved(target)["devices"]
        if _stands_elsewhere(device)
    }


def _stands_elsewhere(device: Any) -> bool:
    return isinstance(device, Mapping) and "at" in device


def _without_place(device: Any) -> Any:
    return {key: device[key] for key in device if key not in PLACE_KEYS} if _stands_elsewhere(device) else device


def _resolved(target: Any) -> dict[str, Any]:
    if isinstance(target, Mapping):
        return _of_sheet(dict(target))
    if isinstance(target, os.PathLike):
        return _of_sheet(_read(os.fspath(target)))
    if not isinstance(target, str) or not target:
        raise InvalidModel(f"a target is a name, a path or a dict; got {type(target).__name__} {target!r}.")
    parts = _parts(target)
    sheets = {part: _read(part) for part in parts if part.endswith(".json")}
    whole = [part for part, sheet in sheets.items() if isinstance(sheet, Mapping) and "devices" in sheet]
    if whole:
        if [part for part in parts if part != "cpu"] != whole:
            raise InvalidModel(f"'{whole[0]}' is a target with devices of its own; it cannot be joined with others.")
        return _whole(sheets[whole[0]])
    return _assemble([_npu(sheets[part]) if part in sheets else _device(part) for part in parts])


def _of_sheet(sheet: Any) -> dict[str, Any]:
    return _whole(sheet) if isinstance(sheet, Mapping) and "devices" in sheet else _assemble([_npu(sheet)])


def _whole(target: Mapping[str, Any]) -> dict[str, Any]:
    """One with devices of its own, whose rows the compiler reads."""
    if not isinstance(target["devices"], (list, tuple)):
        raise InvalidModel(f"a target's devices are a list of objects; found {type(target['devices']).__name__}.")
    return dict(target)


def _parts(target: str) -> list[str]:
    """What stands between the pluses; a plus may also belong to the path of a file that is there."""
    words = target.split("+")
    parts: list[str] = []
    while words:
        ends = [k for k in range(len(words), 0, -1) if words[k - 1].endswith(".json")]
        joined = next((k for k in ends if Path("+".join(words[:k])).is_file()), 1)
        parts.append("+".join(words[:joined]))
        words = words[joined:]
    return parts


def _read(path: str) -> Any:
    return load_json(read_text(path), f"target '{path}'")


def _assemble(devices: list[dict[str, Any]]) -> dict[str, Any]:
    if not any(device["kind"] in plain_kinds() for device in devices):
        devices.insert(0, {"name": "cpu", "kind": "cpu"})
    seen: dict[str, int] = {}
    for device in devices:
        number = seen[device["name"]] = seen.get(device["name"], 0) + 1
        if number > 1:
            device["name"] = f"{device['name']}.{number}"
    return {"name": "+".join(device["name"] for device in devices), "devices": devices}


def _device(part: str) -> dict[str, Any]:
    if part in plain_kinds():
        return {"name": part, "kind": part}
    # Installed packages are asked last: reading what they name takes 40 milliseconds.
    others = None if part in preset_names() else device_of(part)
    return others or _npu(load_spec(part))


def _npu(spec: Any) -> dict[str, Any]:
    if not isinstance(spec, dict):
        raise InvalidModel(f"an NPU's data sheet must be an object; got {type(spec).__name__}.")
    name = spec.get("name")
    if not isinstance(name, str):
        raise InvalidModel(f"an NPU's data sheet must have a 'name'; got keys {', '.join(map(str, spec))}.")
    return {"name": name, "kind": "npu", "spec": spec}
