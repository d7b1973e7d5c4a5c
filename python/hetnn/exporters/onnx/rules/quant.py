"""Integers that stand for reals: what lies around an operator's float form, and tables and blocks of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.element_types import numpy_type
from hetnn.exporters.onnx.rules.call import Call, exports
from hetnn.exporters.onnx.schema import schema_of
from hetnn.exporters.onnx.writer import Value, Writer, attribute


@exports("quantize", "dequantize")
def _convert(call: Call) -> Any:
    """Its input arrives as reals; where its result is quantized, these are rounded behind it."""
    return call[0]


def _along(quant: dict[str, Any], rank: int, numbers: Any) -> Any:
    """One number, or several shaped to meet a tensor along their axis."""
    array = np.asarray(numbers)
    if array.size == 1:
        return array.reshape([])
    return array.reshape([-1 if k == quant["axis"] else 1 for k in range(rank)])


def _parameters(writer: Writer, quant: dict[str, Any], dtype: str) -> tuple[Value, Value, dict[str, Any]]:
    """Scale, zero point and axis as ONNX's own operators take them."""
    scales, zeros = np.array(quant["scales"], np.float32), np.array(quant["zero_points"])
    if scales.size == 1:
        parts, axis = (scales.reshape([]), zeros.reshape([])), {}
    else:
        parts, axis = (scales, np.broadcast_to(zeros, scales.shape)), {"axis": int(quant["axis"])}
    zero = writer.constant(parts[1].astype(numpy_type(dtype)), dtype, "zero_point")
    return writer.constant(parts[0], "f32", "scale"), zero, axis


def reals_of(writer: Writer, value: Value, quant: dict[str, Any]) -> Value:
    """scale (q - zero point) in f32."""
    scale, zero, axis = _parameters(writer, quant, value.dtype)
    if schema_of("DequantizeLinear").fault([value.dtype, "f32", value.dtype], {}) is None:
        given = [value, scale, zero if value.dtype != "i32" or any(quant["zero_points"]) else None]
        (out,) = writer.add("DequantizeLinear", given, axis, ["f32"], value.shape, wanted=value.name)
        return out
    (wide,) = writer.add("Cast", [value], {"to": attribute("f64", "dtype")}, ["f64"])
    for op_type, numbers in (("Sub", quant["zero_points"]), ("Mul", quant["scales"])):
        shaped = writer.constant(_along(quant, value.rank, numbers).astype(np.float64), "f64")
        wide = writer.one(op_type, [wide, shaped])
    (out,) = writer.add("Cast", [wide], {"to": attribute("f32", "dtype")}, ["f32"], value.shape)
    return out


def integers_of(writer: Writer, value: Value, quant: dict[str, Any], dtype: str) -> Value:
    """clamp(round(x / scale) + zero point) of f32."""
    scale, zero, axis = _parameters(writer, quant, dtype)
    if schema_of("QuantizeLinear").fault(["f32", "f32", dtype], {}) is None:
        (out,) = writer.add("QuantizeLinear", [value, scale, zero], axis, [dtype], value.shape, wanted=value.name)
        return out
    if value.shape is None and len(quant["scales"]) > 1:
        value = writer.one("Identity", [value])
    (wide,) = writer.add("Cast", [value], {"to": attribute("f64", "dtype")}, ["f64"])
    rank = len(value.shape or ())
    shaped = [
        writer.constant(_along(quant, rank, quant[key]).astype(np.float64), "f64") for key in ("scales", "zero_points")
    ]
    steps = writer.one("Add", [writer.one("Round", [writer.one("Div", [wide, shaped[0]])]), shaped[1]])
    ends: Any = np.iinfo(numpy_type(dtype))
    most = float(ends.max) if ends.bits < 64 else float(ends.max - 1023)
    steps = writer.one("Clip", [steps, *(writer.constant(np.float64(end), "f64") for end in (float(ends.min), most))])
    (out,) = writer.add("Cast", [steps], {"to": attribute(dtype, "dtype")}, [dtype])
    return out


@exports("lookup")
def _lookup(call: Call) -> Any:
    table = call.constant(np.asarray(call.attrs["table"]).reshape(-1), call.dtype)
    place = call.create("Add", [call.cast(call[0], "i32"), call.constant(128, "i32")])
    return call.create("Gather", [table, place])


@exports("dequantize_blocks", "quantize_blocks")
def _blocks(call: Call) -> Any:
    """ONNX has blocks with zero points that are integers of their type."""
    quantizes = call.row["op"] == "quantize_blocks"
    stored = call.dtype if quantizes else call[0].dtype
    zeros = call.optional(2)
    if zeros is not None and zeros.dtype != stored:
        call.refuse(f"with zero points of {zeros.dtype} for {stored}")
    told: dict[str, Any] = {"axis": call.axis(call[0]), "block_size": int(call.attrs["block"])}
    if not quantizes:
        return call.create("DequantizeLinear", call.inputs, dtype=call.dtype, **told)
    if zeros is None:
        told["output_dtype"] = attribute(stored, "dtype")
    if stored.startswith("f8"):
        told["saturate"] = int(call.attrs["saturate"])
    return call.create("QuantizeLinear", call.inputs, dtype=stored, **told)
