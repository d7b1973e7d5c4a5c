"""What devices that are not here would take by their own clocks, as their compilers say in an executable's code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hetnn import _runtime
from hetnn.backends.backend import Backend, Clock
from hetnn.backends.code import taken_apart
from hetnn.backends.registry import backend_of
from hetnn.errors import InvalidModel

if TYPE_CHECKING:
    from hetnn.executable import Executable


def clocks_of(executable: Executable) -> dict[str, Clock]:
    """By the names of subprograms; none of devices in another machine."""
    backends = {}
    try:
        devices = executable.target["devices"]
    except InvalidModel:
        return {}  # of a plan that names no target
    for device in devices:
        backend = backend_of(device) if device["name"] not in executable._places else None
        if backend is not None and type(backend).clock is not Backend.clock:
            backends[device["name"]] = backend
    if not backends:
        return {}
    program = json.loads(_runtime.take_apart(executable._engine.image(), "the executable")["program"])
    told = {
        row["name"]: backends[row["device"]].clock(taken_apart(row["device"], bytes.fromhex(row["code_hex"]))[2])
        for row in program["subprograms"]
        if row["device"] in backends
    }
    return {name: clock for name, clock in told.items() if clock is not None}
