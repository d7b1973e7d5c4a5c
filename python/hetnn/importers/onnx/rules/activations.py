"""Activations that other operators name: those of fused nodes and of recurrent layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hetnn.errors import Unsupported
from hetnn.importers.onnx.rules.call import Call

# The numbers that each takes, in order; what is not given is as the standard's operator of that name has it.
ACTIVATIONS: Mapping[str, tuple[str, ...]] = {
    "Affine": ("alpha", "beta"),
    "Celu": ("alpha",),
    "Clip": ("min", "max"),
    "Elu": ("alpha",),
    "Gelu": (),
    "HardSigmoid": ("alpha", "beta"),
    "HardSwish": (),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "ScaledTanh": ("alpha", "beta"),
    "Selu": ("alpha", "gamma"),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "Tanh": (),
    "ThresholdedRelu": ("alpha",),
}
_BY_LOWER = {name.lower(): name for name in ACTIVATIONS}


def numbers_of(name: str) -> tuple[str, ...]:
    """Which numbers an activation takes. Unsupported for one that is unknown; capitals do not count."""
    if name.lower() not in _BY_LOWER:
        raise Unsupported(f"the activation {name}")
    return ACTIVATIONS[_BY_LOWER[name.lower()]]


def activate(call: Call, name: str, x: Any, given: Mapping[str, float]) -> Any:
    """What an activation makes of a value, with those of its numbers that are given."""
    own = {key: float(given[key]) for key in numbers_of(name) if key in given}
    found = _BY_LOWER[name.lower()]
    if found == "Clip":
        return call.create("clamp", [x], **own)
    if found == "Affine":
        scaled = call.create("mul", [x, call.like(own.get("alpha", 1.0), x)])
        return call.create("add", [scaled, call.like(own.get("beta", 0.0), x)])
    if found == "ScaledTanh":
        inner = call.create("tanh", [call.create("mul", [x, call.like(own.get("beta", 1.0), x)])])
        return call.create("mul", [inner, call.like(own.get("alpha", 1.0), x)])
    return call.standard(found, [x], **own)
