"""Presets: the data sheets of NPUs, as JSON files beside this one."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from hetnn.backends.registry import backend_kinds, told_kinds
from hetnn.errors import InvalidModel


def preset_names() -> list[str]:
    """The names of all presets; the family `systolic-<rows>x<cols>` comes on top."""
    files = (entry.name for entry in resources.files(__name__).iterdir())
    return sorted(name.removesuffix(".json") for name in files if name.endswith(".json"))


def plain_kinds() -> list[str]:
    """The compiler's own kinds of device that need no data sheet, the general processor first."""
    from hetnn import _core

    kinds = set(_core.device_kinds()) - {"npu", "cpu"} - told_kinds()
    return ["cpu", *sorted(kinds)]


def load_spec(name: str) -> dict[str, Any]:
    """The data sheet of a preset or of a member of a built-in family. InvalidModel names what there is."""
    if name in preset_names():
        spec: dict[str, Any] = json.loads(
            resources.files(__name__).joinpath(f"{name}.json").read_text(encoding="utf-8")
        )
        return spec
    from hetnn import _core

    built_in = _core.builtin_spec(name)
    if built_in is not None:
        spec = json.loads(built_in)
        return spec
    import difflib

    known = [*plain_kinds(), *preset_names(), *backend_kinds()]
    near = difflib.get_close_matches(name, known, 1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    raise InvalidModel(
        f"there is no target '{name}'.{hint} Known are {', '.join(known)}, systolic-<rows>x<cols>, "
        "and the path of a JSON file. Others come with the packages that bring them (pip install)."
    )
