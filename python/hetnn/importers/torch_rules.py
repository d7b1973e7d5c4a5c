"""Torch overloads that take more than a one-to-one name: a small function each, in the table RULES."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch

from hetnn.errors import Unsupported

if TYPE_CHECKING:
    from hetnn import _core
    from hetnn.importers.symbols import Symbols

Rule = Callable[["Call"], Any]
RULES: dict[str, Rule] = {}
REFINEMENTS: dict[str, Rule] = {}

DTYPES = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.bool: "bool",
}

_NUMPY = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "bool": np.bool_,
}
_WHOLE_END = 2**62


def rule(*overloads: str) -> Callable[[Rule], Rule]:
    """Registers a function for aten overloads that no operator claims one to one."""
    return _register(RULES, overloads)


def refines(*overloads: str) -> Callable[[Rule], Rule]:
    """Registers a function for aten overloads that mean an operator in most calls, but not in all: asked before it."""
    return _register(REFINEMENTS, overloads)


def _register(table: dict[str, Rule], overloads: Sequence[str]) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        for overload in overloads:
            table[f"aten.{overload}"] = function
        return function

    return register


class Importer(Protocol):
    """What a call needs of the importer that makes it."""

    builder: _core.GraphBuilder
    symbols: Symbols

    def dtype(self, dtype: torch.dtype) -> str: ...

    def loc(self, node: torch.fx.Node) -> tuple[str, str, int]: ...


class Call:
    """One node of the exported program: its arguments by name (values, numbers, dims), and what to build with."""

    def __init__(self, importer: Importer, node: torch.fx.Node, names: Sequence[str], args: dict[str, Any]) -> None:
        self._importer = importer
        self._node = node
        self.names = names
        self.args = args

    def __getitem__(self, name: str) -> Any:
        return self.args[name]

    def _meta(self, index: int = 0) -> torch.Tensor:
        value = self._node.meta["val"]
        found = value[index] if isinstance(value, (tuple, list)) else value
        assert isinstance(found, torch.Tensor)
        return found

    def dtype(self, index: int = 0) -> str:
        """The element type that torch computed for an output."""
        return self._importer.dtype(self._meta(index).dtype)

    def shape(self, index: int = 0) -> list[int | str]:
        """The shape that torch computed for an output, as dims."""
        return [self._importer.symbols.dim(size) for size in self._meta(index).shape]

    def type_name(self, dtype: torch.dtype) -> str:
        return self._importer.dtype(dtype)

    def create_all(self, op: str, inputs: Sequence[Any], attrs: dict[str, Any] | None = None) -> list[Any]:
        scope, file, line = self._importer.loc(self._node)
        return list(self._importer.builder.create(op, list(inputs), attrs or {}, self._node.name, scope, file, line))

    def create(self, op: str, inputs: Sequence[Any], **attrs: Any) -> Any:
        return self.create_all(op, inputs, attrs)[0]

    def constant(self, value: Any, dtype: str) -> Any:
        if dtype not in _NUMPY:
            raise Unsupported(f"constants of {dtype} are not supported")
        return self._importer.builder.constant(np.asarray(value, dtype=_NUMPY[dtype]))

    def whole(self, size: int | str) -> Any:
        """A size as an i64 that nodes can compute with: [] when it is fixed, [1] when it depends on symbols."""
        if isinstance(size, int):
            return self.constant(size, "i64")
        return self.create("arange", [], start=size, end=f"({size}) + 1")

    def from_the_front(self, index: Any, size: int | str) -> Any:
        """Indices along an axis of that size, those that count from its end made to count from its start."""
        negative = self.cast(self.create("lt", [index, self.constant(0, "i64")]), "i64")
        return self.create("add", [index, self.create("mul", [negative, self.whole(size)])])

    def cast(self, value: Any, dtype: str) -> Any:
        return value if value.dtype == dtype else self.create("cast", [value], to=dtype)

    def reshape(self, value: Any, shape: Sequence[int | str]) -> Any:
        return value if list(value.shape) == list(shape) else self.create("reshape", [value], shape=list(shape))

    def promote(self, values: Sequence[Any], compare: bool = False) -> list[Any]:
        """Operands in one element type: torch's promotion for comparisons, else the result's own type."""
        wanted = self._common(values) if compare else self.dtype()
        out = []
        for value in values:
            if isinstance(value, (bool, int, float)):
                out.append(self.constant(value, wanted))
            elif isinstance(value, str):
                raise Unsupported(f"the size {value} is used as a value")
            elif value is None or (value.dtype == "bool" and wanted != "bool" and self._is_condition(values, value)):
                out.append(value)
            else:
                out.append(self.cast(value, wanted))
        return out

    def _is_condition(self, values: Sequence[Any], value: Any) -> bool:
        return "where" in str(self._node.target) and value is values[0]

    def _common(self, values: Sequence[Any]) -> str:
        names = {name: dtype for dtype, name in DTYPES.items()}
        tensors = [torch.empty((1,) * len(v.shape), dtype=names[v.dtype]) for v in values if hasattr(v, "dtype")]
        scalars = [v for v in values if isinstance(v, (bool, int, float))]
        result = tensors[0].dtype
        for other in [*tensors[1:], *scalars]:
            result = torch.result_type(torch.empty((1,), dtype=result), other)
        return self.type_name(result)


def _pass(call: Call) -> Any:
    return call.args[call.names[0]]


for _name in (
    "clone.default",
    "alias.default",
    "detach.default",
    "lift_fresh_copy.default",
    "contiguous.default",
    "dropout.default",
    "native_dropout.default",
    "feature_dropout.default",
    "alpha_dropout.default",
):
    REFINEMENTS[f"aten.{_name}"] = _pass


@rule("_to_copy.default", "to.dtype", "to.dtype_layout", "_to_dim_order_copy.default")
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


@refines("slice.Tensor", "slice_copy.Tensor")
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


@refines("cat.default")
def _cat(call: Call) -> Any:
    values = [call.cast(v, call.dtype()) for v in call["tensors"] if list(v.shape) != [0]]
    return values[0] if len(values) == 1 else call.create("concat", values, axis=call["dim"])


@refines("add.Tensor", "sub.Tensor", "add.Scalar", "sub.Scalar")
def _add(call: Call) -> Any:
    op = "add" if ".add." in str(call._node.target) or str(call._node.target).startswith("aten.add") else "sub"
    a, b = call.promote([call["self"], call["other"]])
    if call["alpha"] != 1:
        b = call.create("mul", [b, call.constant(call["alpha"], call.dtype())])
    return call.create(op, [a, b])


@rule("rsub.Scalar", "rsub.Tensor")
def _rsub(call: Call) -> Any:
    b, a = call.promote([call["self"], call["other"]])
    return call.create("sub", [a, b])


@rule("addmm.default")
def _addmm(call: Call) -> Any:
    product = call.create("matmul", [call["mat1"], call["mat2"]])
    if call["alpha"] != 1:
        product = call.create("mul", [product, call.constant(call["alpha"], call.dtype())])
    bias = call["self"]
    if call["beta"] != 1:
        bias = call.create("mul", [bias, call.constant(call["beta"], call.dtype())])
    return call.create("add", [product, bias])


@rule("matmul.default")
def _matmul(call: Call) -> Any:
    a, b = call["self"], call["other"]
    if len(a.shape) == 1:
        a = call.reshape(a, [1, *a.shape])
    if len(b.shape) == 1:
        b = call.reshape(b, [*b.shape, 1])
    return call.reshape(call.create("matmul", [a, b]), call.shape())


@rule("clamp.default", "clip.default", "clamp_min.default", "clamp_max.default")
def _clamp(call: Call) -> Any:
    low, high = call.args.get("min"), call.args.get("max")
    return _limits(call, -math.inf if low is None else float(low), math.inf if high is None else float(high))


def _limits(call: Call, low: float, high: float) -> Any:
    return call.create("clamp", [call.cast(call["self"], call.dtype())], min=low, max=high)


@rule("hardtanh.default")
def _hardtanh(call: Call) -> Any:
    return _limits(call, float(call["min_val"]), float(call["max_val"]))


@rule("relu6.default")
def _relu6(call: Call) -> Any:
    return _limits(call, 0.0, 6.0)


@rule("elu.default")
def _elu(call: Call) -> Any:
    if call["scale"] != 1 or call["input_scale"] != 1:
        inner = call["self"]
        if call["input_scale"] != 1:
            inner = call.create("mul", [inner, call.constant(call["input_scale"], call.dtype())])
        out = call.create("elu", [inner], alpha=float(call["alpha"]))
        return call.create("mul", [out, call.constant(call["scale"], call.dtype())])
    return call.create("elu", [call["self"]], alpha=float(call["alpha"]))


@rule("threshold.default")
def _threshold(call: Call) -> Any:
    x, dtype = call["self"], call.dtype()
    if call["threshold"] == 0 and call["value"] == 0:
        return call.create("relu", [x])
    above = call.create("gt", [x, call.constant(call["threshold"], dtype)])
    return call.create("where", [above, x, call.constant(call["value"], dtype)])


@rule("rrelu.default", "rrelu_with_noise.default", "rrelu_with_noise_functional.default")
def _rrelu(call: Call) -> Any:
    """In evaluation: one slope, the mean of its bounds."""
    slope = (float(call["lower"]) + float(call["upper"])) / 2
    out = call.create("leaky_relu", [call["self"]], negative_slope=slope)
    return [out, None] if isinstance(call._node.meta["val"], (tuple, list)) else out


@refines("leaky_relu.default")
def _leaky_relu(call: Call) -> Any:
    return call.create("leaky_relu", [call["self"]], negative_slope=float(call["negative_slope"]))


@rule(
    "_native_batch_norm_legit_no_training.default",
    "batch_norm.default",
    "native_batch_norm.default",
    "cudnn_batch_norm.default",
)
def _batch_norm(call: Call) -> Any:
    if call.args.get("training"):
        raise Unsupported("batch_norm in training mode; call model.eval() before exporting")
    out = call.create(
        "batch_norm",
        [call["input"], call["weight"], call["bias"], call["running_mean"], call["running_var"]],
        eps=float(call["eps"]),
    )
    return [out, None, None] if isinstance(call._node.meta["val"], (tuple, list)) else out


@rule("layer_norm.default", "native_layer_norm.default")
def _layer_norm(call: Call) -> Any:
    out = call.create(
        "layer_norm",
        [call["input"], call["weight"], call["bias"]],
        axes=len(call["normalized_shape"]),
        eps=float(call["eps"]),
    )
    return [out, None, None] if isinstance(call._node.meta["val"], (tuple, list)) else out


@rule("mean.default", "mean.dim", "sum.default", "sum.dim_IntList")
def _mean_or_sum(call: Call) -> Any:
    op = "mean" if "mean" in str(call._node.target) else "sum"
    axes = call.args.get("dim") or []
    return call.create(
        op, [call.cast(call["self"], call.dtype())], axes=axes, keepdim=bool(call.args.get("keepdim", False))
    )


@rule("max.dim", "min.dim")
def _extreme(call: Call) -> list[Any]:
    """The values; the indices only where nobody reads them."""
    if any(user.args[1] == 1 and user.users for user in call._node.users):
        raise Unsupported("the indices of a maximum or minimum are read")
    op = "reduce_max" if "max" in str(call._node.target) else "reduce_min"
    return [call.create(op, [call["self"]], axes=[call["dim"]], keepdim=call["keepdim"]), None]


@rule("any.default", "any.dim", "any.dims", "all.default", "all.dim", "all.dims")
def _any_or_all(call: Call) -> Any:
    op = "any" if ".any." in f".{str(call._node.target).removeprefix('aten')}" else "all"
    axes = call.args.get("dim")
    axes = [] if axes is None else [axes] if isinstance(axes, int) else axes
    return call.create(op, [call.cast(call["self"], "bool")], axes=axes, keepdim=bool(call.args.get("keepdim", False)))


@rule("max_pool2d_with_indices.default")
def _max_pool_with_indices(call: Call) -> list[Any]:
    return [_max_pool(call), None]


@refines("max_pool2d.default")
def _max_pool(call: Call) -> Any:
    return call.create(
        "max_pool2d",
        [call["self"]],
        kernel=call["kernel_size"],
        stride=call["stride"] or [],
        padding=call["padding"],
        dilation=call["dilation"],
        ceil_mode=call["ceil_mode"],
    )


@refines("avg_pool2d.default")
def _avg_pool(call: Call) -> Any:
    return call.create(
        "avg_pool2d",
        [call["self"]],
        kernel=call["kernel_size"],
        stride=call["stride"] or [],
        padding=call["padding"],
        ceil_mode=call["ceil_mode"],
        count_include_pad=call["count_include_pad"],
        divisor_override=call["divisor_override"] or 0,
    )


@rule("conv2d.padding")
def _conv_padding(call: Call) -> Any:
    if call["padding"] == "valid":
        padding = [0, 0, 0, 0]
    else:
        kernel, dilation = call["weight"].shape[2:], call["dilation"]
        total = [(k - 1) * d for k, d in zip(kernel, [*dilation, *dilation][:2], strict=True)]
        padding = [total[0] // 2, total[1] // 2, total[0] - total[0] // 2, total[1] - total[1] // 2]
    return call.create(
        "conv2d",
        [call["input"], call["weight"], call["bias"]],
        stride=call["stride"],
        padding=padding,
        dilation=call["dilation"],
        groups=call["groups"],
    )


@rule("convolution.default")
def _convolution(call: Call) -> Any:
    """What torch makes of a convolution of any kind when it is asked to decompose all of them."""
    if len(call["weight"].shape) != 4:
        raise Unsupported(f"a convolution over {len(call['weight'].shape) - 2} axes")
    kind = {"output_padding": call["output_padding"]} if call["transposed"] else {}
    return call.create(
        "conv_transpose2d" if call["transposed"] else "conv2d",
        [call["input"], call["weight"], call["bias"]],
        stride=call["stride"],
        padding=call["padding"],
        dilation=call["dilation"],
        groups=call["groups"],
        **kind,
    )


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


@refines("softmax.int", "_softmax.default", "_safe_softmax.default")
def _softmax(call: Call) -> Any:
    return call.create("softmax", [call.cast(call["self"], call.dtype())], axis=call["dim"])


@refines("log_softmax.int", "_log_softmax.default")
def _log_softmax(call: Call) -> Any:
    return call.create("log_softmax", [call.cast(call["self"], call.dtype())], axis=call["dim"])


@rule("scaled_dot_product_attention.default")
def _attention(call: Call) -> Any:
    scale = call["scale"]
    q, k, v, mask = call["query"], call["key"], call["value"], call["attn_mask"]
    if call.args.get("enable_gqa"):
        raise Unsupported("attention with grouped queries")
    shape = call.shape()
    if len(q.shape) == 3:
        q, k, v = (call.reshape(x, [1, *x.shape]) for x in (q, k, v))
    out = call.create(
        "scaled_dot_product_attention",
        [q, k, v, mask],
        is_causal=bool(call["is_causal"]),
        scale=0.0 if scale is None else float(scale),
    )
    return call.reshape(out, shape)


@rule("index_select.default")
def _index_select(call: Call) -> Any:
    return call.create("gather", [call["self"], call["index"]], axis=call["dim"])


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
        total: int | str = 1
        for axis, index in given:
            size = x.shape[axis]
            entry = call.from_the_front(call.cast(index, "i64"), size)
            scaled = entry if flat is None else call.create("mul", [flat, call.whole(size)])
            flat = entry if flat is None else call.create("add", [scaled, entry])
            both = isinstance(total, int) and isinstance(size, int)
            total = total * size if both else f"({total})*({size})"
        before, after = list(x.shape)[: axes[0]], list(x.shape)[axes[-1] + 1 :]
        return call.create("gather", [call.reshape(x, [*before, total, *after]), flat], axis=axes[0])
    raise Unsupported("indexing by these tensors")


@refines("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar")
def _where(call: Call) -> Any:
    a, b = call.promote([call["self"], call["other"]])
    return call.create("where", [call.cast(call["condition"], "bool"), a, b])


@rule("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(call: Call) -> Any:
    x, value = call.promote([call["self"], call["value"]])
    return call.create("where", [call["mask"], value, x])


def _filled(call: Call, value: Any) -> Any:
    shape = call.shape()
    one = call.constant(value, call.dtype())
    return call.create("expand", [one], shape=shape) if shape else one


@rule("full.default", "full_like.default", "new_full.default")
def _full(call: Call) -> Any:
    return _filled(call, call["fill_value"])


@rule("zeros.default", "zeros_like.default", "new_zeros.default", "empty.memory_format", "empty_like.default")
def _zeros(call: Call) -> Any:
    """Zeros; also for memory whose content the model does not rely on, as the noise of rrelu in evaluation."""
    return _filled(call, 0)


@rule("ones.default", "ones_like.default", "new_ones.default")
def _ones(call: Call) -> Any:
    return _filled(call, 1)


@rule("scalar_tensor.default")
def _scalar(call: Call) -> Any:
    return call.constant(call["s"], call.dtype())


@rule("arange.default", "arange.start", "arange.start_step")
def _arange(call: Call) -> Any:
    numbers = [call.args.get("start") or 0, call["end"], call.args.get("step") or 1]
    if any(isinstance(number, float) and not number.is_integer() for number in numbers):
        raise Unsupported("arange over fractions")
    start, end, step = (int(number) if isinstance(number, float) else number for number in numbers)
    return call.create("arange", [], start=start, end=end, step=step, dtype=call.dtype())


@rule("bitwise_not.default")
def _bitwise_not(call: Call) -> Any:
    if call["self"].dtype != "bool":
        raise Unsupported("bitwise_not of integers")
    return call.create("logical_not", [call["self"]])


@refines("bitwise_and.Tensor", "bitwise_or.Tensor", "logical_and.default", "logical_or.default")
def _logical(call: Call) -> Any:
    a, b = call["self"], call["other"]
    target = str(call._node.target)
    if "bitwise" in target and a.dtype != "bool":
        raise Unsupported("bitwise operations of integers")
    return call.create(
        "logical_and" if "_and" in target else "logical_or", [call.cast(a, "bool"), call.cast(b, "bool")]
    )


@rule("linalg_vector_norm.default")
def _vector_norm(call: Call) -> Any:
    if call["ord"] != 2:
        raise Unsupported(f"a vector norm of order {call['ord']}")
    axes = call["dim"] or []
    square = call.create("mul", [call["self"], call["self"]])
    return call.create("sqrt", [call.create("sum", [square], axes=axes, keepdim=bool(call["keepdim"]))])


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
