"""Random TFLite networks of 8-bit integers on an NPU that rounds as LiteRT does, beside LiteRT's reference kernels.

    python tests/python/fuzz/fuzz_tflite_networks.py [--models 2000 | --seconds 60] [--seed 0] [--only SEED:INDEX]

A network has convolutions, elementwise layers, joints, pools, means, rescalings and functions in any order, and perhaps
a linear layer behind them; each draws its own layers, scales, values and scratchpad. A finding is a value that differs
by one step, and a layer that runs on the CPU.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]
import hetnn  # noqa: E402
from fuzz.fuzz_tflite_layers import Draw, options  # noqa: E402
from fuzz.workers import Finding, Found, command_line, tell, try_each  # noqa: E402
from importers.tflite_files import Array, Graph, Quant, Told, constant, model_bytes, reference  # noqa: E402
from npu.programs import target  # noqa: E402


def sheet(kib: int) -> dict[str, Any]:
    spec = target(("sub", "mul", "maximum", "minimum", "clamp", "lookup"), sram={"bytes": kib << 10})
    spec["ops"]["lookup"] = {"dtypes": ["i8"], "max_rank": 4}
    spec["numerics"] = {"rounding": ["double", "single"]}
    return spec


class Net:
    """A graph that grows: places of its values with what they are."""

    def __init__(self, seed: int, index: int) -> None:
        self.d = Draw("NETWORK", "i8", (seed << 32) + index)
        self.graph = Graph()
        d = self.d
        x = d.tensor([d.integer(1, 2), d.integer(3, 13), d.integer(3, 13), d.integer(1, 9)])
        self.values = [(self.graph.input(x), x)]
        for _ in range(d.integer(2, 8)):
            d.choice(LAYERS)(self)
        if d.coin():
            _dense(self)
        self.graph.outputs = [self.values[-1][0]]

    def pick(self) -> tuple[int, Told]:
        """A value of four axes, mostly the last."""
        return self.values[-1] if self.d.integer(0, 2) else self.d.choice(self.values)

    def put(self, name: str, inputs: list[int], y: Told, how: dict[str, Any] | None = None) -> None:
        self.values.append((self.graph.op(name, inputs, [y], how)[0], y))

    def constant(self, told: Told) -> int:
        return self.graph.tensor(told)

    def rescaled(self, at: tuple[int, Told], quant: Quant) -> tuple[int, Told]:
        if at[1].quant == quant:
            return at
        self.put("QUANTIZE", [at[0]], Told(at[1].shape, "i8", quant=quant))
        return self.values[-1]


def _window(net: Net, x: Told, table: str) -> tuple[dict[str, Any], list[int], list[int]]:
    """Options, the window's size and that of its result."""
    d = net.d
    kernel, same, stride = [d.integer(1, 4), d.integer(1, 4)], d.coin(), [d.integer(1, 2), d.integer(1, 2)]
    if not same:
        kernel = [min(k, n) for k, n in zip(kernel, x.shape[1:3], strict=True)]
    size = [-(-n // s) if same else (n - k) // s + 1 for n, k, s in zip(x.shape[1:3], kernel, stride, strict=True)]
    how = {"Padding": int(not same), "StrideH": stride[0], "StrideW": stride[1]}
    return options(table, **how, FusedActivationFunction=d.choice([0, 0, 1, 3])), kernel, size


def _sums(net: Net, x: Told, weights: Told, shape: list[int], many: int) -> Told:
    assert x.quant is not None
    assert weights.quant is not None
    steps = 60 * 128 * np.sqrt(many) * float(np.mean(weights.quant.scale))
    return Told(shape, "i8", quant=net.d.quant(float(x.quant.scale) * steps * net.d.range(0.2, 3)))  # type: ignore[arg-type]


def _conv(net: Net) -> None:
    (place, x), d = net.pick(), net.d
    how, kernel, size = _window(net, x, "Conv2D")
    many = d.integer(1, 12)
    weights = d.weights([many, *kernel, x.shape[3]], 0 if d.coin() else None)
    y = _sums(net, x, weights, [x.shape[0], *size, many], int(np.prod(weights.shape[1:])))
    net.put("CONV_2D", [place, net.constant(weights), net.constant(d.biases(x, weights, many))], y, how)


def _depthwise(net: Net) -> None:
    (place, x), d = net.pick(), net.d
    how, kernel, size = _window(net, x, "DepthwiseConv2D")
    many = x.shape[3] * d.integer(1, 2)
    weights = d.weights([1, *kernel, many], 3 if d.coin() else None)
    y = _sums(net, x, weights, [x.shape[0], *size, many], int(np.prod(kernel)))
    how["DepthMultiplier"] = many // x.shape[3]
    net.put("DEPTHWISE_CONV_2D", [place, net.constant(weights), net.constant(d.biases(x, weights, many))], y, how)


def _pool(net: Net) -> None:
    (place, x), d = net.pick(), net.d
    how, kernel, size = _window(net, x, "Pool2D")
    y = Told([x.shape[0], *size, x.shape[3]], "i8", quant=x.quant)
    how |= {"FilterHeight": kernel[0], "FilterWidth": kernel[1]}
    net.put(d.choice(["AVERAGE_POOL_2D", "MAX_POOL_2D"]), [place], y, how)


def _pair(net: Net) -> None:
    (a, x), d = net.pick(), net.d
    b, other = d.choice([each for each in net.values if list(each[1].shape) == list(x.shape)])
    name = d.choice(["ADD", "ADD", "SUB", "MUL"])
    assert x.quant is not None
    assert other.quant is not None
    scales = [float(x.quant.scale), float(other.quant.scale)]  # type: ignore[arg-type]
    most = scales[0] * scales[1] * 128 if name == "MUL" else max(scales)
    y = Told(x.shape, "i8", quant=Quant(float(np.float32(most * d.range(0.3, 4))), d.quant().zero))
    net.put(name, [a, b], y, options(name.capitalize(), FusedActivationFunction=d.choice([0, 0, 1, 3])))


def _extreme(net: Net) -> None:
    (a, x), d = net.pick(), net.d
    other = d.choice([each for each in net.values if list(each[1].shape) == list(x.shape)])
    assert x.quant is not None
    b, _ = net.rescaled(other, x.quant)
    net.put(d.choice(["MAXIMUM", "MINIMUM"]), [a, b], Told(x.shape, "i8", quant=x.quant))


def _joint(net: Net) -> None:
    (_, x), d = net.pick(), net.d
    fitting = [each for each in net.values if list(each[1].shape)[:3] == list(x.shape)[:3]]
    assert x.quant is not None
    parts = [net.rescaled(d.choice(fitting), x.quant) for _ in range(d.integer(2, 3))]
    channels = sum(part.shape[3] for _, part in parts)
    y = Told([*list(x.shape)[:3], channels], "i8", quant=x.quant)
    net.put("CONCATENATION", [place for place, _ in parts], y, options("Concatenation", Axis=3))


def _mean(net: Net) -> None:
    (place, x), d = net.pick(), net.d
    y = Told([x.shape[0], 1, 1, x.shape[3]], "i8", quant=d.choice([x.quant, d.like(x).quant]))
    net.put("MEAN", [place, net.constant(constant([1, 2], "i32"))], y, options("Reducer", KeepDims=True))


def _rescaling(net: Net) -> None:
    (place, x), d = net.pick(), net.d
    name = d.choice(["QUANTIZE", "QUANTIZE", "RELU", "RELU6"])
    net.put(name, [place], Told(x.shape, "i8", quant=d.like(x).quant))


def _function(net: Net) -> None:
    (place, x), d = net.pick(), net.d
    name = d.choice(["LOGISTIC", "HARD_SWISH", "LEAKY_RELU", "TANH"])
    quant = {"LOGISTIC": Quant(1 / 256, -128), "TANH": Quant(1 / 128, 0)}.get(name, d.like(x).quant)
    how = options("LeakyRelu", Alpha=d.choice([0.3, 0.01, 1.5])) if name == "LEAKY_RELU" else None
    net.put(name, [place], Told(x.shape, "i8", quant=quant), how)


def _dense(net: Net) -> None:
    """All of an image to each filter, as at a classifier's end; LiteRT rounds its sums once."""
    (place, x), d = net.values[-1], net.d
    length, many = int(np.prod(x.shape[1:])), d.integer(1, 12)
    flat = Told([x.shape[0], length], "i8", quant=x.quant)
    net.put(
        "RESHAPE", [place, net.constant(constant(flat.shape, "i32"))], flat, options("Reshape", NewShape=flat.shape)
    )
    weights = d.weights([many, length], 0 if d.coin() else None)
    y = _sums(net, flat, weights, [x.shape[0], many], length)
    how = options("FullyConnected", FusedActivationFunction=d.choice([0, 0, 1, 3]))
    biases = net.constant(d.biases(flat, weights, many))
    net.put("FULLY_CONNECTED", [net.values[-1][0], net.constant(weights), biases], y, how)


LAYERS: list[Callable[[Net], None]] = [
    *[_conv] * 3, *[_depthwise] * 3, *[_pool] * 2, *[_pair] * 3, _extreme, *[_joint] * 2, _mean, *[_rescaling] * 2,
    _function,
]  # fmt: skip


def compare(seed: int, index: int) -> str:
    """equal, or untaken by LiteRT; raises what is wrong."""
    net = Net(seed, index)
    data = model_bytes([net.graph])
    given: list[Array] = [net.d.values(net.values[0][1])]
    try:
        ((wanted,),) = reference(data, [given])
    except (RuntimeError, ValueError):
        return "untaken"
    spec = sheet(net.d.choice([16, 16, 64, 1024]))
    executable = hetnn.compile(data, spec, strategy="take-all", rewrite="always", tune=False)
    report = executable.report(format="dict")
    for row in report["not_on_preferred"]:
        # Ends of the network are plain integers.
        if row["op"] != "bitcast":
            raise Found(f"{row['op']} '{row['node']}' is on the cpu: {[each['text'] for each in row['reasons']]}")
    found = np.asarray(executable(*given))
    if not np.array_equal(found, wanted):
        apart = np.abs(found.astype(int) - wanted)
        raise Found(f"{np.count_nonzero(apart)} of {apart.size} values differ, by {apart.max()}")
    return "equal"


def fuzz(
    models: int, seed: int = 0, first: int = 0, seconds: float = float("inf")
) -> tuple[Counter[str], list[Finding]]:
    def describe(index: int) -> str:
        return f"--only {seed}:{index} {' '.join(row[0] for row in Net(seed, index).graph.operators)}"

    return try_each(lambda index: compare(seed, index), first, models, seconds=seconds, describe=describe)


def main() -> int:
    args = command_line(__doc__).parse_args()
    if args.only:
        seed, index = map(int, args.only.split(":"))
        print(compare(seed, index))
        return 0
    return tell("random networks", *fuzz(args.models, args.seed, seconds=args.seconds))


if __name__ == "__main__":
    sys.exit(main())
