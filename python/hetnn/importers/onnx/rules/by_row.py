"""Nodes of one-to-one names: the operator of hetnn that a row says, with inputs and attributes in their places."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.element_types import FLOATS, NUMPY, is_float
from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.equal_sizes import unified
from hetnn.importers.onnx.model import dtype_name
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.registry import Row


def by_row(call: Call, row: Row) -> Any:
    """What a one-to-one name means."""
    given = _aligned(call) if row.elementwise else call.all_inputs()
    fills: dict[str, Any] = {}
    attrs: dict[str, Any] = {}
    for word in row.arguments:
        name, _, fixed = word.partition("=")
        ours, _, theirs = name.partition(":")
        if fixed:
            attrs[name] = _of_kind(row.attr_kinds[name], fixed)
        elif ours in row.attr_kinds:
            if call.attrs.get(theirs or ours) is not None:
                attrs[ours] = _of_kind(row.attr_kinds[ours], call.attrs[theirs or ours])
        elif given:
            fills[ours] = given.pop(0)
    if given and row.variadic:
        fills[row.inputs[-1]] = [fills[row.inputs[-1]], *given]
        given = []
    if any(value is not None for value in given):
        raise Unsupported(f"an input more than {row.op['name']} takes")
    inputs: list[Any] = []
    for name in row.inputs:
        found = fills.get(name)
        inputs.extend(found if isinstance(found, list) else [found])
    if row.op["name"] == "concat":
        if None in inputs:
            raise InvalidModel("an input is not given; Concat joins all that it names")
        inputs = unified(call, inputs, apart=[call.axis(attrs["axis"], len(inputs[0].shape))])
    return _of_one_type(call, row, inputs, attrs)


def _aligned(call: Call) -> list[Any]:
    """The inputs; before operator set 7 the second one may be placed along inner axes of the first."""
    inputs = call.values()
    if call.attr("broadcast") and call.attr("axis") is not None and len(inputs) == 2:
        first, second = inputs
        axis = call.axis(call.attr("axis"), len(first.shape))
        behind = len(first.shape) - axis - len(second.shape)
        inputs[1] = call.reshape(second, [*second.shape, *[1] * max(behind, 0)])
    return inputs


def _of_kind(kind: str, value: Any) -> Any:
    """An attribute as one of hetnn's: element types by name, booleans of 0 and 1."""
    if kind == "dtype":
        return dtype_name(int(value))
    if kind == "boolean":
        return bool(int(value))
    return {"integer": int, "real": float}.get(kind, lambda same: same)(value)


def _of_one_type(call: Call, row: Row, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    wanted = inputs[0].dtype if inputs and inputs[0] is not None else ""
    mixed = row.elementwise and len(inputs) == 2 and inputs[1].dtype != wanted
    if mixed:
        common = wider(wanted, inputs[1].dtype)
        inputs = [call.cast(x, common) for x in inputs]
    outputs = call.create_all(row.op["name"], inputs, attrs)
    if mixed and outputs[0].dtype != "bool":
        return call.cast(outputs[0], wanted)
    return outputs[0] if len(outputs) == 1 else outputs


def wider(a: str, b: str) -> str:
    """The element type in which operands of two types are computed."""
    reals = [dtype for dtype in (a, b) if is_float(dtype)]
    if set(reals) == {"f16", "bf16"}:
        return "f32"
    if reals:
        return max(reals, key=FLOATS.index)
    if not {a, b} <= NUMPY.keys():
        raise Unsupported(f"operands of {a} and {b}")
    common = np.promote_types(NUMPY[a], NUMPY[b])
    return next(name for name, dtype in NUMPY.items() if common == dtype)
