"""Torch overloads that move, pick or choose elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hetnn.errors import Unsupported
from hetnn.importers.sizes import Size, multiply
from hetnn.importers.torch_rules.call import Call, rule
from hetnn.importers.torch_rules.sizes import compressed

_WHOLE_END = 2**62


@rule(
    "clone.default",
    "alias.default",
    "detach.default",
    "lift_fresh_copy.default",
    "contiguous.default",
    "dropout.default",
    "native_dropout.default",
    "feature_dropout.default",
    "alpha_dropout.default",
)
def _pass(call: Call) -> Any:
    return call.args[call.names[0]]


@rule("_to_copy.default", "to.dtype", "to.dtype_layout")
def _cast(call: Call) -> Any:
    return call.cast(call.args[call.names[0]], call.dtype())


@rule(
    "view.default",
    "_unsafe_view.default",
    "reshape.default",
    "flatten.using_ints",
    "squeeze.dim",
    "squeeze.dims",
    "squeeze.default",
    "unsqueeze.default",
    "view_copy.default",
    "unflatten.int",
)
def _reshape(call: Call) -> Any:
    return call.reshape(call.args[call.names[0]], call.shape())


@rule("permute.default", "permute_copy.default")
def _permute(call: Call) -> Any:
    rank = len(call["self"].shape)
    return call.create("permute", [call["self"]], perm=[axis % rank for axis in call["dims"]])


@rule("transpose.int", "t.default")
def _transpose(call: Call) -> Any:
    x = call["self"]
    perm = list(range(len(x.shape)))
    if len(perm) < 2:
        return x
    a, b = (call["dim0"] % len(perm), call["dim1"] % len(perm)) if "dim0" in call.args else (0, 1)
    perm[a], perm[b] = perm[b], perm[a]
    return call.create("permute", [x], perm=perm)


@rule("expand.default", "expand_copy.default", "broadcast_to.default")
def _expand(call: Call) -> Any:
    x = call[call.names[0]]
    return x if list(x.shape) == call.shape() else call.create("expand", [x], shape=call.shape())


@rule("slice.Tensor", "slice_copy.Tensor")
def _slice(call: Call) -> Any:
    x = call["self"]
    if list(x.shape) == call.shape():
        return x
    start = 0 if call["start"] is None else call["start"]
    end = _WHOLE_END if call["end"] is None else call["end"]
    end = min(end, _WHOLE_END) if isinstance(end, int) else end
    # torch proves from the model's ranges that a symbolic end lies inside: its result then has just that size.
    inside = isinstance(end, str) and start == 0 and call["step"] == 1 and call.shape()[call["dim"]] == end
    return call.create("slice", [x], axis=call["dim"], start=start, end=end, step=call["step"], inside=inside)


@rule("select.int", "select_copy.int")
def _select(call: Call) -> Any:
    x, axis, index = call["self"], call["dim"], call["index"]
    end = _WHOLE_END if index == -1 else index + 1 if isinstance(index, int) else f"{index} + 1"
    part = call.create("slice", [x], axis=axis, start=index, end=end)
    return call.reshape(part, call.shape())


@rule("split_with_sizes.default", "split.Tensor", "chunk.default", "split_with_sizes_copy.default", "split_copy.Tensor")
def _split(call: Call) -> list[Any]:
    x, axis = call["self"], call["dim"]
    parts, at = [], 0
    for value in call._node.meta["val"]:
        size = call._importer.symbols.dim(value.shape[axis])
        if not isinstance(size, int):
            raise Unsupported("splitting into parts of symbolic size")
        parts.append(call.create("slice", [x], axis=axis, start=at, end=at + size))
        at += size
    return parts


@rule("unbind.int")
def _unbind(call: Call) -> list[Any]:
    parts = []
    for k in range(len(call._node.meta["val"])):
        part = call.create("slice", [call["self"]], axis=call["dim"], start=k, end=k + 1)
        parts.append(call.reshape(part, call.shape(k)))
    return parts


@rule("stack.default")
def _stack(call: Call) -> Any:
    rank = len(call["tensors"][0].shape) + 1
    axis = call["dim"] % rank
    parts = []
    for value in call["tensors"]:
        shape = list(value.shape)
        parts.append(call.reshape(value, [*shape[:axis], 1, *shape[axis:]]))
    return call.create("concat", parts, axis=axis)


@rule("cat.default")
def _cat(call: Call) -> Any:
    values = [call.cast(v, call.dtype()) for v in call["tensors"] if list(v.shape) != [0]]
    return values[0] if len(values) == 1 else call.create("concat", values, axis=call["dim"])


@rule("constant_pad_nd.default", "pad.default")
def _pad(call: Call) -> Any:
    rank, pad = len(call["self"].shape), call["pad"]
    before, after = [0] * rank, [0] * rank
    for k in range(len(pad) // 2):
        before[rank - 1 - k], after[rank - 1 - k] = pad[2 * k], pad[2 * k + 1]
    value = call.args.get("value") or 0
    return call.create(
        "pad", [call["self"]], padding=before + after, mode=call.args.get("mode") or "constant", value=float(value)
    )


@rule("index_select.default")
def _index_select(call: Call) -> Any:
    return call.create("gather", [call["self"], call["index"]], axis=call["dim"], from_end=False)


@rule("index.Tensor")
def _index(call: Call) -> Any:
    indices = call["indices"]
    given = [(axis, index) for axis, index in enumerate(indices) if index is not None]
    x = call["self"]
    if len(given) == 1 and given[0][1].dtype in ("i64", "i32"):
        return call.create("gather", [x, given[0][1]], axis=given[0][0])
    axes = [axis for axis, _ in given]
    if axes == list(range(axes[0], axes[-1] + 1)) and all(index.dtype in ("i64", "i32") for _, index in given):
        # Neighbouring axes become one, and their indices one flat index.
        flat: Any = None
        total: Size = 1
        for axis, index in given:
            size = x.shape[axis]
            entry = call.from_the_front(call.cast(index, "i64"), size)
            scaled = entry if flat is None else call.create("mul", [flat, call.whole(size)])
            flat = entry if flat is None else call.create("add", [scaled, entry])
            total = multiply(total, size)
        before, after = list(x.shape)[: axes[0]], list(x.shape)[axes[-1] + 1 :]
        return call.create("gather", [call.reshape(x, [*before, total, *after]), flat], axis=axes[0])
    if len(given) == 1 and axes == [0] and given[0][1].dtype == "bool":
        return compressed(call, x, given[0][1])
    raise Unsupported("indexing by these tensors")


@rule("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar")
def _where(call: Call) -> Any:
    a, b = call.promote([call["self"], call["other"]])
    return call.create("where", [call.cast(call["condition"], "bool"), a, b])


@rule("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(call: Call) -> Any:
    x, value = call.promote([call["self"], call["value"]])
    return call.create("where", [call["mask"], value, x])


@rule("gather.default")
def _gather(call: Call) -> Any:
    """Along the last axis: as indices into the flattened input, row by row."""
    x, index = call["self"], call["index"]
    rank = len(x.shape)
    if call["dim"] % rank != rank - 1 or not all(isinstance(size, int) for size in x.shape):
        raise Unsupported("gather along another axis than the last, or of symbolic size")
    rows, width = list(x.shape[:-1]), x.shape[-1]
    if list(index.shape[:-1]) != rows:
        raise Unsupported("gather with fewer rows of indices than of values")
    first = np.arange(math.prod(rows), dtype=np.int64).reshape([*rows, 1]) * width
    flat = call.create("add", [call.cast(index, "i64"), call.constant(first, "i64")])
    return call.create("gather", [call.reshape(x, [math.prod(rows) * width]), flat], axis=0)
