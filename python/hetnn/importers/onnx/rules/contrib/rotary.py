"""Rotary embeddings, of positions that ONNX Runtime's operators are given in ways of their own."""

from __future__ import annotations

from typing import Any

from hetnn.errors import InvalidModel
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.sizes import Size, divide
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.contrib.attention import (
    heads_of,
    joined_heads,
)
from hetnn.importers.onnx.rules.contrib.pieces import part, places
from hetnn.importers.onnx.rules.declare import INT, SOME_INTS, contrib


def rotated(call: Call, x: Any, cos: Any, sin: Any) -> Any:
    """[batch, heads, rows, size], as far as the tables [batch, rows, half] reach: pairs of halves or of neighbours."""
    batch, _, rows, size = x.shape
    cos, sin = (with_sizes(call, table, [batch, rows, None]) for table in (cos, sin))
    (half,) = call.static_shape(cos, "the table of rotations", slice(2, 3))
    cos, sin = (call.reshape(table, [batch, 1, rows, half]) for table in (cos, sin))
    first = part(call, x, 0, 2 * half)
    apart = bool(call.attr("interleaved", call.attr("rotary_interleaved")))
    shape = list(first.shape)
    pairs = call.reshape(first, [*shape[:3], half, 2] if apart else [*shape[:3], 2, half])
    axis = 4 if apart else 3
    a, b = (call.reshape(part(call, pairs, k, k + 1, axis), [*shape[:3], half]) for k in range(2))
    real = call.create("sub", [call.create("mul", [a, cos]), call.create("mul", [b, sin])])
    imaginary = call.create("add", [call.create("mul", [a, sin]), call.create("mul", [b, cos])])
    turned = call.reshape(call.stacked([real, imaginary], axis), shape)
    return turned if size == 2 * half else call.create("concat", [turned, part(call, x, 2 * half, size)], axis=3)


def of_places(call: Call, table: Any, at: Any) -> Any:
    """Rows of a table of cosines or sines."""
    return call.create("gather", [table, at], axis=0)


def _positions(call: Call, value: Any, batch: Size, rows: Size) -> Any:
    """The places of rows, [batch, rows]: as they are given, or counted from one number on."""
    if len(value.shape) == 2:
        return with_sizes(call, value, [batch, rows])
    if list(value.shape) not in ([1], []) and isinstance(value.shape[0], int):
        raise InvalidModel(f"position_ids of the shape {list(value.shape)}; it must be [1] or [batch, rows]")
    return call.broadcast_to(places(call, rows, 2, 1, call.reshape(value, [1, 1])), [batch, rows])


def _rotated_input(call: Call, cos: Any, sin: Any) -> Any:
    """The input, of three or four axes, by what belongs to each of its rows."""
    x, heads = call.ranked(0, 3, 4), int(call.attr("num_heads") or 0)
    if len(x.shape) == 4:
        return rotated(call, x, cos, sin)
    if not heads:
        (half,) = call.static_shape(cos, "the table of rotations", slice(2, 3))
        (width,) = call.static_shape(x, "heads without their number", slice(2, 3))
        heads = divide(width, 2 * half)
    return joined_heads(call, rotated(call, heads_of(call, x, heads), cos, sin))


_ROTATION: dict[str, Any] = {
    "interleaved": INT,
    "is_packed_batching": 0,
    "num_heads": INT,
    "rotary_embedding_dim": INT,
    "scale": 1.0,
}


@contrib("RotaryEmbedding", "input position_ids cos_cache sin_cache", **_ROTATION)
def _rotary(call: Call) -> Any:
    x = call.ranked(0, 3, 4)
    at = _positions(call, call[1], x.shape[0], x.shape[-2])
    return _rotated_input(call, of_places(call, call[2], at), of_places(call, call[3], at))


@contrib(
    "MRotaryEmbedding",
    "input position_ids cos_cache sin_cache",
    **_ROTATION,
    mrope_layout=INT,
    mrope_section=SOME_INTS,
)
def _multimodal_rotary(call: Call) -> Any:
    """Each row has three places, for time, height and width; which of them a column of the tables follows is told."""
    x, sections = call.ranked(0, 3, 4), [int(size) for size in call.attr("mrope_section")]
    half = sum(sections)
    if len(sections) != 3:
        raise InvalidModel(f"mrope_section must be three sizes; got {sections}")
    if call.attr("mrope_layout"):  # every third column in turn, as far as its section reaches
        follows = [k % 3 if k % 3 and k < 3 * sections[k % 3] else 0 for k in range(half)]
    else:
        follows = [stream for stream, size in enumerate(sections) for _ in range(size)]
    at = with_sizes(call, call[1], [3, x.shape[0], x.shape[-2]])
    tables = []
    for table in (call[2], call[3]):
        rows = of_places(call, with_sizes(call, table, [None, half]), at)  # [3, batch, rows, half]
        picks = [call.constant([stream == own for own in follows], "bool") for stream in range(3)]
        parts = [call.reshape(part(call, rows, stream, stream + 1, 0), list(rows.shape[1:])) for stream in range(3)]
        chosen = call.create("where", [picks[1], parts[1], parts[0]])
        tables.append(call.create("where", [picks[2], parts[2], chosen]))
    return _rotated_input(call, *tables)
