"""Keys and values that are kept from one run to the next, as they stand or as integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.sizes import Size, divide, maximum
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.contrib.blocks import unpacked
from hetnn.importers.onnx.rules.contrib.pieces import places


@dataclass(frozen=True)
class CacheRows:
    """Where the rows of this run stand behind those before: all i64 that broadcast to [batch, heads, rows, keys]."""

    is_first: Any  # whether nothing was before
    before: Any  # rows of each sequence in the cache, [batch, 1, 1, 1]
    ends: Any  # rows with those of this run
    keys: Size  # the longest sequence's


def step_of(call: Call, ends: Any, keys: Size, rows: Size, counted: Any = None) -> CacheRows:
    """`ends`: rows of each sequence with those of this run; `counted`: how many of its rows count, if not all."""
    shape = [ends.shape[0], 1, 1, 1]
    ends = call.reshape(call.cast(ends, "i64"), shape)
    if counted is not None:
        before = call.create("sub", [ends, call.reshape(call.cast(counted, "i64"), shape)])
        return CacheRows(call.constant(False, "bool"), before, ends, keys)
    new = call.reshape(call.whole(rows), [])
    is_first = call.create("eq", [new, call.reshape(call.whole(keys), [])])
    before = call.create("where", [is_first, call.constant(0, "i64"), call.create("sub", [ends, new])])
    return CacheRows(is_first, before, ends, keys)


def cached(call: Call, past: Any, new: Any, step: CacheRows) -> Any:
    """The cache after this run: rows before, rows of this run, then zeros."""
    batch, heads, rows, size = new.shape
    if past is None:
        behind = step.keys - rows
        return call.create("pad", [new], padding=[0, 0, 0, 0, 0, 0, behind, 0], value=0.0) if behind != 0 else new
    past = with_sizes(call, past, [batch, heads, None, size])
    longest = maximum(past.shape[2], step.keys)
    behind = longest - past.shape[2]
    if behind != 0:
        past = call.create("pad", [past], padding=[0, 0, 0, 0, 0, 0, behind, 0], value=0.0)
        past = with_sizes(call, past, [None, None, longest, None])
    was = call.create("lt", [places(call, longest, 4, 2), step.before])
    return put(call, call.create("where", [was, past, call.like(0, past)]), new, step)


def put(call: Call, cache: Any, new: Any, step: CacheRows) -> Any:
    """The rows of this run behind those before."""
    at = call.broadcast_to(call.reshape(step.before, [step.before.shape[0]]), [new.shape[0]])
    return call.create("tensor_scatter", [cache, new, at], axis=2)


@dataclass(frozen=True)
class Coding:
    """How rows are kept: as integers of so many bits in these steps, or as they are."""

    call: Call
    scale: Any = None
    bits: int = 8

    def encoded(self, x: Any) -> Any:
        """Rows of a cache, two numbers of 4 bits in a byte, the first in the lower half."""
        if self.scale is None:
            return x
        call, most = self.call, 2.0 ** (self.bits - 1)
        y = call.create("round", [call.create("div", [call.cast(x, "f32"), self.scale])])
        y = call.create("clamp", [y], min=-most, max=most - 1)
        if self.bits == 8:
            return call.cast(y, "i8")
        codes = call.cast(call.create("add", [y, call.like(most, y)]), "u8")
        pairs = call.reshape(codes, [*codes.shape[:-1], divide(codes.shape[-1], 2), 2])
        weight = call.constant([1, 16], "u8")
        last = len(pairs.shape) - 1
        return call.cast(call.create("sum", [call.create("mul", [pairs, weight])], axes=[last], keepdim=False), "u8")

    def decoded(self, cache: Any, dtype: str) -> Any:
        """The rows of a cache as numbers."""
        if self.scale is None:
            return cache
        call = self.call
        codes = call.cast(cache if self.bits == 8 else unpacked(call, cache, 4), "f32")
        if self.bits == 4:
            codes = call.create("sub", [codes, call.like(8, codes)])
        return call.cast(call.create("mul", [codes, self.scale]), dtype)


def coding(call: Call, kind: str, scale: Any, past: Any, heads: int, size: Size) -> Coding:
    """That of keys or of values of `heads` heads: `kind` says what has a step of its own."""
    if kind == "NONE":
        return Coding(call)
    if kind not in ("PER_TENSOR", "PER_CHANNEL") or scale is None or past is None:
        raise InvalidModel(f"a cache of integers '{kind}'; it needs its steps, and the cache before, if empty")
    bits = {"i8": 8, "u8": int(call.attr("kv_cache_bit_width") or 0)}.get(past.dtype, 0)
    if (past.dtype, bits) not in (("i8", 8), ("u8", 4)):
        raise Unsupported(f"a cache of {past.dtype} with {bits} bits")
    scale = call.cast(scale, "f32")
    return Coding(call, call.reshape(scale, [] if kind == "PER_TENSOR" else [1, heads, 1, size]), bits)


@dataclass(frozen=True)
class Window:
    """A cache that holds the last rows alone: how its rows and those of this run lie behind one another.

    So many rows are dropped at once as it is larger than what is attended to, plus one.
    """

    call: Call
    step: CacheRows
    room: Size  # rows that it has
    window: int  # rows that are attended to
    rows: Size  # of this run

    def held(self, count: Any) -> Any:
        """How many rows it holds of as many that there were."""
        call = self.call
        room, at_once = call.whole(self.room), call.whole(self.room - self.window + 1)
        over = call.create("sub", [count, room])
        dropped = call.create("neg", [call.create("floor_divide", [call.create("neg", [over]), at_once])])
        dropped = call.create("mul", [call.create("maximum", [dropped, call.constant(0, "i64")]), at_once])
        return call.create("sub", [count, dropped])

    def stands(self) -> tuple[Any, Any]:
        """Of its rows and then those of this run: where each stands in its sequence, and whether it is one of it."""
        call, step = self.call, self.step
        held = self.held(step.before)
        old = places(call, self.room, 4, 3)
        new = places(call, self.rows, 4, 3, step.before)
        shape = [step.before.shape[0], 1, 1]
        first = call.create("sub", [step.before, held])
        parts = [
            (call.create("add", [old, first]), call.create("lt", [old, held]), self.room),
            (new, call.create("lt", [new, step.ends]), self.rows),
        ]
        at, there = (
            call.create("concat", [call.broadcast_to(part[k], [*shape, part[2]]) for part in parts], axis=3)
            for k in range(2)
        )
        return at, there

    def next(self, whole: Any) -> Any:
        """The cache after this run, of its rows with those of this run behind them."""
        call, step = self.call, self.step
        batch, heads, _, size = whole.shape
        held = self.held(step.before)
        dropped = call.create("sub", [call.create("sub", [step.ends, self.held(step.ends)]), step.before])
        at = places(call, self.room, 4, 2, call.create("add", [dropped, held]))
        behind = call.create("sub", [call.whole(self.room), held])
        at = call.create("where", [call.create("lt", [at, held]), at, call.create("add", [at, behind])])
        last = call.whole(self.room + self.rows - 1)
        at = call.create("minimum", [at, last])
        at = call.broadcast_to(at, [batch, heads, self.room, size])
        return call.create("gather_elements", [whole, at], axis=2)
