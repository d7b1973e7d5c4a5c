"""ONNX convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.convolution import convolve
from hetnn.importers.lowering.equal_sizes import with_sizes
from hetnn.importers.lowering.sizes import Size, ceil_divide, divide, maximum
from hetnn.importers.onnx.rules.call import Call, rule


def window_padding(
    call: Call, sizes: Sequence[Size], kernel: Sequence[Size], stride: Sequence[int], dilation: Sequence[int]
) -> Sequence[Size]:
    """Elements before every axis, then behind every axis, as `auto_pad` or `pads` say."""
    mode = call.attr("auto_pad", "NOTSET")
    if mode in ("NOTSET", ""):
        return [int(p) for p in call.attr("pads") or [0] * 2 * len(kernel)]
    if mode == "VALID":
        return [0] * 2 * len(kernel)
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise InvalidModel(f"auto_pad '{mode}'")
    if len(sizes) != len(kernel):
        raise InvalidModel(f"a window of {len(kernel)} axes over an input that has {len(sizes)}")
    before: list[Size] = []
    after: list[Size] = []
    for size, k, s, d in zip(sizes, kernel, stride, dilation, strict=True):
        spans = (ceil_divide(size, s) - 1) * s
        total = maximum((k - 1) * d + 1 - (size - spans), 0)
        small = divide(total, 2)
        large = total - small
        before.append(small if mode == "SAME_UPPER" else large)
        after.append(large if mode == "SAME_UPPER" else small)
    return before + after


def fixed(padding: Sequence[Size]) -> list[int] | None:
    """The padding; None where it depends on symbols."""
    numbers = [p for p in padding if isinstance(p, int)]
    return numbers if len(numbers) == len(padding) else None


def padded(call: Call, x: Any, padding: Sequence[Size], value: float) -> Any:
    """Images with so much of a value around them."""
    count = len(padding) // 2
    return call.create("pad", [x], padding=[0, 0, *padding[:count], 0, 0, *padding[count:]], value=value)


def kernel_of(call: Call, weight: Any, may_be_open: bool = False) -> list[Any]:
    """The kernel's size along each axis, that of the weights. InvalidModel where `kernel_shape` says another one."""
    kernel = list(weight.shape[2:]) if may_be_open else call.static_shape(weight, "a kernel")[2:]
    said = call.attr("kernel_shape")
    if said is not None and list(said) != kernel:
        raise InvalidModel(f"kernel_shape {list(said)} for weights {list(weight.shape)}")
    return kernel


def _weight_of(call: Call, filters: int, channels: int) -> Any:
    """The weights, whose open sizes are those of `kernel_shape`, the bias (axis `filters`) and the input."""
    weight, said = call[1], call.attr("kernel_shape")
    rank, groups = len(weight.shape), int(call.attr("group"))
    kernel = said if said is not None and len(said) == rank - 2 else [None] * (rank - 2)
    sizes: list[Size | None] = [None, None, *kernel]
    for axis, port, other in ((filters, 2, 0), (channels, 0, 1)):
        if call.given(port) and len(call[port].shape) > other:
            sizes[axis] = call[port].shape[other]
    sizes[1] = None if sizes[1] is None else divide(sizes[1], groups)
    return with_sizes(call, weight, [goal if isinstance(goal, int) else None for goal in sizes])


def _windows(call: Call, weight: Any, may_be_open: bool = False) -> tuple[list[Any], list[int], list[int]]:
    """Kernel, stride and dilation along each axis."""
    kernel = kernel_of(call, weight, may_be_open)
    if len(kernel) not in (1, 2, 3):
        raise Unsupported(f"a convolution over {len(kernel)} axes")
    ones = [1] * len(kernel)
    return kernel, call.attr("strides") or ones, call.attr("dilations") or ones


def convolve_node(call: Call, x: Any, weight: Any, bias: Any, groups: int | None = None) -> Any:
    """The node's convolution; `groups`: into how many its channels are divided, if not as the node says."""
    kernel, stride, dilation = _windows(call, weight, may_be_open=True)
    groups = int(call.attr("group")) if groups is None else groups
    x = with_sizes(call, x, [None, weight.shape[1] * groups, *[None] * len(kernel)])
    bias = None if bias is None else with_sizes(call, bias, [weight.shape[0]])
    asked = window_padding(call, x.shape[2:], kernel, stride, dilation)
    padding = fixed(asked)
    if padding is None:
        x, padding = padded(call, x, asked, 0), [0] * len(asked)
    window = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return convolve(call, x, weight, bias, window, transposed=False)


@rule("Conv")
def _conv(call: Call) -> Any:
    return convolve_node(call, call[0], _weight_of(call, filters=0, channels=1), call.optional(2))


@rule("ConvTranspose")
def _conv_transpose(call: Call) -> Any:
    weight = _weight_of(call, filters=1, channels=0)
    kernel, stride, dilation = _windows(call, weight, may_be_open=True)
    x = with_sizes(call, call[0], [None, weight.shape[0], *[None] * len(kernel)])
    extra: list[Size] = [int(p) for p in call.attr("output_padding") or [0] * len(kernel)]
    groups, bias = int(call.attr("group")), call.optional(2)
    window = {"stride": stride, "dilation": dilation, "groups": groups}
    asked = _transposed_padding(call, x, kernel, stride, dilation, extra)
    padding, more = fixed(asked), fixed(extra)
    if padding is not None and more is not None:
        window.update(padding=padding, output_padding=more)
        return convolve(call, x, weight, bias, window, transposed=True)
    # Whole, then cut, or grown behind.
    none = [0] * len(kernel)
    window.update(padding=[0] * 2 * len(kernel), output_padding=none)
    y = convolve(call, x, weight, None, window, transposed=True)
    count = len(kernel)
    for k, goal in enumerate(_goals(call, x, stride) or []):
        # Axis by axis: each then has the size that is asked for, which the terms of what is cut do not show.
        cut: list[Size] = [0 for _ in asked]
        cut[k], cut[count + k] = -asked[k], extra[k] - asked[count + k]
        grown = padded(call, y, cut, 0)
        y = with_sizes(call, grown, [goal if axis == 2 + k else None for axis in range(2 + count)])
    return y if bias is None else call.create("add", [y, call.reshape(bias, [bias.shape[0], *[1] * len(kernel)])])


def _goals(call: Call, x: Any, stride: Sequence[int]) -> list[Size] | None:
    """The sizes that the result is to have; None where its padding is given instead."""
    if call.attr("output_shape"):
        return [int(size) for size in call.attr("output_shape")]
    if call.attr("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER"):
        return [size * s for size, s in zip(x.shape[2:], stride, strict=True)]
    return None


def _transposed_padding(
    call: Call, x: Any, kernel: Sequence[Size], stride: Sequence[int], dilation: Sequence[int], extra: list[Size]
) -> list[Size]:
    """What is cut from the result; where more is asked than there is, `extra` grows instead."""
    mode, wanted = call.attr("auto_pad", "NOTSET"), _goals(call, x, stride)
    if wanted is None:
        return [int(p) for p in call.attr("pads") or [0] * 2 * len(kernel)]
    before: list[Size] = []
    after: list[Size] = []
    for k, (size, goal) in enumerate(zip(x.shape[2:], wanted, strict=True)):
        whole = stride[k] * (size - 1) + (extra[k] + ((kernel[k] - 1) * dilation[k] + 1))
        total = whole - goal
        if total != (cut := maximum(total, 0)):
            extra[k] = extra[k] + maximum(-total, 0)
        small = divide(cut, 2)
        large = cut - small
        before.append(small if mode == "SAME_UPPER" else large)
        after.append(large if mode == "SAME_UPPER" else small)
    return before + after
