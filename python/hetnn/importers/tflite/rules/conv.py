"""TFLite's convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hetnn.errors import InvalidModel
from hetnn.importers.lowering.convolution import convolve
from hetnn.importers.lowering.sizes import Size, ceil_divide, divide, maximum
from hetnn.importers.tflite.rules.call import Call, rule, static
from hetnn.importers.tflite.rules.weights import takes_integers, weight_and_bias

_SAME, _VALID = 0, 1


def stride_of(call: Call) -> list[int]:
    """Rows and columns from one window to the next. InvalidModel where one is below 1."""
    stride = [int(call.option("StrideH")), int(call.option("StrideW"))]
    if min(stride) < 1:
        raise InvalidModel(f"strides of {stride}; they begin with 1")
    return stride


def _dilation_of(call: Call) -> list[int]:
    dilation = [int(call.option("DilationHFactor", 1)), int(call.option("DilationWFactor", 1))]
    if min(dilation) < 1:
        raise InvalidModel(f"dilations of {dilation}; they begin with 1")
    return dilation


def padding_of(
    call: Call, sizes: Sequence[Size], kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> list[Any]:
    """Elements before every axis, then behind every axis."""
    mode = call.option("Padding")
    if mode == _VALID:
        return [0] * 2 * len(kernel)
    if mode != _SAME:
        raise InvalidModel(f"the padding {mode}; it is 0, SAME, or 1, VALID")
    before: list[Size] = []
    after: list[Size] = []
    for size, k, s, d in zip(sizes, kernel, stride, dilation, strict=True):
        total = maximum((ceil_divide(size, s) - 1) * s + (k - 1) * d + 1 - size, 0)
        before.append(divide(total, 2))
        after.append(total - divide(total, 2))
    return before + after


def _is_integer_transpose(call: Call) -> bool:
    return takes_integers(call, 2, 1, 3)


@rule("CONV_2D", integers=takes_integers)
def _conv(call: Call) -> Any:
    """Weights [out, kh, kw, in / groups]."""
    call.ranked(1, 4)
    channels, of_filter = call.shape(0)[-1], call.shape(1)[-1]
    if isinstance(channels, int) and isinstance(of_filter, int) and (not of_filter or channels % of_filter):
        raise InvalidModel(f"filters of {of_filter} channels on an input of {channels}")
    return _convolved(call, (0, 3, 1, 2), divide(channels, of_filter))


@rule("DEPTHWISE_CONV_2D", integers=takes_integers)
def _depthwise(call: Call) -> Any:
    """Weights [1, kh, kw, channels · multiplier]."""
    call.ranked(1, 4)
    return _convolved(call, (3, 0, 1, 2), call.shape(0)[-1])


def _convolved(call: Call, perm: Sequence[int], groups: Any) -> Any:
    x, stride, dilation = call.first(0), stride_of(call), _dilation_of(call)
    weight, bias = weight_and_bias(call, 0, 1, 2, perm)
    padding = padding_of(call, x.shape[2:], weight.shape[2:], stride, dilation)
    window = {"stride": stride, "dilation": dilation, "padding": padding, "groups": groups}
    y = call.create("conv2d", [x, weight, bias], **window, **call.q())
    return call.placed(call.activated(y), True)


@rule("TRANSPOSE_CONV", integers=_is_integer_transpose)
def _transposed(call: Call) -> Any:
    """The shape of the result, weights [out, kh, kw, in], the input, perhaps biases."""
    call.ranked(1, 4)
    goals = call.integers(0, "the shape of the result")
    if len(goals) != 4:
        raise InvalidModel(f"a result of the shape {goals}, which must have 4 axes")
    x, stride = call.first(2), stride_of(call)
    kernel, size = static(call.shape(1)[1:3], "a kernel"), list(x.shape[2:])
    before: list[Any] = []
    after: list[Any] = []
    more: list[Any] = []
    for axis in range(2):
        whole = stride[axis] * (size[axis] - 1) + kernel[axis]
        # What is cut, as in the convolution of the result that this one is the transpose of.
        total = padding_of(call, [goals[1 + axis]], [kernel[axis]], [stride[axis]], [1])
        before.append(total[0])
        after.append(maximum(whole - total[0] - goals[1 + axis], 0))
        more.append(maximum(goals[1 + axis] - (whole - total[0]), 0))
    if call.typed:
        weight, bias = weight_and_bias(call, 2, 1, 3, (3, 0, 1, 2), filters=1)
        window = {"stride": stride, "padding": [*before, *after], "output_padding": more}
        y = call.create("conv_transpose2d", [x, weight, bias], **window, **call.q())
        return call.placed(call.activated(y), True)
    weight = call.turned(1, (3, 0, 1, 2))
    y = call.create("conv_transpose2d", [x, weight], stride=stride, padding=[*before, *after], output_padding=[0, 0])
    if any(more):
        y = call.create("pad", [y], padding=[0] * 6 + more)
    if call.given(3):
        y = call.create("add", [y, call.reshape(call[3], [call.shape(3)[0], 1, 1])])
    return call.placed(call.activated(y), True)


@rule("CONV_3D")
def _deep(call: Call) -> Any:
    """An input [n, d, h, w, c] and weights [kd, kh, kw, in, out]."""
    call.ranked(0, 5)
    x = call.permuted(call[0], (0, 4, 1, 2, 3))
    call.ranked(1, 5)
    weight = call.turned(1, (4, 3, 0, 1, 2))
    stride = [int(call.option("StrideD")), *stride_of(call)]
    dilation = [int(call.option("DilationDFactor", 1)), *_dilation_of(call)]
    padding = padding_of(call, x.shape[2:], weight.shape[2:], stride, dilation)
    window = {"stride": stride, "dilation": dilation, "padding": padding, "groups": 1}
    y = convolve(call, x, weight, call[2] if call.given(2) else None, window, transposed=False)
    return call.permuted(call.activated(y), (0, 2, 3, 4, 1))
