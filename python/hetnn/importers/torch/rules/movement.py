"""Torch overloads that move, pick or choose elements."""

from __future__ import annotations

from typing import Any

from hetnn._core import Dim
from hetnn.errors import Unsupported
from hetnn.importers.lowering import sizes
from hetnn.importers.lowering.sizes import WHOLE_END, denied, equal, less, maximum, never_negative, place_within
from hetnn.importers.torch.rules.call import Call, rule


@rule(
    "clone.default",
    "alias.default",
    "detach.default",
    "lift.default",
    "lift_fresh.default",
    "lift_fresh_copy.default",
    "contiguous.default",
    "resolve_conj.default",
    "resolve_neg.default",
)
def _pass(call: Call) -> Any:
    return call.args[call.names[0]]


@rule("view.dtype")
def _view_dtype(call: Call) -> Any:
    """The same bits as another element type. Unsupported where that makes the last axis another size."""
    x, dtype = call.args[call.names[0]], call.dtype()
    if list(call.shape()) != list(x.shape):
        raise Unsupported(f"a view of {x.dtype} as {dtype}, of which an element takes other bytes")
    return x if x.dtype == dtype else call.create("bitcast", [x], to=dtype)


@rule("_to_copy.default", "to.dtype", "to.dtype_layout")
def _cast(call: Call) -> Any:
    return call.cast(call.args[call.names[0]], call.dtype())


@rule(
    "view.default",
    "_unsafe_view.default",
    "reshape.default",
    "flatten.using_ints",
    "unsqueeze.default",
    "view_copy.default",
    "unflatten.int",
)
def _reshape(call: Call) -> Any:
    return call.reshape(call.args[call.names[0]], call.shape())


@rule("squeeze.dim", "squeeze.dims", "squeeze.default")
def _squeeze(call: Call) -> Any:
    x = call["self"]
    asked = call.args.get("dim", range(len(x.shape)))
    axes = [asked] if isinstance(asked, int) else asked
    for size in [x.shape[axis] for axis in axes] if x.shape else ():  # a number has axis 0, too
        # Torch keeps an axis of open size, as if it never had one element.
        if isinstance(is_kept := denied(equal(size, 1)), Dim):
            call.create("require_sizes", [], holds=[is_kept], demand=f"{size} != 1")
    return call.reshape(x, call.shape())


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
    if call.finds_sizes:
        return _found_slice(call)
    start = 0 if call["start"] is None else call["start"]
    end = WHOLE_END if call["end"] is None else call["end"]
    end = min(end, WHOLE_END) if isinstance(end, int) else end
    size = x.shape[call["dim"]]
    symbolic = not isinstance(end, int) or not isinstance(size, int)
    inside = symbolic and call["step"] == 1 and call.spans("start", "end", call["dim"])
    if inside:
        start, end = (size + at if isinstance(at, int) and at < 0 else at for at in (start, end))
        end = size if end == WHOLE_END else end
    elif not all(never_negative(at) for at in (start, end) if not isinstance(at, int)):  # counts from the back there
        start, end = (place_within(at, size) for at in (start, size if end == WHOLE_END else end))
        end, inside = maximum(start, end), True
    part = call.create("slice", [x], axis=call["dim"], start=start, end=end, step=call["step"], inside=inside)
    # Torch takes it that an axis is not shorter than what is cut off; a run in which it is ends.
    return part if list(part.shape) == call.shape() else call.create("match_shape", [part], shape=call.shape())


def _found_slice(call: Call) -> Any:
    """A slice between places that depend on values, and so may lie beyond the axis: the elements in between."""
    x, axis = call["self"], call["dim"] % len(call["self"].shape)
    if call["step"] != 1:
        raise Unsupported("a slice with steps between places that depend on values")
    size = x.shape[axis]
    place = call.create("arange", [], start=0, end=size)
    mask = None
    for given, op in ((call["start"], "ge"), (call["end"], "lt")):
        if given is None:
            continue
        bound = call.from_the_front(call.whole(given), size)
        side = call.create(op, [place, bound])
        mask = side if mask is None else call.create("logical_and", [mask, side])
    order = [axis, *(k for k in range(len(x.shape)) if k != axis)]
    moved = call.permuted(x, order)
    picked = call.create("compress", [moved, mask], count=call.found_size())
    back = [order.index(k) for k in range(len(order))]
    return call.reshape(call.permuted(picked, back), call.shape())


@rule("resize.default")
def _resize(call: Call) -> Any:
    """The first elements, as they lie."""
    x, shape = call["self"], call.shape()
    given, wanted = sizes.product(x.shape), sizes.product(shape)
    if not isinstance(given, int) or not isinstance(wanted, int) or wanted > given:
        raise Unsupported(
            "resizing to more elements, which torch leaves without values, or to a symbolic number of them"
        )
    flat = call.reshape(x, [given])
    return call.reshape(call.create("slice", [flat], axis=0, start=0, end=wanted), shape)


@rule("select.int", "select_copy.int")
def _select(call: Call) -> Any:
    x, axis, index = call["self"], call["dim"], call["index"]
    end, inside = WHOLE_END if index == -1 else index + 1, False
    if not isinstance(index, int) and not never_negative(index):  # counts from the back where it is below 0
        index += x.shape[axis] * less(index, 0)
        end, inside = index + 1, True
    part = call.create("slice", [x], axis=axis, start=index, end=end, inside=inside)
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
    return call.stacked(call["tensors"], call["dim"] % (len(call["tensors"][0].shape) + 1))


@rule("cat.default")
def _cat(call: Call) -> Any:
    values = [call.cast(v, call.dtype()) for v in call["tensors"] if list(v.shape) != [0]]
    return call.joined(values, call["dim"])


def _padded(call: Call, pad: Any, mode: str, value: Any) -> Any:
    """Torch counts from the last axis: before and behind it, then those of the axis before it."""
    rank = len(call["self"].shape)
    before, after = [0] * rank, [0] * rank
    for k in range(len(pad) // 2):
        before[rank - 1 - k], after[rank - 1 - k] = pad[2 * k], pad[2 * k + 1]
    x, sides = call["self"], before + after
    less = [min(side, 0) if isinstance(side, int) else 0 for side in sides]
    if mode == "circular" and any(less):  # what is cropped does not come round again
        x = call.create("pad", [x], padding=less, mode="constant")
        sides = [side if cut == 0 else 0 for side, cut in zip(sides, less, strict=True)]
    return call.create("pad", [x], padding=sides, mode=mode, value=float(value))


@rule("constant_pad_nd.default", "pad.default")
def _pad(call: Call) -> Any:
    return _padded(call, call["pad"], call.args.get("mode") or "constant", call.args.get("value") or 0)


@rule(*(f"{kind}_pad{n}d.default" for kind in ("reflection", "replication") for n in (1, 2, 3)))
def _border(call: Call) -> Any:
    return _padded(call, call["padding"], "reflect" if "reflection" in call.target else "replicate", 0)


@rule("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar")
def _where(call: Call) -> Any:
    a, b = call.promote([call["self"], call["other"]])
    return call.create("where", [call.cast(call["condition"], "bool"), a, b])


@rule("repeat.default")
def _repeat(call: Call) -> Any:
    x, times = call["self"], call["repeats"]
    return call.reshape(
        call.repeated(call.reshape(x, [*[1] * (len(times) - len(x.shape)), *x.shape]), times), call.shape()
    )


@rule("copy.default", "fill.Tensor")
def _copy(call: Call) -> Any:
    source = call.cast(call["src"] if "src" in call.args else call["value"], call.dtype())
    return source if list(source.shape) == call.shape() else call.create("expand", [source], shape=call.shape())


@rule("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(call: Call) -> Any:
    x, value = call.promote([call["self"], call["value"]])
    return call.create("where", [call["mask"], value, x])
