"""Torch overloads of arithmetic, logic and reductions."""

from __future__ import annotations

from typing import Any

from hetnn.errors import Unsupported
from hetnn.importers.torch_rules.call import Call, rule


@rule("add.Tensor", "sub.Tensor", "add.Scalar", "sub.Scalar")
def _add(call: Call) -> Any:
    op = "add" if ".add." in str(call._node.target) or str(call._node.target).startswith("aten.add") else "sub"
    a, b = call["self"], call["other"]
    if call["alpha"] != 1:
        b = b * call["alpha"] if isinstance(b, (int, float)) else call.elementwise("mul", [b, call["alpha"]])
    return call.elementwise(op, [a, b])


@rule("rsub.Scalar", "rsub.Tensor")
def _rsub(call: Call) -> Any:
    taken = call["self"] if call["alpha"] == 1 else call.elementwise("mul", [call["self"], call["alpha"]])
    return call.elementwise("sub", [call["other"], taken])


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


@rule("bitwise_not.default")
def _bitwise_not(call: Call) -> Any:
    if call["self"].dtype != "bool":
        raise Unsupported("bitwise_not of integers")
    return call.create("logical_not", [call["self"]])


@rule("bitwise_and.Tensor", "bitwise_or.Tensor")
def _bitwise(call: Call) -> Any:
    a, b = call["self"], call["other"]
    if a.dtype != "bool":
        raise Unsupported("bitwise operations of integers")
    return call.create("logical_and" if "_and" in str(call._node.target) else "logical_or", [a, call.cast(b, "bool")])


@rule("linalg_vector_norm.default")
def _vector_norm(call: Call) -> Any:
    if call["ord"] != 2:
        raise Unsupported(f"a vector norm of order {call['ord']}")
    axes = call["dim"] or []
    square = call.create("mul", [call["self"], call["self"]])
    return call.create("sqrt", [call.create("sum", [square], axes=axes, keepdim=bool(call["keepdim"]))])
