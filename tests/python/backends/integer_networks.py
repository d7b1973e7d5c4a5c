"""Twelve int8 networks as TFLite files: the shapes of known ones, weights and scales by fixed seeds.

Scales of results are drawn so that values neither saturate nor vanish; what the networks say of an image means nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from importers.tflite_files import Graph, Quant, Told, constant, model_bytes

NONE, RELU, RELU6 = 0, 1, 3
SAME, VALID = 0, 1
NETWORKS: dict[str, Callable[[], bytes]] = {}


@dataclass(frozen=True)
class Value:
    place: int
    told: Told

    @property
    def shape(self) -> list[int]:
        return list(self.told.shape)

    @property
    def quant(self) -> Quant:
        assert self.told.quant is not None
        return self.told.quant

    @property
    def scale(self) -> float:
        return float(np.asarray(self.quant.scale))


def options(table: str, **fields: Any) -> dict[str, Any]:
    return {"": f"{table}Options", **fields}


class Net:
    """A network that grows; values are images of channels last."""

    def __init__(self, seed: int) -> None:
        self.graph, self.rng = Graph(), np.random.default_rng(seed)

    def start(self, shape: Sequence[int]) -> Value:
        told = Told(shape, "i8", quant=Quant(0.0078125, 0))
        return Value(self.graph.input(told), told)

    def put(self, name: str, inputs: Sequence[int], y: Told, how: dict[str, Any] | None = None) -> Value:
        return Value(self.graph.op(name, inputs, [y], how)[0], y)

    def finish(self, *outputs: Value) -> bytes:
        self.graph.outputs = [value.place for value in outputs]
        return model_bytes([self.graph])

    def quant(self, spread: float, activation: int = NONE) -> Quant:
        """Of values that lie about `spread` from zero, behind an activation."""
        if activation == RELU6:
            return Quant(float(np.float32(min(6.0, 3 * spread) / 255)), -128)
        if activation == RELU:
            return Quant(float(np.float32(3 * spread / 255)), -128)
        return Quant(float(np.float32(6 * spread / 255)), int(self.rng.integers(-20, 20)))

    def spread(self, x: Value) -> float:
        return x.scale * 255 / (3 if x.quant.zero == -128 else 6)

    def _weights(self, x: Value, shape: Sequence[int], axis: int, many: int) -> tuple[list[int], float]:
        """Filters and biases, and how far their sums lie from zero where inputs are as far as theirs."""
        reach = int(np.prod(shape)) // many
        scales = self.rng.uniform(0.7, 1.4, many).astype(np.float32) / np.float32(50 * np.sqrt(reach))
        values = np.clip(np.rint(self.rng.normal(0, 40, shape)), -127, 127).astype(np.int8)
        of_sums = (scales * np.float32(x.scale)).astype(np.float32)
        bias = np.rint(self.rng.normal(0, 0.1 * self.spread(x), many) / of_sums).astype(np.int32)
        weights = constant(values, "i8", Quant(scales.tolist(), 0, axis))
        biases = constant(bias, "i32", Quant(of_sums.tolist(), 0))
        return [self.graph.tensor(weights), self.graph.tensor(biases)], self.spread(x)

    def conv(
        self, x: Value, many: int, kernel: Any = 1, stride: Any = 1, activation: int = NONE, padding: int = SAME
    ) -> Value:
        size, steps = _pair(kernel), _pair(stride)
        given, spread = self._weights(x, [many, *size, x.shape[3]], 0, many)
        y = Told([x.shape[0], *_reach(x, size, steps, padding), many], "i8", quant=self.quant(spread, activation))
        how = options("Conv2D", Padding=padding, StrideH=steps[0], StrideW=steps[1], FusedActivationFunction=activation)
        return self.put("CONV_2D", [x.place, *given], y, how)

    def depthwise(self, x: Value, kernel: Any = 3, stride: Any = 1, activation: int = NONE, times: int = 1) -> Value:
        size, steps, many = _pair(kernel), _pair(stride), x.shape[3] * times
        given, spread = self._weights(x, [1, *size, many], 3, many)
        y = Told([x.shape[0], *_reach(x, size, steps, SAME), many], "i8", quant=self.quant(spread, activation))
        how = options("DepthwiseConv2D", Padding=SAME, StrideH=steps[0], StrideW=steps[1], DepthMultiplier=times)
        return self.put("DEPTHWISE_CONV_2D", [x.place, *given], y, {**how, "FusedActivationFunction": activation})

    def transposed(self, x: Value, many: int, stride: int = 2) -> Value:
        given, spread = self._weights(x, [many, stride, stride, x.shape[3]], 0, many)
        size = [x.shape[0], *(n * stride for n in x.shape[1:3]), many]
        y = Told(size, "i8", quant=self.quant(spread))
        how = options("TransposeConv", Padding=SAME, StrideH=stride, StrideW=stride)
        shape = self.graph.tensor(constant(size, "i32"))
        return self.put("TRANSPOSE_CONV", [shape, given[0], x.place, given[1]], y, how)

    def dense(self, x: Value, many: int, activation: int = NONE) -> Value:
        given, spread = self._weights(x, [many, x.shape[-1]], 0, many)
        y = Told([*x.shape[:-1], many], "i8", quant=self.quant(spread, activation))
        return self.put(
            "FULLY_CONNECTED", [x.place, *given], y, options("FullyConnected", FusedActivationFunction=activation)
        )

    def pool(self, x: Value, kind: str, kernel: Any, stride: Any = None, padding: int = VALID) -> Value:
        size = _pair(kernel)
        steps = _pair(stride) if stride is not None else size
        y = Told([x.shape[0], *_reach(x, size, steps, padding), x.shape[3]], "i8", quant=x.quant)
        how = options("Pool2D", Padding=padding, StrideH=steps[0], StrideW=steps[1])
        return self.put(f"{kind}_POOL_2D", [x.place], y, {**how, "FilterHeight": size[0], "FilterWidth": size[1]})

    def mean(self, x: Value, keep: bool = False) -> Value:
        shape = [x.shape[0], 1, 1, x.shape[3]] if keep else [x.shape[0], x.shape[3]]
        axes = self.graph.tensor(constant([1, 2], "i32"))
        return self.put("MEAN", [x.place, axes], Told(shape, "i8", quant=x.quant), options("Reducer", KeepDims=keep))

    def pair(self, name: str, a: Value, b: Value, activation: int = NONE) -> Value:
        spread = self.spread(a) * self.spread(b) if name == "MUL" else np.hypot(self.spread(a), self.spread(b))
        shape = np.broadcast_shapes(tuple(a.shape), tuple(b.shape))
        y = Told(list(shape), "i8", quant=self.quant(float(spread), activation))
        return self.put(name, [a.place, b.place], y, options(name.capitalize(), FusedActivationFunction=activation))

    def function(self, name: str, x: Value, **how: Any) -> Value:
        quant = {
            "LOGISTIC": Quant(1 / 256, -128),
            "TANH": Quant(1 / 128, 0),
            "SOFTMAX": Quant(1 / 256, -128),
        }.get(name, Quant(x.scale * 0.75, -90))
        told = {"SOFTMAX": options("Softmax", Beta=1.0), "LEAKY_RELU": options("LeakyRelu", Alpha=0.1)}.get(name, {})
        return self.put(name, [x.place], Told(x.shape, "i8", quant=quant), {**told, **how})

    def prelu(self, x: Value) -> Value:
        slopes = self.rng.integers(-40, 127, [1, 1, x.shape[3]]).astype(np.int8)
        given = self.graph.tensor(constant(slopes, "i8", Quant(0.005, 0)))
        return self.put("PRELU", [x.place, given], Told(x.shape, "i8", quant=Quant(x.scale * 0.75, -90)))

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        size = self.graph.tensor(constant(list(shape), "i32"))
        how = options("Reshape", NewShape=list(shape))
        return self.put("RESHAPE", [x.place, size], Told(list(shape), "i8", quant=x.quant), how)

    def joint(self, *parts: Value) -> Value:
        first = parts[0]
        same = [
            part
            if part.quant == first.quant
            else self.put("QUANTIZE", [part.place], Told(part.shape, "i8", quant=first.quant))
            for part in parts
        ]
        shape = [*first.shape[:3], sum(part.shape[3] for part in parts)]
        y = Told(shape, "i8", quant=first.quant)
        return self.put("CONCATENATION", [part.place for part in same], y, options("Concatenation", Axis=3))

    def upsampled(self, x: Value) -> Value:
        size = [n * 2 for n in x.shape[1:3]]
        given = self.graph.tensor(constant(size, "i32"))
        y = Told([x.shape[0], *size, x.shape[3]], "i8", quant=x.quant)
        return self.put("RESIZE_NEAREST_NEIGHBOR", [x.place, given], y, options("ResizeNearestNeighbor"))

    def padded(self, x: Value, amounts: Sequence[Sequence[int]]) -> Value:
        given = self.graph.tensor(constant(np.array(amounts, np.int32)))
        shape = [n + before + behind for n, (before, behind) in zip(x.shape, amounts, strict=True)]
        return self.put("PAD", [x.place, given], Told(shape, "i8", quant=x.quant), options("Pad"))


def _pair(given: Any) -> list[int]:
    return [given, given] if isinstance(given, int) else list(given)


def _reach(x: Value, kernel: list[int], stride: list[int], padding: int) -> list[int]:
    sizes = zip(x.shape[1:3], kernel, stride, strict=True)
    return [-(-n // s) if padding == SAME else (n - k) // s + 1 for n, k, s in sizes]


def network(make: Callable[[Net], Sequence[Value]]) -> Callable[[], bytes]:
    def build() -> bytes:
        n = Net(len(NETWORKS) * 1000 + sum(map(ord, make.__name__)))
        return n.finish(*make(n))

    NETWORKS[make.__name__] = build
    return build


@network
def resnet_8(n: Net) -> Sequence[Value]:
    """MLPerf Tiny's image classifier."""
    x = n.conv(n.start([1, 32, 32, 3]), 16, 3, 1, RELU)
    for many, stride in ((16, 1), (32, 2), (64, 2)):
        y = n.conv(n.conv(x, many, 3, stride, RELU), many, 3)
        x = n.pair("ADD", y, x if stride == 1 else n.conv(x, many, 1, stride), RELU)
    x = n.pool(x, "AVERAGE", 8)
    return [n.function("SOFTMAX", n.dense(n.reshape(x, [1, 64]), 10))]


@network
def ds_cnn(n: Net) -> Sequence[Value]:
    """MLPerf Tiny's keyword spotter."""
    x = n.conv(n.start([1, 49, 10, 1]), 64, [10, 4], 2, RELU)
    for _ in range(4):
        x = n.conv(n.depthwise(x, 3, 1, RELU), 64, 1, 1, RELU)
    x = n.pool(x, "AVERAGE", x.shape[1:3])
    return [n.function("SOFTMAX", n.dense(n.reshape(x, [1, 64]), 12))]


@network
def autoencoder(n: Net) -> Sequence[Value]:
    """MLPerf Tiny's detector of anomalies in sounds."""
    x = n.start([1, 640])
    for many in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x = n.dense(x, many, RELU)
    return [n.dense(x, 640)]


@network
def mobilenet_v2(n: Net) -> Sequence[Value]:
    x = n.conv(n.start([1, 224, 224, 3]), 32, 3, 2, RELU6)
    for times, many, count, first in (
        *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
        *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
    ):
        for k in range(count):
            y = x if times == 1 else n.conv(x, x.shape[3] * times, 1, 1, RELU6)
            y = n.conv(n.depthwise(y, 3, first if k == 0 else 1, RELU6), many, 1)
            x = n.pair("ADD", y, x) if k else y
    x = n.mean(n.conv(x, 1280, 1, 1, RELU6))
    return [n.function("SOFTMAX", n.dense(x, 1000))]


@network
def visual_wake_words(n: Net) -> Sequence[Value]:
    """MobileNetV1 of a quarter of the width, which MLPerf Tiny has of people on images of 96 pixels."""
    x = n.conv(n.start([1, 96, 96, 3]), 8, 3, 2, RELU6)
    for many, stride in ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *((128, 1),) * 5, (256, 2), (256, 1)):
        x = n.conv(n.depthwise(x, 3, stride, RELU6), many, 1, 1, RELU6)
    x = n.pool(x, "AVERAGE", 3)
    return [n.function("SOFTMAX", n.reshape(n.conv(x, 2), [1, 2]))]


@network
def mobilenet_v3(n: Net) -> Sequence[Value]:
    """Hard swishes, and channels that are weighed."""
    x = n.function("HARD_SWISH", n.conv(n.start([1, 96, 96, 3]), 16, 3, 2))
    for wide, many, kernel, stride in (
        (16, 16, 3, 2),
        (72, 24, 3, 2),
        (96, 40, 5, 2),
        (240, 40, 5, 1),
        (120, 48, 5, 1),
    ):
        y = n.function("HARD_SWISH", n.conv(x, wide))
        y = n.function("HARD_SWISH", n.depthwise(y, kernel, stride))
        weighed = n.conv(n.mean(y, keep=True), wide // 4, 1, 1, RELU)
        y = n.pair("MUL", y, n.function("LOGISTIC", n.conv(weighed, wide)))
        y = n.conv(y, many)
        x = n.pair("ADD", y, x) if y.shape == x.shape else y
    x = n.function("HARD_SWISH", n.conv(x, 288))
    return [n.dense(n.mean(x), 100)]


@network
def squeezenet(n: Net) -> Sequence[Value]:
    x = n.pool(n.conv(n.start([1, 96, 96, 3]), 64, 3, 2, RELU), "MAX", 3, 2)
    for narrow, wide, shrinks in ((16, 64, False), (16, 64, True), (32, 128, False), (32, 128, True), (48, 192, False)):
        y = n.conv(x, narrow, 1, 1, RELU)
        x = n.joint(n.conv(y, wide, 1, 1, RELU), n.conv(y, wide, 3, 1, RELU))
        x = n.pool(x, "MAX", 3, 2) if shrinks else x
    return [n.mean(n.conv(x, 100, 1, 1, RELU))]


@network
def resnet_18(n: Net) -> Sequence[Value]:
    x = n.pool(n.conv(n.start([1, 64, 64, 3]), 64, 7, 2, RELU), "MAX", 3, 2, SAME)
    for many, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        y = n.conv(n.conv(x, many, 3, stride, RELU), many, 3)
        x = n.pair("ADD", y, x if y.shape == x.shape else n.conv(x, many, 1, stride), RELU)
    return [n.dense(n.mean(x), 200)]


@network
def unet(n: Net) -> Sequence[Value]:
    """Down, and up again by transposed convolutions, joined with what was seen on the way down."""
    x, kept = n.start([1, 64, 64, 1]), []
    for many in (8, 16, 32):
        x = n.conv(n.conv(x, many, 3, 1, RELU), many, 3, 1, RELU)
        kept.append(x)
        x = n.pool(x, "MAX", 2)
    x = n.conv(x, 64, 3, 1, RELU)
    for many in (32, 16, 8):
        x = n.joint(n.transposed(x, many), kept.pop())
        x = n.conv(n.conv(x, many, 3, 1, RELU), many, 3, 1, RELU)
    return [n.function("LOGISTIC", n.conv(x, 1))]


@network
def yolo_tiny(n: Net) -> Sequence[Value]:
    """Leaky rectifiers, and two heads of which one sees finer rows again."""
    x, kept = n.start([1, 128, 128, 3]), []
    for many in (8, 16, 32, 64, 128):
        x = n.function("LEAKY_RELU", n.conv(x, many, 3))
        kept.append(x)
        x = n.pool(x, "MAX", 2)
    x = n.function("LEAKY_RELU", n.conv(x, 128, 3))
    coarse = n.conv(n.function("LEAKY_RELU", n.conv(x, 128, 3)), 30)
    y = n.joint(n.upsampled(n.function("LEAKY_RELU", n.conv(x, 64))), kept[4])
    return [coarse, n.conv(n.function("LEAKY_RELU", n.conv(y, 128, 3)), 30)]


@network
def sound_rows(n: Net) -> Sequence[Value]:
    """Convolutions along time with gaps in between by strides, gates, and a pooled answer."""
    x = n.conv(n.start([1, 1, 128, 40]), 64, [1, 5], 1, RELU)
    for _ in range(3):
        padded = n.padded(x, [[0, 0], [0, 0], [2, 2], [0, 0]])
        gate = n.function("LOGISTIC", n.conv(padded, 64, [1, 5], padding=VALID))
        value = n.function("TANH", n.conv(padded, 64, [1, 5], padding=VALID))
        x = n.pair("ADD", n.pair("MUL", gate, value), x)
        x = n.pool(x, "MAX", [1, 2])
    return [n.function("SOFTMAX", n.dense(n.mean(x), 35))]


@network
def face_marks(n: Net) -> Sequence[Value]:
    """PReLUs behind convolutions, as detectors of faces have them."""
    x = n.prelu(n.conv(n.start([1, 48, 48, 3]), 32, 3, 1, padding=VALID))
    x = n.pool(x, "MAX", 3, 2, SAME)
    x = n.pool(n.prelu(n.conv(x, 64, 3, 1, padding=VALID)), "MAX", 3, 2, VALID)
    x = n.pool(n.prelu(n.conv(x, 64, 3, 1, padding=VALID)), "MAX", 2)
    x = n.prelu(n.conv(x, 128, 2, 1, padding=VALID))
    x = n.dense(n.reshape(x, [1, int(np.prod(x.shape))]), 256, RELU)
    return [n.dense(x, 10), n.function("SOFTMAX", n.dense(x, 2))]
