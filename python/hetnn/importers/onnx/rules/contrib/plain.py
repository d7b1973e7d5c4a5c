"""Operators of ONNX Runtime that move, count and measure."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.errors import InvalidModel
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.sizes import Size, divide, product
from hetnn.importers.lowering.solving import solved, unit_matrices
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.contrib.pieces import part
from hetnn.importers.onnx.rules.declare import INT, SOME_INT, as_standard, contrib

as_standard("Trilu", "X k?")
as_standard("SampleOp", "X", like="Identity")


def _one(call: Call, index: int) -> Any:
    """An input of one element, as a number of no axis."""
    return call.reshape(call[index], [])


@contrib("Pad", "data pads value?", mode="constant")
def _pad(call: Call) -> Any:
    pads = call.reshape(call[1], [product(call[1].shape)])
    return call.standard("Pad", [call[0], pads, _one(call, 2) if call.given(2) else None], mode=call.attr("mode"))


@contrib("ExpandDims", "X axis")
def _expand_dims(call: Call) -> Any:
    axis = int(call.number(1, "axis"))
    return call.standard("Unsqueeze", [call[0], call.constant([axis], "i64")])


@contrib("Range", "start limit delta?")
def _range(call: Call) -> Any:
    delta = _one(call, 2) if call.given(2) else call.like(1, call[0])
    return call.standard("Range", [_one(call, 0), _one(call, 1), delta])


@contrib("GatherND", "data indices")
def _gather_nd(call: Call) -> Any:
    return call.standard("GatherND", [call[0], call.cast(call[1], "i64")])


@contrib("Unique", "x")
def _unique(call: Call) -> list[Any]:
    """In the order in which they first stand, where each element went, and how many there are of each."""
    values, _, places, counts = call.standard_all("Unique", [call[0]], {"sorted": 0}, 4)
    return [values, places, counts]


@contrib("GridSample", "X Grid", align_corners=0, mode="bilinear", padding_mode="zeros")
def _grid_sample(call: Call) -> Any:
    mode = call.one_of("mode", {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}, "bilinear")
    told = {name: call.attr(name) for name in ("align_corners", "padding_mode")}
    return call.standard("GridSample", [call[0], call[1]], mode=mode, **told)


@contrib("UnfoldTensor", "input", dim=-1, size=SOME_INT, step=1)
def _unfold(call: Call) -> Any:
    """All runs of so many elements along an axis, which come to lie along a new last one."""
    x = call[0]
    axis, size, step = call.axis(int(call.attr("dim")), len(x.shape)), int(call.attr("size")), int(call.attr("step"))
    runs = divide(x.shape[axis] - size, step) + 1
    starts = call.create("mul", [call.create("arange", [], end=runs), call.constant(step, "i64")])
    places = call.create("add", [call.reshape(starts, [runs, 1]), call.constant(np.arange(size), "i64")])
    y = call.create("gather", [x, places], axis=axis)
    order = [k for k in range(len(y.shape)) if k != axis + 1]
    return call.create("permute", [y], perm=[*order, axis + 1])


@contrib("Inverse", "X")
def _inverse(call: Call) -> Any:
    x = with_sizes(call, call[0], [*[None] * (len(call[0].shape) - 1), call[0].shape[-2]])
    x = call.cast(x, "f32") if x.dtype == "f16" else x
    factors, _, order, *_ = call.create_all("lu", [x], {})
    return call.cast(solved(call, factors, order, unit_matrices(call, x)), call[0].dtype)


@contrib("CDist", "A B", metric="sqeuclidean")
def _distances(call: Call) -> Any:
    """Between each row of A and each of B: |a|² + |b|² - 2 ab, or its root."""
    a, b = call[0], with_sizes(call, call[1], [None, call[0].shape[1]])
    rooted = call.one_of("metric", {"sqeuclidean": "", "euclidean": "sqrt"}, "sqeuclidean")
    squares = [call.create("sum", [call.create("mul", [x, x])], axes=[1], keepdim=True) for x in (a, b)]
    both = call.create("add", [squares[0], call.reshape(squares[1], [1, b.shape[0]])])
    products = call.create("matmul", [a, call.create("permute", [b], perm=[1, 0])])
    found = call.create("sub", [both, call.create("mul", [products, call.like(2, a)])])
    found = call.create("maximum", [found, call.like(0, a)])
    return call.create(rooted, [found]) if rooted else found


@contrib("CropAndResize", "X rois batch_indices crop_size", extrapolation_value=0.0, mode="bilinear")
def _crop_and_resize(call: Call) -> Any:
    """Of each region, given by its corners as parts of an image, so many rows and columns: a product on either side."""
    x, regions = call.ranked(0, 4, 4), call.ranked(1, 2, 2)
    nearest = call.one_of("mode", {"bilinear": "", "nearest": "nearest"}, "bilinear") == "nearest"
    count = regions.shape[0]
    images = call.create("gather", [x, with_sizes(call, call[2], [count])], axis=0)
    weights, inside = [], []
    for axis, size in enumerate(call.sizes(3, "crop_size")):
        whole = x.shape[2 + axis]
        at = _places(call, regions, axis, size, whole)  # [regions, size, 1]
        last = call.cast(call.whole(whole - 1), "f32")
        low, high = call.create("ge", [at, call.like(0, at)]), call.create("le", [at, last])
        inside.append(call.create("logical_and", [low, high]))
        own = call.cast(call.create("arange", [], end=whole), "f32")
        if nearest:
            # Halves go up.
            near = call.create("floor", [call.create("add", [at, call.like(0.5, at)])])
            weight = call.cast(call.create("eq", [near, own]), "f32")
        else:
            away = call.create("abs", [call.create("sub", [at, own])])
            weight = call.create("relu", [call.create("sub", [call.like(1, at), away])])
        weights.append(call.reshape(weight, [count, 1, size, whole]))
    y = call.create("matmul", [call.broadcast_to(weights[0], [count, x.shape[1], *weights[0].shape[2:]]), images])
    columns = call.create("permute", [weights[1]], perm=[0, 1, 3, 2])
    y = call.create("matmul", [y, call.broadcast_to(columns, [count, x.shape[1], *columns.shape[2:]])])
    rows, columns = inside
    kept = call.create("logical_and", [rows, call.create("permute", [columns], perm=[0, 2, 1])])
    kept = call.reshape(kept, [count, 1, *kept.shape[1:]])
    return call.create("where", [kept, y, call.like(float(call.attr("extrapolation_value")), y)])


def _places(call: Call, regions: Any, axis: int, size: Size, whole: Size) -> Any:
    """Where along an axis of an image a region's rows or columns lie; one alone lies in the middle."""
    start, end = (call.reshape(part(call, regions, k, k + 1, 1), [regions.shape[0], 1, 1]) for k in (axis, axis + 2))
    last = call.cast(call.whole(whole - 1), "f32")
    if size == 1:
        middle = call.create("mul", [call.create("add", [start, end]), call.constant(0.5, "f32")])
        return call.create("mul", [middle, last])
    gaps = call.cast(call.whole(size - 1), "f32")
    gap = call.create("div", [call.create("mul", [call.create("sub", [end, start]), last]), gaps])
    number = call.reshape(call.cast(call.create("arange", [], end=size), "f32"), [1, size, 1])
    return call.create("add", [call.create("mul", [start, last]), call.create("mul", [number, gap])])


@contrib("ConvTransposeWithDynamicPads", "X W Pads? B?", like="ConvTranspose")
def _conv_transpose(call: Call) -> Any:
    own = ("auto_pad", "dilations", "group", "kernel_shape", "output_padding", "strides")
    told = {name: call.attr(name) for name in own}
    pads = call.integers(2, "Pads") if call.given(2) else None
    return call.standard("ConvTranspose", [call[0], call[1], call.optional(3)], pads=pads, **told)


@contrib("NGramRepeatBlock", "input_ids scores", ngram_size=SOME_INT)
def _no_repeats(call: Call) -> Any:
    """Scores of words with which the last ones would be a run that stands before already are -inf."""
    batch, rows = call.shape(0, 2)
    words, size = call[0], int(call.attr("ngram_size"))
    if size < 1:
        raise InvalidModel(f"ngram_size must be positive; got {size}")
    runs = rows - size + 1
    hits = [call.constant(True, "bool")]
    for k in range(size - 1):
        before = part(call, words, k, k + runs, 1)
        last = part(call, words, runs + k, runs + k + 1, 1)
        hits.append(call.create("eq", [before, last]))
    hit = call.broadcast_to(call.folded("logical_and", hits), [batch, runs])
    scores = with_sizes(call, call[1], [batch, None])
    bound = call.create("where", [hit, call.like(-np.inf, scores), call.like(np.inf, scores)])
    inputs = [scores, part(call, words, size - 1, rows, 1), bound]
    return call.create("scatter_elements", inputs, axis=1, reduce="min", include_self=True)


@contrib("MurmurHash3", "X", positive=1, seed=0)
def _murmur_hash(call: Call) -> Any:
    """32 bits of each element's four or eight bytes."""
    x = call[0]
    wide = x.dtype in ("i64", "u64", "f64")
    parts = [x]
    if wide:
        whole = call.create("bitcast", [x], to="u64")
        high = call.create("shift_right", [whole, call.constant(32, "u64")])
        parts = [call.create("bitwise_and", [half, call.constant(2**32 - 1, "u64")]) for half in (whole, high)]
        words = [call.cast(half, "u32") for half in parts]
    else:
        words = [call.create("bitcast", [x], to="u32")]

    def op(name: str, a: Any, number: Any) -> Any:
        return call.create(name, [a, call.constant(number, "u32") if isinstance(number, int) else number])

    def turned(a: Any, by: int) -> Any:
        return op("bitwise_or", op("shift_left", a, by), op("shift_right", a, 32 - by))

    h: Any = call.constant(int(call.attr("seed")) % 2**32, "u32")
    for word in words:
        k = op("mul", turned(op("mul", word, 0xCC9E2D51), 15), 0x1B873593)
        h = op("add", op("mul", turned(op("bitwise_xor", h, k), 13), 5), 0xE6546B64)
    h = op("bitwise_xor", h, 8 if wide else 4)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        h = op("mul", op("bitwise_xor", h, op("shift_right", h, shift)), factor)
    return h if call.attr("positive") else call.create("bitcast", [h], to="i32")


@contrib(
    "WordConvEmbedding",
    "Sequence W B C",
    unread="char_embedding_size conv_window_size embedding_size",
    char_embedding_size=INT,
    conv_window_size=INT,
    embedding_size=INT,
)
def _word_embedding(call: Call) -> Any:
    """The greatest of what a convolution and tanh make of the letters of a word, as far as it reaches; 0 of none."""
    letters, weight, bias, table = call.ranked(0, 2, 2), call.ranked(1, 4, 4), call[2], call[3]
    filters, _, window, width = call.static_shape(weight, "filters of letters")
    words, longest = letters.shape
    x = call.create("gather", [with_sizes(call, table, [None, width]), letters], axis=0)
    image = call.reshape(x, [words, 1, longest, width])
    y = call.standard("Tanh", [call.standard("Conv", [image, weight, bias])])  # [words, filters, places, 1]
    length = call.create(
        "sum", [call.cast(call.create("gt", [letters, call.constant(0, letters.dtype)]), "i64")], axes=[1], keepdim=True
    )
    counts = call.create(
        "sub", [call.create("maximum", [length, call.constant(window, "i64")]), call.constant(window - 1, "i64")]
    )
    places = call.create("arange", [], end=y.shape[2])
    kept = call.reshape(call.create("lt", [places, counts]), [words, 1, y.shape[2], 1])
    y = call.create("where", [kept, y, call.like(-np.inf, y)])
    y = call.reshape(call.create("reduce_max", [y], axes=[2, 3], keepdim=False), [words, filters])
    there = call.create("gt", [length, call.constant(0, "i64")])
    return call.create("where", [there, y, call.like(0, y)])
