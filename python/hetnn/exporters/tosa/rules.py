"""Operators on integers as TOSA has them: the formulas are those of docs/numerics.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hetnn.exporters.registry import Rules
from hetnn.exporters.tosa.file import packed
from hetnn.exporters.tosa.schema import number
from hetnn.exporters.tosa.writer import FIRST, LAST, ONE, Factor, Tensor, Writer, factor_of, refuse, rescaled

TOSA: Rules[Any] = Rules("TOSA")
exports = TOSA.exports
# How TOSA rounds what states no rounding, and the operators that have one.
UNSTATED = "single"
ROUNDED = frozenset(
    {"conv2d", "linear", "avg_pool2d", "adaptive_avg_pool2d", "max_pool2d", "quantize", "identity", "relu"}
    | {"add", "sub", "mul", "reshape", "permute", "pad", "slice"}
)


class Call:
    """A node: its operands with how they stand for reals, and its result's type."""

    def __init__(self, writer: Writer, row: dict[str, Any], inputs: Sequence[Tensor | None]) -> None:
        self.writer, self.row, self.inputs = writer, row, list(inputs)
        self.attrs: dict[str, Any] = row["attrs"]
        (given,) = row["output_types"]
        self.dtype: str = given["dtype"]
        self.shape: list[int] = given["shape"]
        self.result = given["quant"]
        self.quants = [part and part["quant"] for part in row["input_types"]]
        self.rounding = self.attrs.get("q_rounding", UNSTATED)
        if self.rounding == "half_even_fp32":
            self.rounding = "single"

    def __getitem__(self, k: int) -> Tensor:
        value = self.inputs[k]
        assert value is not None
        return value

    def optional(self, k: int) -> Tensor | None:
        """Input k, where it is there."""
        return self.inputs[k] if k < len(self.inputs) else None

    def scale(self, k: int = 0) -> float:
        """That of input k. Unsupported for an operand without one, or with several."""
        return float(self._of_tensor(self.quants[k])["scales"][0])

    def zero(self, k: int = 0) -> int:
        """The zero point of input k."""
        return int(self._of_tensor(self.quants[k])["zero_points"][0])

    @property
    def ends(self) -> tuple[float, int]:
        """Scale and zero point of the result."""
        quant = self._of_tensor(self.result)
        return float(quant["scales"][0]), int(quant["zero_points"][0])

    def _of_tensor(self, quant: Any) -> Any:
        if quant is None or len(quant["scales"]) != 1:
            refuse("of values that are no integers with one scale; TOSA's integers have one")
        return quant

    def integers(self, name: str) -> list[int]:
        """An attribute as numbers, two of them for height and width where one is given."""
        return [int(part) for part in self.attrs[name]]

    def last(self, k: int = 0) -> Tensor:
        """Input k, an image, channels last."""
        return self.writer.transpose(self[k], LAST)

    def first(self, y: Tensor) -> Tensor:
        """An image of channels last as the graph has it."""
        return self.writer.transpose(y, FIRST)

    def of_elements(self, write: Callable[..., Tensor], *operands: Tensor) -> Tensor:
        """An operator to which the order of axes is nothing, in the order that an operand was made in.

        write: given the operands, of equal rank, and the order that the result is transposed by.
        """
        orders = [self.writer.turned(x) for x in operands]
        plain = tuple(range(len(self.shape)))
        order = next((each for each in orders if each != plain and len(each) == len(plain)), plain)
        return self.writer.transpose(write(*(self.writer.in_order(x, order) for x in operands), order=order), order)


# Windows.

_MOST_PADDED = 3  # the longest step at which all processors pad an image


def _window(
    call: Call, x: Tensor, kernel: list[int], fill: int | None, ceil: bool = False, more: bool = False
) -> tuple[Tensor, dict[str, Any]]:
    """The image and attributes of a window that ends where the image does: TOSA has no rest behind the last one.

    fill: what the padding counts as; an image that was padded by it is read as it was. None: it does not count.
    more: a rest is padded to one window more, where few pixels pad it, rather than cut off.
    """
    stride, dilation = _steps(call, kernel)
    given = call.integers("padding")
    top, left = given[:2] if len(given) == 4 else given
    x, padded = (x, [0] * 4) if fill is None else call.writer.unpadded(x, fill)
    before, sizes = [top + padded[0], left + padded[2]], list(x.shape[1:3])
    behind = [0, 0]
    for k, size in enumerate(sizes):
        behind[k] = (call.shape[2 + k] - 1) * stride[k] + (kernel[k] - 1) * dilation[k] + 1 - size - before[k]
        if behind[k] < 0 and more and stride[k] <= min(kernel[k], _MOST_PADDED):
            behind[k] += stride[k]
        elif behind[k] < 0:
            sizes[k], behind[k] = size + behind[k], 0
    if ceil and any(part >= size for part, size in zip(behind, kernel, strict=True)):
        refuse("a window that lies in the padding as a whole")
    x = call.writer.sliced(x, [0, 0, 0, 0], [x.shape[0], *sizes, x.shape[3]])
    told: dict[str, Any] = {"Pad": [before[0], behind[0], before[1], behind[1]], "Stride": stride}
    return x, {**told, "Dilation": dilation} if "dilation" in call.attrs else told


def _counted(call: Call, kind: str, given: list[Tensor | str], told: dict[str, Any]) -> Tensor:
    """A pool, without the windows that are more than the node's."""
    (x, *_), pad = given, told["Pad"]
    assert isinstance(x, Tensor)
    sizes = [
        (x.shape[1 + k] + sum(pad[2 * k : 2 * k + 2]) - told["Kernel"][k]) // told["Stride"][k] + 1 for k in (0, 1)
    ]
    n, c, height, width = call.shape
    y = call.writer.add(kind, given, x.dtype, [n, *sizes, c], **told)
    return call.writer.sliced(y, [0] * 4, [n, height, width, c])


def _steps(call: Call, kernel: list[int]) -> tuple[list[int], list[int]]:
    return call.integers("stride") or kernel, call.integers("dilation") if "dilation" in call.attrs else [1, 1]


def _whole(call: Call, weight: Tensor) -> Tensor:
    """Filters of single pixels that leave a rest at the image's end, with zeros where they would lie on it.

    A filter that is larger costs less than an image that is cut.
    """
    assert weight.array is not None
    kernel = list(weight.shape[2:])
    stride, _ = _steps(call, kernel)
    padding = call.integers("padding")
    if kernel != [1, 1] or any(padding):
        return weight
    rests = [
        size - ((goal - 1) * step + 1)
        for size, goal, step in zip(call[0].shape[2:], call.shape[2:], stride, strict=True)
    ]
    if not any(rests):
        return weight
    array = np.pad(weight.array, [(0, 0), (0, 0), *((0, rest) for rest in rests)])
    return Tensor(call.writer.fresh(weight.name), weight.dtype, tuple(array.shape), array)


def _factors(call: Call, divisor: int = 1) -> list[Factor]:
    """From sums to the result, for each filter or for all."""
    weights = call.quants[1]
    if weights is None:
        refuse("with weights that are no integers with scales")
    return [factor_of(call.scale() * float(scale) / call.ends[0], divisor) for scale in weights["scales"]]


def _filters(call: Call) -> tuple[Tensor, Tensor, int]:
    """Weights, their zero point, and the bias in the scale of the sums."""
    weight, given = call[1], call.quants[1]
    if weight.array is None:
        refuse("with weights that are computed")
    zeros = set(given["zero_points"])
    if len(zeros) != 1 or (given["scales"][1:] and given["axis"] != 0):
        refuse("with weights of several zero points, or scales of another axis than that of filters")
    wide = "i48" if call[0].dtype == "i16" else "i32"
    bias = call.optional(2)
    values: Any = np.zeros(weight.shape[0], np.int64)
    if bias is not None:
        if bias.array is None or call.quants[2] is None:
            refuse("with a bias that is computed")
        scales = np.array(call.quants[2]["scales"]) / (call.scale() * np.array(given["scales"]))
        values = np.where(np.abs(scales - 1) > 1e-6, np.rint(bias.array * scales), bias.array).astype(np.int64)
    return weight, call.writer.constant(values, wide), int(zeros.pop())


def _sums(call: Call, kind: str, x: Tensor, weight: Tensor, shape: list[int], told: dict[str, Any]) -> Tensor:
    """The convolution's sums, and what they are rescaled to."""
    _, bias, zero = _filters(call)
    acc = bias.dtype
    given = [x, weight, bias, call.writer.zero(call.zero(), x.dtype), call.writer.zero(zero, weight.dtype)]
    kinds = {"AccType": number("DType", {"i32": "INT32", "i48": "INT48"}[acc]), "LocalBound": False}
    sums = call.writer.add(kind, given, acc, shape, **told, **kinds)
    divisor = int(call.attrs.get("q_divisor", 1))
    return call.writer.rescale(sums, _factors(call, divisor), (0, call.ends[1]), call.dtype, call.rounding)


@exports("conv2d")
def _conv2d(call: Call) -> Tensor:
    weight, groups = call[1], int(call.attrs["groups"])
    if weight.array is None:
        refuse("with weights that are computed")
    weight = _whole(call, weight)
    filters, channels = weight.shape[:2]
    x, told = _window(call, call.last(), list(weight.shape[2:]), call.zero())
    n, _, height, width = call.shape
    if groups == 1:
        turned = call.writer.transpose(weight, LAST)
        return call.first(_sums(call, "CONV2D", x, turned, [n, height, width, filters], told))
    if channels != 1 or groups != x.shape[3]:
        refuse(f"with {groups} groups of {channels} channels: TOSA has one group, or one for each channel")
    assert weight.array is not None
    by_channel = weight.array.reshape(groups, filters // groups, *weight.shape[2:]).transpose(2, 3, 0, 1)
    turned = call.writer.constant(by_channel, weight.dtype)
    return call.first(_sums(call, "DEPTHWISE_CONV2D", x, turned, [n, height, width, filters], told))


@exports("linear")
def _linear(call: Call) -> Tensor:
    """A convolution of single pixels."""
    weight, rows = call[1], int(np.prod(call.shape[:-1]))
    x = call.writer.reshape(call[0], [rows, 1, 1, weight.shape[1]])
    turned = call.writer.reshape(weight, [weight.shape[0], 1, 1, weight.shape[1]])
    told: dict[str, Any] = {"Pad": [0] * 4, "Stride": [1, 1], "Dilation": [1, 1]}
    y = _sums(call, "CONV2D", x, turned, [rows, 1, 1, weight.shape[0]], told)
    return call.writer.reshape(y, call.shape)


def _same_scale(call: Call) -> None:
    if call.quants[0] != call.result:
        refuse("from one scale to another")


def _low(dtype: str) -> int:
    return int(np.iinfo({"i8": np.int8, "i16": np.int16}[dtype]).min)


@exports("max_pool2d")
def _max_pool2d(call: Call) -> Tensor:
    if any(part != 1 for part in call.integers("dilation")):
        refuse("with gaps in the window")
    kernel = call.integers("kernel")
    x, told = _window(call, call.last(), kernel, _low(call[0].dtype), bool(call.attrs["ceil_mode"]), more=True)
    told.pop("Dilation")
    told.update(Kernel=kernel, NanMode=number("NanPropagationMode", "PROPAGATE"))
    return call.first(_rescaled(call, _counted(call, "MAX_POOL2D", [x], told)))


@exports("avg_pool2d", "adaptive_avg_pool2d")
def _avg_pool2d(call: Call) -> Tensor:
    """Of the integers with their zero point, so that halves round as hetnn's do."""
    _same_scale(call)
    x = call.last()
    if call.row["op"] == "adaptive_avg_pool2d":
        kernel = [size // goal for size, goal in zip(x.shape[1:3], call.shape[2:], strict=True)]
        if any(size % goal for size, goal in zip(x.shape[1:3], call.shape[2:], strict=True)):
            refuse("with windows of several sizes")
        told: dict[str, Any] = {"Pad": [0] * 4, "Stride": kernel}
    else:
        kernel = call.integers("kernel")
        if call.attrs["divisor_override"] or (call.attrs["count_include_pad"] and any(call.integers("padding"))):
            refuse("with a divisor that is not the number of pixels")
        x, told = _window(call, x, kernel, None, bool(call.attrs["ceil_mode"]))
    n, c, height, width = call.shape
    given: list[Tensor | str] = [x, *(call.writer.zero(0, x.dtype) for _ in range(2))]
    kinds = {"Kernel": kernel, "AccType": number("DType", "INT32")}
    return call.first(call.writer.add("AVG_POOL2D", given, x.dtype, [n, height, width, c], **told, **kinds))


# Elements by themselves.


def _rescaled(call: Call, y: Tensor) -> Tensor:
    """From the scale of the first operand to that of the result."""
    scale, zero = call.ends
    if (call.scale(), call.zero(), y.dtype) == (scale, zero, call.dtype):
        return y
    factor = ONE if call.scale() == scale else factor_of(call.scale() / scale)
    ends = call.zero(), zero
    return call.of_elements(lambda x, order: call.writer.rescale(x, [factor], ends, call.dtype, call.rounding), y)


@exports("quantize", "identity", "bitcast")
def _rescale(call: Call) -> Tensor:
    if call.row["op"] == "bitcast":
        if call[0].dtype != call.dtype:
            refuse("to another element type")
        return call[0]
    return _rescaled(call, call[0])


def _clamped(call: Call, x: Tensor, low: float, high: float) -> Tensor:
    """Limits in steps of the operand."""
    ends: Any = np.iinfo({"i8": np.int8, "i16": np.int16}[x.dtype])
    steps = [np.clip(np.rint(bound / call.scale()) + call.zero(), ends.min, ends.max) for bound in (low, high)]
    low_bytes, high_bytes = (packed(np.array([int(step)]), x.dtype) for step in steps)
    told = {"MinVal": low_bytes, "MaxVal": high_bytes, "NanMode": number("NanPropagationMode", "PROPAGATE")}
    return call.of_elements(lambda x, order: call.writer.add("CLAMP", [x], x.dtype, x.shape, **told), x)


@exports("relu")
def _relu(call: Call) -> Tensor:
    return _rescaled(call, _clamped(call, call[0], 0, np.inf))


@exports("clamp")
def _clamp(call: Call) -> Tensor:
    _same_scale(call)
    return _clamped(call, call[0], float(call.attrs["min"]), float(call.attrs["max"]))


def _alike(call: Call) -> list[Tensor]:
    """Both operands of one rank."""
    rank = len(call.shape)
    return [call.writer.reshape(call[k], [1] * (rank - len(call[k].shape)) + list(call[k].shape)) for k in (0, 1)]


def _broadcast(*operands: Tensor) -> list[int]:
    return list(np.broadcast_shapes(*(x.shape for x in operands)))


_FEW_BITS = 15


def _of_equal_scales(call: Call, most: float) -> tuple[int, str] | None:
    """Bits that operands gain, and how the result is rounded, with which every sum of bytes is as with 20 bits:
    compilers for processors that add bytes know forms of at most 15."""
    scale, _ = call.ends
    if call.scale(0) != call.scale(1) or call[0].dtype != "i8":
        return None
    sums = np.arange(-510, 511)
    wanted = rescaled(sums << 19, factor_of(2 * most / (scale * (1 << 20))), call.rounding)
    factor = factor_of(2 * most / (scale * (1 << _FEW_BITS)))
    for rounding in ("double", "single"):
        if np.array_equal(rescaled(sums << (_FEW_BITS - 1), factor, rounding), wanted):
            return _FEW_BITS, rounding
    return None


def _rounds_alike(call: Call, factors: Sequence[Factor], leave: Factor, bits: int) -> bool:
    """Whether every sum of two bytes is the same where an operand is rounded once, with its bits to the left in its
    factor, as where it is rounded twice."""
    if call.rounding != "double" or all(factor.exponent >= 0 for factor in factors):
        return True
    if call[0].dtype != "i8":
        return False
    steps = [np.arange(-128, 128) - call.zero(k) for k in (0, 1)]
    once = [rescaled(v, factor, "double", bits) for v, factor in zip(steps, factors, strict=True)]
    twice = [rescaled(v << bits, factor, "double") for v, factor in zip(steps, factors, strict=True)]
    join = np.add if call.row["op"] == "add" else np.subtract
    ends = (rescaled(join.outer(*operands), leave, call.rounding) for operands in (once, twice))
    return np.array_equal(*ends)


@exports("add", "sub")
def _sum(call: Call) -> Tensor:
    """In steps of twice the larger scale, with 20 bits more, or 15 of i16."""
    most = max(call.scale(0), call.scale(1))
    bits, rounding = _of_equal_scales(call, most) or (15 if call[0].dtype == "i16" else 20, call.rounding)
    scale, zero = call.ends
    leave = factor_of(2 * most / (scale * (1 << bits)))
    factors = [factor_of(call.scale(k) / (2 * most)) for k in (0, 1)]
    once = _rounds_alike(call, factors, leave, bits)
    kind = "ADD" if call.row["op"] == "add" else "SUB"

    def step(x: Tensor, k: int) -> Tensor:
        if once or factors[k].exponent >= 0:
            return call.writer.rescale(x, [factors[k]], (call.zero(k), 0), "i32", call.rounding, bits)
        whole = call.writer.rescale(x, [ONE], (call.zero(k), 0), "i32", "single")
        places = call.writer.constant(np.full([1] * len(x.shape), bits), "i32")
        wide = call.writer.add("LOGICAL_LEFT_SHIFT", [whole, places], "i32", x.shape)
        return call.writer.rescale(wide, [factors[k]], (0, 0), "i32", call.rounding)

    def write(*operands: Tensor, order: Sequence[int]) -> Tensor:
        common = [step(x, k) for k, x in enumerate(operands)]
        out = call.writer.add(kind, common, "i32", _broadcast(*operands))
        return call.writer.rescale(out, [leave], (0, zero), call.dtype, rounding)

    return call.of_elements(write, *_alike(call))


@exports("mul")
def _mul(call: Call) -> Tensor:
    scale, zero = call.ends
    leave = factor_of(call.scale(0) * call.scale(1) / scale)

    def write(*operands: Tensor, order: Sequence[int]) -> Tensor:
        steps = [call.writer.rescale(x, [ONE], (call.zero(k), 0), "i32", "single") for k, x in enumerate(operands)]
        out = call.writer.add("MUL", [*steps, call.writer.constant([0], "i8")], "i32", _broadcast(*operands))
        return call.writer.rescale(out, [leave], (0, zero), call.dtype, call.rounding)

    return call.of_elements(write, *_alike(call))


@exports("lookup")
def _lookup(call: Call) -> Tensor:
    if call[0].dtype != "i8" or call.dtype != "i8":
        refuse("of other integers than i8")
    table = call.writer.constant(np.asarray(call.attrs["table"]).reshape(-1), "i8")
    return call.of_elements(lambda x, order: call.writer.add("TABLE", [x, table], "i8", x.shape), call[0])


# Movement.


@exports("upsample_nearest2d")
def _upsample(call: Call) -> Tensor:
    """Each pixel so many times: places of the image's middle, so that all processors have the form."""
    _same_scale(call)
    x = call.last()
    times = [goal // size for goal, size in zip(call.shape[2:], x.shape[1:3], strict=True)]
    if any(goal % size for goal, size in zip(call.shape[2:], x.shape[1:3], strict=True)):
        refuse("to sizes that are no multiples")
    n, c, height, width = call.shape
    scale = [part for each in times for part in (2 * each, 2)]
    ends = scale, [1 - each for each in times], [each - 1 for each in times]
    given: list[Tensor | str] = [x, *(call.writer.sizes(sizes) for sizes in ends)]
    mode = number("ResizeMode", "NEAREST")
    return call.first(call.writer.add("RESIZE", given, x.dtype, [n, height, width, c], Mode=mode))


@exports("reshape")
def _reshape(call: Call) -> Tensor:
    return _rescaled(call, call.writer.reshape(call[0], call.shape))


@exports("permute")
def _permute(call: Call) -> Tensor:
    perm = [part % len(call.shape) for part in call.integers("perm")]
    return _rescaled(call, call.writer.transpose(call[0], perm))


@exports("concat")
def _concat(call: Call) -> Tensor:
    if any(quant != call.result for quant in call.quants):
        refuse("of several scales")
    axis = int(call.attrs["axis"]) % len(call.shape)

    def write(*operands: Tensor, order: Sequence[int]) -> Tensor:
        shape = [call.shape[k] for k in np.argsort(order)]
        return call.writer.add("CONCAT", operands, call.dtype, shape, Axis=order[axis])

    return call.of_elements(write, *(call[k] for k in range(len(call.inputs))))


@exports("pad")
def _pad(call: Call) -> Tensor:
    amounts, rank = call.integers("padding"), len(call.shape)
    if call.attrs["mode"] != "constant" or min(amounts, default=0) < 0:
        refuse("with mirrored elements, or cut")
    ends: Any = np.iinfo({"i8": np.int8, "i16": np.int16}[call.dtype])
    value = int(np.clip(np.rint(call.attrs["value"] / call.scale()) + call.zero(), ends.min, ends.max))

    def write(x: Tensor, order: Sequence[int]) -> Tensor:
        axes = np.argsort(order).tolist()
        pairs = [amounts[k + side * rank] for k in axes for side in (0, 1)]
        return call.writer.pad(x, pairs, value)

    return _rescaled(call, call.of_elements(write, call[0]))


@exports("slice")
def _slice(call: Call) -> Tensor:
    if call.attrs["step"] != 1:
        refuse("with a step")
    axis, size = int(call.attrs["axis"]) % len(call.shape), call[0].shape
    start = int(call.attrs["start"])
    start = max(0, min(start + size[axis] if start < 0 else start, size[axis]))

    def write(x: Tensor, order: Sequence[int]) -> Tensor:
        axes = np.argsort(order).tolist()
        return call.writer.sliced(x, [start if k == axis else 0 for k in axes], [call.shape[k] for k in axes])

    return _rescaled(call, call.of_elements(write, call[0]))
