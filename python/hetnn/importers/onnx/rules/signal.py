"""ONNX transforms of signals, and counts of n-grams."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.sizes import LONGEST, divide, maximum
from hetnn.importers.onnx.rules.call import MOST_NUMBERS, Call, rule
from hetnn.importers.onnx.values import Array, Text

_MOST_APART = 1024


@rule("DFT")
def _dft(call: Call) -> Any:
    x = call[0]
    rank = len(x.shape)
    length = call.size(1, "the length", 1) if call.given(1) else 0
    axis = call.size(2, "the axis", -rank, rank - 2) if call.given(2) else int(call.attr("axis", -2))
    told = {"inverse": bool(call.attr("inverse")), "onesided": bool(call.attr("onesided"))}
    return call.create("dft", [x], axis=axis, length=length, **told)


@rule("STFT")
def _short_time(call: Call) -> Any:
    """The transforms of windows of the signal, a step apart."""
    signal, window = call.ranked(0, 3, 3), call.ranked(2, 1, 1) if call.given(2) else None
    length = window.shape[0] if window is not None else call.size(3, "the frames' length", 1)
    step, (rows, size, parts) = call.size(1, "the step", 1), signal.shape
    frames = divide(size - length, step) + 1
    strides = [size * parts, step * parts, parts, 1]
    framed = call.create("as_strided", [signal], shape=[rows, frames, length, parts], strides=strides)
    if window is not None:
        framed = call.create("mul", [framed, call.reshape(window, [length, 1])])
    return call.create("dft", [framed], axis=2, onesided=bool(call.attr("onesided", 1)))


def _counts(call: Call, x: Any, size: int, skips: int, grams: Array) -> Any:
    """How often each of n-grams of one size, [count, size], stands in rows of x, with up to `skips` items between."""
    rows, length = x.shape
    total = None
    apart = 1 if size == 1 else skips + 1  # the farthest that two neighbours lie
    if isinstance(length, int):
        apart = min(apart, (length - 1) // max(size - 1, 1))
    if apart > _MOST_APART:
        raise Unsupported(f"TfIdfVectorizer with up to {skips} items between; there may be {_MOST_APART - 1}")
    for skip in range(1, apart + 1):
        places = maximum(length - skip * (size - 1), 0)
        windows = call.create("as_strided", [x], shape=[rows, places, size], strides=[length, 1, skip])
        same = call.create("eq", [call.reshape(windows, [rows, places, 1, size]), call.constant(grams, x.dtype)])
        found = call.cast(call.create("all", [same], axes=[3]), "f32")  # [rows, places, count]
        count = call.create("sum", [found], axes=[1])
        total = count if total is None else call.create("add", [total, count])
    return call.broadcast_to(call.constant(0, "f32"), [rows, len(grams)]) if total is None else total


def _coded(call: Call) -> tuple[Any, Array]:
    """The input and the pool as integers: texts by their places among those of the pool."""
    words = call.attr("pool_strings")
    if not words:
        return call[0], np.array(call.attr("pool_int64s") or [], np.int64)
    text = call.inputs[0]
    if not isinstance(text, Text):
        raise InvalidModel("TfIdfVectorizer with pool_strings and an input of numbers; give pool_int64s")
    known = list(dict.fromkeys(words))
    table, places = call.texts(known), {word: k for k, word in enumerate(known)}
    found = call.create("text_find", [text.bytes, text.spans, table.bytes, table.spans])
    return found, np.array([places[word] for word in words], np.int64)


@rule("TfIdfVectorizer")
def _tf_idf(call: Call) -> Any:
    x, pool = _coded(call)
    begins, columns = [*call.attr("ngram_counts"), len(pool)], list(call.attr("ngram_indexes"))
    if min(columns, default=-1) < 0 or begins != sorted(begins) or begins[0] < 0:
        raise InvalidModel(f"TfIdfVectorizer with ngram_counts {begins[:-1]} and ngram_indexes {columns[:9]}")
    if max(columns) >= LONGEST:
        raise Unsupported(f"TfIdfVectorizer of {max(columns) + 1} columns; there may be {LONGEST}")
    width, shape = max(columns) + 1, list(x.shape)
    if len(shape) not in (1, 2):
        raise InvalidModel(f"TfIdfVectorizer of an input {shape}, which must be [C] or [N,C]")
    least, most = int(call.attr("min_gram_length")), int(call.attr("max_gram_length"))
    rows = call.reshape(x, [1, shape[0]]) if len(shape) == 1 else x
    total, first = call.broadcast_to(call.constant(0, "f32"), [rows.shape[0], width]), 0
    for size, (begin, end) in enumerate(itertools.pairwise(begins), 1):
        if (end - begin) % size:
            raise InvalidModel(f"TfIdfVectorizer with {end - begin} items of the pool for {size}-grams")
        grams = pool[begin:end].reshape(-1, size)
        if first + len(grams) > len(columns):
            raise InvalidModel(f"TfIdfVectorizer with {len(columns)} columns for more n-grams than that")
        if least <= size <= most and len(grams):
            if len(grams) * width > MOST_NUMBERS:
                raise Unsupported(f"TfIdfVectorizer of {len(grams)} n-grams in {width} columns")
            goals = np.zeros((len(grams), width))
            goals[np.arange(len(grams)), columns[first : first + len(grams)]] = 1
            counts = _counts(call, rows, size, int(call.attr("max_skip_count")), grams)
            total = call.create("add", [total, call.create("matmul", [counts, call.constant(goals, "f32")])])
        first += len(grams)
    if call.attr("mode") == "IDF":
        total = call.cast(call.create("gt", [total, call.constant(0, "f32")]), "f32")
    if call.attr("mode") != "TF" and call.attr("weights"):
        weights = call.attr("weights")  # of the columns, as the standard's reference has it
        if len(weights) != width:
            raise InvalidModel(f"TfIdfVectorizer with {len(weights)} weights for {width} columns")
        total = call.create("mul", [total, call.constant(weights, "f32")])
    return call.reshape(total, [width] if len(shape) == 1 else [shape[0], width])
