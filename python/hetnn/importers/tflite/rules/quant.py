"""TFLite's steps between reals and integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.importers.tflite.integers import dequantized, is_typed, plain_type, quantized, real
from hetnn.importers.tflite.rules.call import Call, always, rule
from hetnn.importers.tflite.rules.tables import by_table, has_table


@rule("DEQUANTIZE", integers=always)
def _dequantize(call: Call) -> Any:
    held = call.held(0)
    if held.array is not None:
        if held.quant is not None and held.array.dtype.kind in "iu":
            return dequantized(call, held)
        return call.of_array(held.array.astype(np.float32))
    x, first = call.in_its_layout(0)
    return call.placed(call.cast(x, "f32") if held.quant is None else real(call, x, held.quant), first)


@rule("DENSIFY", integers=always)
def _densify(call: Call) -> Any:
    """Of a constant, which was made dense when it was read."""
    return call.held(0)


@rule("QUANTIZE", integers=always)
def _quantize(call: Call) -> Any:
    if has_table(call):
        return by_table(call)
    x, first = call.in_its_layout(0)
    tensor, quant = call.outputs[0], call.quant(0)
    if tensor.quant is None:
        return call.placed(call.cast(x, tensor.dtype), first)
    if is_typed(tensor) and is_typed(call.tensor(0)):
        return call.placed(call.create("quantize", [x], to=plain_type(tensor), **call.q()), first)
    reals = x if quant is None else real(call, x, quant)
    return call.placed(quantized(call, reals, tensor), first)


@rule("FAKE_QUANT")
def _fake_quant(call: Call) -> Any:
    """Rounded to one of 2^bits - 1 steps between two bounds, which are moved so that 0 is one of them."""
    x, first = call.in_its_layout(0)
    low, high, bits = float(call.option("Min")), float(call.option("Max")), int(call.option("NumBits"))
    least, most = (1 if call.option("NarrowRange") else 0), 2**bits - 1
    scale = np.float32(np.float32(high - low) / np.float32(most - least))
    zero_real = np.float32(least - np.float32(low) / scale)
    zero = float(least if zero_real < least else most if zero_real > most else np.floor(zero_real + np.float32(0.5)))
    bottom, top = float(np.float32(least - zero) * scale), float(np.float32(most - zero) * scale)
    clamped = call.create("clamp", [x], min=bottom, max=top)
    steps = call.create("div", [call.create("sub", [clamped, call.like(bottom, x)]), call.like(scale, x)])
    whole = call.create("floor", [call.create("add", [steps, call.like(0.5, x)])])
    y = call.create("add", [call.create("mul", [whole, call.like(scale, x)]), call.like(bottom, x)])
    return call.placed(y, first)
