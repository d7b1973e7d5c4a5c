"""Random TFLite layers of integers beside LiteRT's reference kernels: a row of each kind, and where integers differ.

    python tests/python/fuzz/fuzz_tflite_layers.py [--layers 2000] [--seed 0] [--kinds ADD,PRELU] [--types i8,i16]

A layer is a kind, a type and a number: each draws its own shapes, scales and values, so that one can be tried again.
Layers that LiteRT itself does not take are counted, not compared. Exit code 1 where one integer differs or hetnn
refuses what LiteRT takes.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]
import hetnn  # noqa: E402
from hetnn.importers.tflite.fixed_point import shifts_of_quotient  # noqa: E402
from importers.tflite_files import Array, Quant, Told, constant, one, reference  # noqa: E402

# Whose operands are positive.
POSITIVE = ("LOG", "RSQRT", "SQRT")
LIMITS = {"i8": (-128, 127), "u8": (0, 255), "i16": (-32768, 32767)}
# An operator, its operands, results and options.
Layer = tuple[str, Sequence[Told | None], Sequence[Told], Mapping[str, Any]]


class Draw:
    """Random numbers of one layer."""

    def __init__(self, kind: str, dtype: str, seed: int) -> None:
        self.rng = np.random.default_rng(zlib.crc32(f"{kind} {dtype} {seed}".encode()))
        self.dtype = dtype
        self.is_wide = dtype == "i16"

    def integer(self, low: int, high: int) -> int:
        """Both included."""
        return int(self.rng.integers(low, high + 1))

    def choice(self, rows: Sequence[Any]) -> Any:
        return rows[self.integer(0, len(rows) - 1)]

    def coin(self) -> bool:
        return self.choice([False, True])

    def shape(self, rank: int | None = None, most: int = 9) -> list[int]:
        return [self.integer(1, most) for _ in range(self.integer(1, 4) if rank is None else rank)]

    def range(self, low: float = 0.1, high: float = 100.0) -> float:
        """The largest real of a tensor."""
        return float(np.exp(self.rng.uniform(np.log(low), np.log(high))))

    def scale(self, largest: float | None = None) -> float:
        largest = self.range() if largest is None else largest
        return float(np.float32(largest / (32768 if self.is_wide else 128)))

    def quant(self, largest: float | None = None) -> Quant:
        low, high = LIMITS[self.dtype]
        return Quant(self.scale(largest), 0 if self.is_wide else self.integer(low, high))

    def tensor(self, shape: Sequence[int], quant: Quant | None = None) -> Told:
        return Told(shape, self.dtype, quant=quant or self.quant())

    def like(self, told: Told, low: float = 0.3, high: float = 3.0) -> Told:
        """A result whose largest real is near another's."""
        assert told.quant is not None
        scale = float(np.float32(told.quant.scale * self.range(low, high)))  # type: ignore[operator]
        return self.tensor([1], Quant(scale, self.quant().zero))

    def same(self, told: Told) -> Told:
        return Told([1], self.dtype, quant=told.quant)

    def weights(self, shape: Sequence[int], axis: int | None) -> Told:
        many = 1 if axis is None else shape[axis]
        scales = (np.exp(self.rng.uniform(-7, -3, many))).astype(np.float32).tolist()
        if self.dtype == "u8":
            return constant(self.rng.integers(0, 256, shape), "u8", Quant(scales[:1], self.integer(0, 255)))
        return constant(self.rng.integers(-127, 128, shape), "i8", Quant(scales, 0, axis or 0))

    def biases(self, x: Told, weights: Told, many: int) -> Told:
        assert x.quant is not None
        assert weights.quant is not None
        scales = np.float32(x.quant.scale) * np.asarray(weights.quant.scale, np.float32)
        most = 1 << (20 if self.is_wide else 12)
        return constant(self.rng.integers(-most, most, many), "i64" if self.is_wide else "i32", Quant(scales.tolist()))

    def values(self, told: Told) -> Array:
        """Of all its integers, or of those near zero, or at an end."""
        low, high = LIMITS[told.dtype]
        kind = np.dtype({"i8": "i1", "u8": "u1", "i16": "i2"}[told.dtype])
        if self.integer(0, 3) == 0:
            assert told.quant is not None
            near = self.rng.integers(-40, 41, told.shape) + int(told.quant.zero)  # type: ignore[arg-type]
            return np.clip(near, low, high).astype(kind)
        return self.rng.integers(low, high + 1, told.shape).astype(kind)


def options(table: str, **fields: Any) -> dict[str, Any]:
    return {"": f"{table}Options", **fields}


# Kinds of layers, and the types that LiteRT has each in.
KINDS: dict[str, tuple[Sequence[str], Callable[[Draw, str], Layer]]] = {}
ALL, BYTES, SIGNED = ("i8", "u8", "i16"), ("i8", "u8"), ("i8", "i16")


def kind(types: Sequence[str], *names: str) -> Callable[[Callable[[Draw, str], Layer]], Callable[[Draw, str], Layer]]:
    def add(function: Callable[[Draw, str], Layer]) -> Callable[[Draw, str], Layer]:
        KINDS.update(dict.fromkeys(names, (types, function)))
        return function

    return add


def _filters(d: Draw, table: str) -> tuple[Told, dict[str, Any], list[int]]:
    """An image, a window over it and the window's size."""
    x = d.tensor([d.integer(1, 2), d.integer(1, 10), d.integer(1, 10), d.integer(1, 9)])
    kernel, same = [d.integer(1, 4), d.integer(1, 4)], d.coin()
    if not same:
        kernel = [min(k, n) for k, n in zip(kernel, x.shape[1:3], strict=True)]
    act = d.choice([0, 0, 1, 2, 3])
    how = {"Padding": int(not same), "StrideH": d.integer(1, 3), "StrideW": d.integer(1, 3)}
    return x, options(table, **how, FusedActivationFunction=act), kernel


def _sums(d: Draw, x: Told, weights: Told, many: int) -> Told:
    """A result for sums of so many products: mostly within its range."""
    assert x.quant is not None
    assert weights.quant is not None
    steps = 60 * (32768 if d.is_wide else 128) * np.sqrt(many) * float(np.mean(weights.quant.scale))
    return d.tensor([1], d.quant(float(x.quant.scale) * steps * d.range(0.2, 3)))  # type: ignore[arg-type]


@kind(ALL, "CONV_2D")
def _conv(d: Draw, name: str) -> Layer:
    x, how, kernel = _filters(d, "Conv2D")
    channels, many = x.shape[3], d.integer(1, 9)
    groups = d.choice([g for g in range(1, channels + 1) if channels % g == 0]) if d.dtype == "i8" else 1
    weights = d.weights([many * groups, *kernel, channels // groups], 0 if d.dtype != "u8" and d.coin() else None)
    if how["Padding"] == 0 and d.integer(0, 3) == 0:
        how |= {"DilationHFactor": d.integer(1, 2), "DilationWFactor": d.integer(1, 2)}
    y = _sums(d, x, weights, int(np.prod(weights.shape[1:])))
    return name, [x, weights, d.biases(x, weights, many * groups)], [y], how


@kind(ALL, "DEPTHWISE_CONV_2D")
def _depthwise(d: Draw, name: str) -> Layer:
    x, how, kernel = _filters(d, "DepthwiseConv2D")
    many = d.integer(1, 3)
    weights = d.weights([1, *kernel, x.shape[3] * many], 3 if d.dtype != "u8" and d.coin() else None)
    y = _sums(d, x, weights, int(np.prod(kernel)))
    return name, [x, weights, d.biases(x, weights, x.shape[3] * many)], [y], {**how, "DepthMultiplier": many}


@kind(ALL, "FULLY_CONNECTED")
def _fully_connected(d: Draw, name: str) -> Layer:
    rows, features, many = d.integer(1, 6), d.integer(1, 90), d.integer(1, 12)
    x = d.tensor([rows, features])
    weights = d.weights([many, features], 0 if d.dtype == "i8" and d.coin() else None)
    how = options("FullyConnected", FusedActivationFunction=d.choice([0, 0, 1, 2, 3]))
    return name, [x, weights, d.biases(x, weights, many)], [_sums(d, x, weights, features)], how


@kind(ALL, "TRANSPOSE_CONV")
def _transposed(d: Draw, name: str) -> Layer:
    x = d.tensor([1, d.integer(1, 6), d.integer(1, 6), d.integer(1, 5)])
    kernel, stride, same, many = [d.integer(1, 4), d.integer(1, 4)], d.integer(1, 3), d.coin(), d.integer(1, 5)
    weights = d.weights([many, *kernel, x.shape[3]], 0 if d.dtype != "u8" and d.coin() else None)
    goal = [n * stride if same else (n - 1) * stride + k for n, k in zip(x.shape[1:3], kernel, strict=True)]
    bias = d.biases(x, weights, many) if d.coin() else None
    told = options("TransposeConv", Padding=int(not same), StrideH=stride, StrideW=stride)
    y = _sums(d, x, weights, int(np.prod(weights.shape[1:])))
    more = [] if bias is None else [bias]
    return name, [constant([1, *goal, many], "i32"), weights, x, *more], [y], told


@kind(SIGNED, "BATCH_MATMUL")
def _batch_matmul(d: Draw, name: str) -> Layer:
    n, m, k = d.integer(1, 5), d.integer(1, 6), d.integer(1, 50)
    turned, many = (d.coin(), d.coin()), d.shape(d.integer(0, 2), 3)
    a = d.tensor([*many, *((k, n) if turned[0] else (n, k))])
    b = d.tensor([*many, *((m, k) if turned[1] else (k, m))])
    assert a.quant is not None
    assert b.quant is not None
    steps = (32768 if d.is_wide else 128) ** 2 * np.sqrt(k) / 3
    largest = a.quant.scale * b.quant.scale * steps * d.range(0.2, 3)  # type: ignore[operator]
    return name, [a, b], [d.tensor([1], d.quant(largest))], options("BatchMatMul", AdjX=turned[0], AdjY=turned[1])


def _broadcast(d: Draw) -> tuple[list[int], list[int]]:
    """Two shapes that broadcast with one another."""
    whole = d.shape()
    parts = [[n if d.integer(0, 3) else 1 for n in whole] for _ in range(2)]
    parts[1] = parts[1][d.integer(0, len(whole)) if d.integer(0, 3) == 0 else 0 :]
    return parts[0], parts[1]


@kind(ALL, "ADD", "SUB", "MUL")
def _sum(d: Draw, name: str) -> Layer:
    a, b = map(d.tensor, _broadcast(d))
    assert a.quant is not None
    assert b.quant is not None
    scales = [float(each.quant.scale) for each in (a, b)]  # type: ignore[union-attr, arg-type]
    most = scales[0] * scales[1] * (32768 if d.is_wide else 128) if name == "MUL" else max(scales)
    y = d.tensor([1], Quant(float(np.float32(most * d.range(0.3, 4))), d.quant().zero))
    return name, [a, b], [y], options(name.capitalize(), FusedActivationFunction=d.choice([0, 0, 1, 2, 3]))


@kind(("u8",), "DIV")
def _quotient(d: Draw, name: str) -> Layer:
    a, b = map(d.tensor, _broadcast(d))
    return name, [a, b], [d.tensor([1])], options("Div")


@kind(ALL, "MAXIMUM", "MINIMUM")
def _extreme(d: Draw, name: str) -> Layer:
    a, b = _broadcast(d)
    of_a = d.tensor(a)
    alike = d.coin()
    of_b = Told(b, d.dtype, quant=of_a.quant) if alike else d.tensor(b)
    return name, [of_a, of_b], [d.same(of_a) if alike or d.coin() else d.like(of_a)], {}


@kind(("i8",), "SQUARED_DIFFERENCE")
def _squared(d: Draw, name: str) -> Layer:
    a, b = _broadcast(d)
    of_a = d.tensor(a)
    of_b = Told(b, d.dtype, quant=d.like(of_a).quant)
    largest = float(of_a.quant.scale) ** 2 * 128 * d.range(0.3, 300)  # type: ignore[union-attr, arg-type]
    return name, [of_a, of_b], [d.tensor([1], Quant(float(np.float32(largest / 128)), d.quant().zero))], {}


@kind(SIGNED, "FLOOR_DIV", "FLOOR_MOD")
def _whole_quotient(d: Draw, name: str) -> Layer:
    a, b = _broadcast(d)
    of_a = d.tensor(a)
    numbers = np.asarray(d.rng.integers(1, 100, b) * d.rng.choice([-1, 1], b))
    if name == "FLOOR_DIV":  # the least by -1 is undefined in LiteRT: its answer depends on the place
        numbers[numbers == -1] = 1
    return name, [of_a, constant(numbers, d.dtype, of_a.quant)], [d.same(of_a)], {}


@kind(ALL, "EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
def _comparison(d: Draw, name: str) -> Layer:
    a, b = _broadcast(d)
    of_a = d.tensor(a, d.quant(d.range(0.1, 30)))  # LiteRT takes scales below 1 alone
    return name, [of_a, Told(b, d.dtype, quant=d.choice([of_a, d.like(of_a)]).quant)], [Told([1], "bool")], {}


@kind(ALL, "AVERAGE_POOL_2D", "MAX_POOL_2D")
def _pool(d: Draw, name: str) -> Layer:
    x, how, kernel = _filters(d, "Pool2D")
    return name, [x], [d.same(x)], {**how, "FilterHeight": kernel[0], "FilterWidth": kernel[1]}


@kind(ALL, "MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")
def _reduction(d: Draw, name: str) -> Layer:
    x = d.tensor(d.shape())
    axes = sorted(d.rng.choice(len(x.shape), d.integer(1, len(x.shape)), replace=False).tolist())
    y = d.same(x) if name.startswith("REDUCE_M") or d.coin() else d.like(x)
    if name == "SUM" and d.coin():
        y = d.like(x, 3, 30)
    return name, [x, constant(axes, "i32")], [y], options("Reducer", KeepDims=d.coin())


@kind(ALL, "SOFTMAX")
def _softmax(d: Draw, name: str) -> Layer:
    x = d.tensor(d.shape(most=12))
    last = {"i8": Quant(1 / 256, -128), "u8": Quant(1 / 256, 0), "i16": Quant(1 / 32768)}[d.dtype]
    return name, [x], [d.tensor([1], last)], options("Softmax", Beta=d.choice([1.0, 1.0, 0.5, 2.0, 0.1]))


@kind(BYTES, "LOG_SOFTMAX")
def _log_softmax(d: Draw, name: str) -> Layer:
    x = d.tensor(d.shape(most=12))
    return name, [x], [d.tensor([1], Quant(16 / 256, 127 if d.dtype == "i8" else 255))], {}


@kind(ALL, "LOGISTIC", "TANH")
def _squash(d: Draw, name: str) -> Layer:
    x = d.tensor(d.shape(2, 30))
    if d.is_wide:
        if d.coin():  # powers of two have their own way
            x = d.tensor(x.shape, Quant(2.0 ** -d.integer(9, 15)))
        return name, [x], [d.tensor([1], Quant(1 / 32768))], {}
    zero = {"LOGISTIC": -128, "TANH": 0}[name] + 128 * (d.dtype == "u8")
    return name, [x], [d.tensor([1], Quant(1 / 256 if name == "LOGISTIC" else 1 / 128, zero))], {}


@kind(ALL, "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "ABS", "EXP", "LOG", "RSQRT", "SQRT", "HARD_SWISH", "ELU")
def _function(d: Draw, name: str) -> Layer:
    x = d.tensor(d.shape(2, 30), d.quant(d.range(0.1, 20)))
    return name, [x], [d.same(x) if d.integer(0, 2) == 0 else d.like(x)], {}


@kind(ALL, "NEG")
def _negated(d: Draw, name: str) -> Layer:
    x = d.tensor(d.shape(2, 30), d.quant(d.range(0.1, 20)))
    return name, [x], [d.same(x)], {}


@kind(ALL, "GELU")
def _gelu(d: Draw, name: str) -> Layer:
    x = d.tensor(d.shape(2, 30), d.quant(d.range(0.1, 20)))
    return name, [x], [d.like(x)], options("Gelu", Approximate=d.coin())


@kind(ALL, "LEAKY_RELU")
def _leaky_relu(d: Draw, name: str) -> Layer:
    x = d.tensor(d.shape(most=12))
    return name, [x], [d.like(x)], options("LeakyRelu", Alpha=d.choice([0.3, 0.1, 0.01, -0.5, 1.5, 0.0]))


@kind(ALL, "PRELU")
def _prelu(d: Draw, name: str) -> Layer:
    x = d.tensor(d.shape(4))
    shape = [*d.choice([[1, 1], [1, 1], [x.shape[1], 1]]), d.choice([x.shape[3], 1])]
    low, high = LIMITS[d.dtype]
    slopes = constant(d.rng.integers(low, high + 1, shape), d.dtype, d.quant(d.range(0.1, 2)))
    if d.is_wide:  # LiteRT reads slopes of 8 bits, whatever the file says
        slopes = constant(d.rng.integers(-128, 128, shape), "i8", Quant(d.range(0.001, 0.02)))
    return name, [x, slopes], [d.like(x)], {}


@kind(ALL, "L2_NORMALIZATION")
def _unit(d: Draw, name: str) -> Layer:
    # The squares of rows of up to 33,000 have a sum of 31 bits.
    x = d.tensor([d.integer(1, 2), d.integer(1, 33000)] if d.integer(0, 3) == 0 else d.shape(most=12))
    return name, [x], [d.tensor([1], Quant(1 / 128, 128 if d.dtype == "u8" else 0))], options("L2Norm")


@kind(ALL, "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def _resize(d: Draw, name: str) -> Layer:
    x = d.tensor([d.integer(1, 2), d.integer(1, 9), d.integer(1, 9), d.integer(1, 4)])
    corners, centred = d.choice([(False, False), (True, False), (False, True)])
    table = {"RESIZE_BILINEAR": "ResizeBilinear"}.get(name, "ResizeNearestNeighbor")
    how = options(table, AlignCorners=corners, HalfPixelCenters=centred)
    return name, [x, constant(d.shape(2, 14), "i32")], [d.same(x)], how


@kind(ALL, "CONCATENATION")
def _concatenation(d: Draw, name: str) -> Layer:
    shape = d.shape()
    axis = d.integer(0, len(shape) - 1)
    parts = [
        d.tensor([d.integer(1, 5) if k == axis else n for k, n in enumerate(shape)]) for _ in range(d.integer(1, 4))
    ]
    if d.dtype != "u8" or d.coin():  # of bytes with a sign LiteRT moves integers as they are
        parts = [Told(part.shape, d.dtype, quant=parts[0].quant) for part in parts]
        return name, parts, [d.same(parts[0])], options("Concatenation", Axis=axis)
    return name, parts, [d.like(parts[0])], options("Concatenation", Axis=axis)


@kind(ALL, "QUANTIZE")
def _quantize(d: Draw, name: str) -> Layer:
    x = d.tensor(d.shape(2, 30))
    to = Draw(name, d.choice(["i8", "i16", "u8"]), d.integer(0, 1 << 30))
    assert x.quant is not None
    largest = float(x.quant.scale) * (32768 if d.is_wide else 128) * d.range(0.3, 3)  # type: ignore[arg-type]
    return name, [x], [to.tensor([1], to.quant(largest))], {}


@kind(ALL, "DEQUANTIZE", "CAST")
def _to_reals(d: Draw, name: str) -> Layer:
    return name, [d.tensor(d.shape())], [Told([1])], options("Cast") if name == "CAST" else {}


@dataclass
class Row:
    """What became of the layers of one kind and type."""

    counts: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    first: str = ""
    untaken: str = ""


Compared = tuple[str, str, int]


def compare(name: str, dtype: str, seed: int, target: str = "cpu") -> Compared:
    """equal, differ, refused, or untaken by LiteRT; a sentence; the most steps that integers are apart."""
    d = Draw(name, dtype, seed)
    layer = KINDS[name][1](d, name)
    data = one(*layer)
    given = [d.values(told) for told in layer[1] if told is not None and told.data is None]
    if name in POSITIVE:
        zero = int(layer[1][0].quant.zero)  # type: ignore[union-attr, arg-type]
        given = [np.maximum(given[0], given[0].dtype.type(min(zero + 1, LIMITS[dtype][1])))]
    try:
        ((wanted,),) = reference(data, [given], fast=name == "SUM")  # the reference's wraps around
    except (RuntimeError, ValueError) as error:
        return "untaken", str(error).split("\n")[0][-120:], 0
    try:
        found = hetnn.compile(data, target)(*given)
    except hetnn.Error as error:
        return "refused", str(error).replace("\n", " ")[:160], 0
    if name == "DIV" and found.shape == wanted.shape:
        wanted = np.where(_is_undefined(layer, given), found, wanted)
    return beside(found, wanted)


def _is_undefined(layer: Layer, given: Sequence[Array]) -> Array:
    """Which quotients of u8 LiteRT shifts by more bits than integers have: C++ leaves open what it gives, 0 or 255."""
    left = iter(given)
    a, b, y = (told.quant for told in (*layer[1], *layer[2]) if told is not None and told.quant is not None)
    operands = [np.asarray(told.data if told.data is not None else next(left)) for told in layer[1] if told is not None]
    of_a, of_b, of_y = (np.float32(quant.scale) for quant in (a, b, y))
    centred = (x.astype(np.int64) - int(quant.zero) for x, quant in zip(operands, (a, b), strict=True))
    return shifts_of_quotient(*np.broadcast_arrays(*centred), float(of_a / (of_b * of_y))) >= 32


def beside(found: Array, wanted: Array) -> Compared:
    """equal or differ, and by what."""
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return "differ", f"{found.dtype}{list(found.shape)}, not {wanted.dtype}{list(wanted.shape)}", 0
    if np.array_equal(found, wanted, equal_nan=found.dtype.kind == "f"):
        return "equal", "", 0
    apart = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
    return "differ", f"{np.count_nonzero(apart)} of {apart.size}, by {apart.max():g}", int(apart.max())


def sweep(
    layers: int,
    seed: int = 0,
    kinds: Mapping[str, Sequence[str]] | None = None,
    by: Callable[[str, str, int], Compared] = compare,
) -> dict[str, Row]:
    """So many layers of each kind and type, by 'KIND type'."""
    rows: dict[str, Row] = {}
    for name, types in (TYPES_OF if kinds is None else kinds).items():
        for dtype in types:
            row = rows.setdefault(f"{name} {dtype}", Row())
            for number in range(seed, seed + layers):
                came, told, steps = by(name, dtype, number)
                row.counts[came] += 1
                row.steps = max(row.steps, steps)
                if came == "untaken":
                    row.untaken = row.untaken or told
                elif came != "equal" and not row.first:
                    row.first = f"{number}: {told}"
    return rows


TYPES_OF = {name: types for name, (types, _) in KINDS.items()}


def add_arguments(parser: argparse.ArgumentParser, layers: int) -> None:
    parser.add_argument("--layers", type=int, default=layers)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", type=lambda told: told.split(","), default=[])
    parser.add_argument("--types", type=lambda told: told.split(","), default=ALL)


def print_sweep(
    args: argparse.Namespace, has: Mapping[str, Sequence[str]], by: Callable[[str, str, int], Compared]
) -> int:
    """A row of each kind and type that the arguments name; 1 where one differs or is refused."""
    failed = False
    for name in args.kinds or has:
        for dtype in (t for t in has[name] if t in args.types):
            (row,) = sweep(args.layers, args.seed, {name: [dtype]}, by).values()
            counts = " ".join(f"{row.counts[each]:5}" for each in ("equal", "differ", "refused", "untaken"))
            print(f"{name + ' ' + dtype:28} {counts}  {row.steps:6}  {row.first or row.untaken}", flush=True)
            failed |= bool(row.counts["differ"] or row.counts["refused"])
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_arguments(parser, layers=2000)
    return print_sweep(parser.parse_args(), TYPES_OF, compare)


if __name__ == "__main__":
    sys.exit(main())
