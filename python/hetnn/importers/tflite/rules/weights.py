"""Weights and biases of TFLite's layers, of reals and of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hetnn.errors import InvalidModel
from hetnn.importers.tflite.integers import is_typed, signed
from hetnn.importers.tflite.rules.call import Call


def takes_integers(call: Call, x: int = 0, weight: int = 1, bias: int = 2) -> bool:
    """Whether a layer of an input, weights and perhaps biases is one on integers, with weights that are known."""
    weights, filters = call.known(weight), call.quant(weight)
    if weights is None or filters is None or weights.dtype not in (np.int8, np.uint8):
        return False
    known_bias = not call.given(bias) or (call.known(bias) is not None and call.tensor(bias).dtype in ("i32", "i64"))
    return known_bias and is_typed(call.tensor(x)) and is_typed(call.outputs[0])


def weight_and_bias(
    call: Call, x: int, weight: int, bias: int, perm: Sequence[int], filters: int = 0
) -> tuple[Any, Any]:
    """The weights with their axes in another order, and the biases, None where there are none.

    `filters` is the axis of filters then. Of integers a bias is at the scale of the sums, whatever the file says of it.
    """
    if not call.typed:
        return call.turned(weight, perm), call[bias] if call.given(bias) else None
    array, quant, of_x = call.known(weight), call.quant(weight), call.quant(x)
    assert array is not None
    assert quant is not None
    assert of_x is not None
    if len(quant.scales) > 1 and perm[filters] != quant.axis:
        wanted = f"those of filters lie along {perm[filters]}"
        raise InvalidModel(f"weights with scales along the axis {quant.axis}; {wanted}")
    scales = [_scale(call, x, of_x.scales[0], scale, len(quant.scales) > 1) for scale in quant.scales]
    numbers = signed(array.transpose(perm))
    turn = 128 if array.dtype == np.uint8 else 0
    zeros = [zero - turn for zero in quant.zero_points] if any(zero != turn for zero in quant.zero_points) else [0]
    along = {"q_axis": filters} if len(scales) > 1 else {}
    made = call.typed_constant(numbers, {"q_scale": scales, "q_zero": zeros[0] if len(zeros) == 1 else zeros, **along})
    biases = call.known(bias)
    if biases is None:
        return made, None
    _demand_scale_of_sums(call, bias, of_x.scales[0], quant.scales)
    return made, call.typed_constant(biases, {"q_scale": [of_x.scales[0] * scale for scale in scales], "q_zero": 0})


# Of a step of the result, by which one step of a bias may be another than one of the sums: as LiteRT checks it.
_MOST_APART = 0.02


def _demand_scale_of_sums(call: Call, bias: int, of_x: float, of_filters: Sequence[float]) -> None:
    """InvalidModel for a bias that the file says to be at another scale than the sums."""
    said, result = call.quant(bias), call.result_quant()
    if said is None or result is None or len(said.scales) not in (1, len(of_filters)):
        return
    sums = of_x * np.asarray(of_filters)
    apart = np.abs(sums - np.asarray(said.scales))
    if np.all(apart <= _MOST_APART * result.scales[0]):
        return
    worst = int(np.argmax(apart))
    stated = said.scales[worst if len(said.scales) > 1 else 0]
    raise InvalidModel(
        f"the bias '{call.tensor(bias).name}' has the scale {stated:g}; it must be that of the sums, the input's times "
        f"the weights', {sums[worst]:g}. Convert it again"
    )


def _scale(call: Call, x: int, of_x: float, scale: float, of_channels: bool) -> float:
    """A filter's scale. Where LiteRT rounds its product with the input's to f32, what makes that product exact."""
    rounds = call.tensor(x).dtype == "u8" or (call.name == "FULLY_CONNECTED" and call.tensor(x).dtype == "i8")
    if of_channels or not rounds:
        return scale
    return float(np.float32(of_x) * np.float32(scale)) / of_x
