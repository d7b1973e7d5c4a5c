"""Torch overloads that are several operators together: norms, distances, bags of embeddings."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hetnn.errors import Unsupported
from hetnn.importers.lowering import sizes
from hetnn.importers.lowering.norms import p_norm
from hetnn.importers.torch.rules.call import TORCH, Call, rule
from hetnn.importers.torch.rules.indexing import fixed
from hetnn.importers.torch.rules.layers import with_addend


def _norm(call: Call, x: Any, order: float, axes: list[int], keepdim: bool = False) -> Any:
    # Of one element it is its size, whose square may lie beyond the type.
    if order != 0 and all(x.shape[axis] == 1 for axis in axes or range(len(x.shape))):
        order = math.inf
    return p_norm(call, x, order, lambda op, value: call.create(op, [value], axes=axes, keepdim=keepdim))


@rule("linalg_vector_norm.default")
def _vector_norm(call: Call) -> Any:
    dim = call["dim"]
    axes = [dim] if isinstance(dim, int) else list(dim or [])
    if not call["self"].shape:
        axes = []
    x = call.cast(call["self"], call.dtype())
    # Powers and their sums may lie beyond f16 where the norm does not.
    wide = call.cast(x, "f32") if call.dtype() in ("f16", "bf16") else x
    return call.cast(_norm(call, wide, float(call["ord"]), axes, bool(call["keepdim"])), call.dtype())


@rule("_cdist_forward.default")
def _cdist(call: Call) -> Any:
    a, b = call["x1"], call["x2"]
    if 0 in call.shape():
        return call.filled(0)
    if a.shape[-1] == 0:
        return call.filled(0)
    rows = call.reshape(a, [*a.shape[:-1], 1, a.shape[-1]])
    columns = call.reshape(b, [*b.shape[:-2], 1, *b.shape[-2:]])
    return _norm(call, call.create("sub", [rows, columns]), float(call["p"]), [-1])


@rule("_pdist_forward.default")
def _pdist(call: Call) -> Any:
    x = call["self"]
    if 0 in call.shape():
        return call.filled(0)
    (count,) = fixed(x.shape[:1], "distances of all pairs of rows")
    first, second = np.triu_indices(count, 1)
    rows = [call.create("gather", [x, call.constant(k, "i64")], axis=0) for k in (first, second)]
    return _norm(call, call.create("sub", rows), float(call["p"]), [-1])


@rule("addbmm.default")
def _addbmm(call: Call) -> Any:
    product = call.create("sum", [call.create("matmul", [call["batch1"], call["batch2"]])], axes=[0])
    return with_addend(call, product)


@rule("_grouped_mm.default")
def _grouped_mm(call: Call) -> Any:
    """Rows of experts, one behind the other, each group times its own matrix."""
    x, weights, ends = call["self"], call["mat2"], call["offs"]
    if (len(x.shape), len(weights.shape)) != (2, 3) or ends is None or call["bias"] is not None:
        raise Unsupported("grouped products but of rows [M,K] and matrices [E,K,N] between offsets")
    return call.cast(call.create("grouped_matmul", [x, weights, ends]), call.dtype())


@TORCH.rule("transformers.grouped_mm_fallback.default")
def _grouped_mm_fallback(call: Call) -> Any:
    return call.create("grouped_matmul", [call["input"], call["weight"], call["offs"]])


@rule("_trilinear.default")
def _trilinear(call: Call) -> Any:
    """The product of three tensors, each with new axes of size 1, summed over some."""
    factors = []
    for k in (1, 2, 3):
        x, shape = call[f"i{k}"], list(call[f"i{k}"].shape)
        for axis in sorted(call[f"expand{k}"]):
            shape.insert(axis, 1)
        factors.append(call.reshape(x, shape))
    product = call.create("mul", [call.create("mul", factors[:2]), factors[2]])
    return call.create("sum", [product], axes=list(call["sumdim"])) if call["sumdim"] else product


@rule("angle.default")
def _angle(call: Call) -> Any:
    """Of reals: 0, or pi for negative ones."""
    x = call.cast(call["self"], call.dtype())
    zero = call.constant(0, x.dtype)
    out = call.create("where", [call.create("lt", [x, zero]), call.constant(math.pi, x.dtype), zero])
    return call.create("where", [call.create("ne", [x, x]), x, out])


@rule("repeat_interleave.Tensor")
def _repeat_interleave(call: Call) -> Any:
    """Index k as often as repeats[k] says: where each place falls among the sums so far."""
    if call.finds_sizes:
        repeated = call.create("repeat_index", [call.cast(call["repeats"], "i64")], count=call.found_size())
        return call.cast(call.reshape(repeated, call.shape()), call.dtype())
    (count,) = fixed(call.shape(), "repeating by tensors, whose result is")
    ends = call.create("cumsum", [call.cast(call["repeats"], "i64")], axis=0)
    places = call.constant(np.arange(count), "i64")
    return call.cast(call.create("searchsorted", [ends, places], right=True), call.dtype())


@rule("_embedding_bag_forward_only.default", "_embedding_bag.default")
def _embedding_bag(call: Call) -> list[Any]:
    """Rows of the weight, joined bag by bag; and what training keeps: the bag of each row, the rows of each bag that
    count, and where each maximum was, as far as the mode needs them."""
    weight, offsets = call["weight"], call.cast(call["offsets"], "i64")
    indices = call.cast(call["indices"], "i64")
    bags, width = call.shape()
    mode, count = call["mode"], sizes.product(indices.shape)
    if call["include_last_offset"]:
        offsets = call.create("slice", [offsets], axis=0, start=0, end=bags)
    rows = call.create("gather", [weight, indices], axis=0)
    if call["per_sample_weights"] is not None:
        rows = call.create("mul", [rows, call.reshape(call["per_sample_weights"], [count, 1])])
    places = call.create("arange", [], start=0, end=count)
    bag = call.create("searchsorted", [offsets, places], right=True)
    bag = call.create("sub", [bag, call.constant(1, "i64")])
    bag_of_row = bag
    padding = call["padding_idx"]
    if padding >= 0:
        # What is padding goes into a bag of its own behind the others.
        is_padding = call.create("eq", [indices, call.constant(padding, "i64")])
        bag = call.create("where", [is_padding, call.reshape(call.whole(bags), []), bag])
    extra = 1 if padding >= 0 else 0
    start = call.create("expand", [call.constant(0, weight.dtype)], shape=[bags + extra, width])
    reduce, include = ("add", True) if mode == 0 else ("mean", False) if mode == 1 else ("max", False)
    bags_of_rows = call.reshape(bag, [count, 1])

    def by_bag(start: Any, values: Any, **how: Any) -> Any:
        return call.create("scatter_elements", [start, bags_of_rows, values], axis=0, **how)

    def without_extra(values: Any) -> Any:
        return call.create("slice", [values], axis=0, start=0, end=bags) if extra else values

    joined = by_bag(start, rows, reduce=reduce, include_self=include)

    def bag_sizes() -> Any:
        zeros = call.create("expand", [call.constant(0, "i64")], shape=[bags + extra, 1])
        ones = call.create("expand", [call.constant(1, "i64")], shape=[count, 1])
        return without_extra(by_bag(zeros, ones, reduce="add"))

    def largest() -> Any:
        """The index of the first row that holds a bag's maximum, 0 for a bag without rows."""
        is_largest = call.create("eq", [rows, call.create("gather", [joined, bag], axis=0)])
        behind = call.reshape(call.whole(count), [])
        place = call.create("where", [is_largest, call.reshape(places, [count, 1]), behind])
        none = call.create("expand", [behind], shape=[bags + extra, width])
        first = without_extra(by_bag(none, place, reduce="min"))
        return call.create("gather", [call.create("pad", [indices], padding=[0, 1]), first], axis=0)

    def kept(output: int, make: Callable[[], Any]) -> Any:
        if not call.reads(output):
            return None
        shape, dtype = call.shape(output), call.dtype(output)
        if output == 1 and mode == 0 and weight.dtype == "bf16" and padding < 0:
            raise Unsupported("the bags of rows in bf16, of which torch.export tells another shape than torch gives")
        zeros = call.constant(0, dtype)
        idle = 0 in shape or (mode == 0 and output > 1)
        return call.create("expand", [zeros], shape=shape) if idle else call.reshape(call.cast(make(), dtype), shape)

    return [
        without_extra(joined),
        kept(1, lambda: bag_of_row),
        kept(2, bag_sizes),
        kept(3, largest if mode == 2 else bag_sizes),
    ]
