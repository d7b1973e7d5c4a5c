"""TFLite's pooling."""

from __future__ import annotations

from typing import Any

from hetnn.errors import InvalidModel
from hetnn.importers.tflite.integers import LITERT, graph_form
from hetnn.importers.tflite.rules.call import Call, at_one_scale, rule
from hetnn.importers.tflite.rules.conv import padding_of, stride_of


def _window(call: Call, x: Any) -> dict[str, Any]:
    kernel = [int(call.option("FilterHeight")), int(call.option("FilterWidth"))]
    if min(kernel) < 1:
        raise InvalidModel(f"a window of {kernel}")
    stride = stride_of(call)
    return {"kernel": kernel, "stride": stride, "padding": padding_of(call, x.shape[2:], kernel, stride, [1, 1])}


@rule("MAX_POOL_2D", integers=at_one_scale)
def _max_pool(call: Call) -> Any:
    x = call.first(0)
    return call.placed(call.activated(call.create("max_pool2d", [x], **_window(call, x), **call.q())), True)


@rule("AVERAGE_POOL_2D", integers=at_one_scale)
def _mean_pool(call: Call) -> Any:
    """Means of what lies inside the input."""
    x, told = call.first(0), {"count_include_pad": False}
    if call.typed and call.tensor(0).dtype == "u8":  # halves are rounded away from the file's own zero
        quant = call.quant(0)
        assert quant is not None
        unsigned = {"q_scale": list(quant.scales), "q_zero": quant.zero_points[0]}
        whole = call.create("bitcast", [call.plain(x, 0)], to="u8", **unsigned)
        means = call.create("avg_pool2d", [whole], **_window(call, x), **told, **unsigned, **LITERT)
        plain = call.create("bitcast", [means], to="u8")
        return call.placed(call.activated(graph_form(call, plain, call.outputs[0])), True)
    y = call.create("avg_pool2d", [x], **_window(call, x), **told, **call.q())
    return call.placed(call.activated(y), True)


@rule("L2_POOL_2D")
def _root_of_squares(call: Call) -> Any:
    x = call.first(0)
    squares = call.create("mul", [x, x])
    means = call.create("avg_pool2d", [squares], **_window(call, x), count_include_pad=False)
    return call.placed(call.activated(call.create("sqrt", [means])), True)
