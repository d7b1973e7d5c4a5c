"""Torch overloads whose results have sizes that depend on values, and values that become sizes."""

from __future__ import annotations

from typing import Any

from hetnn.importers.lowering.sizes import product
from hetnn.importers.torch.rules.call import Call, rule


def compressed(call: Call, x: Any, mask: Any) -> Any:
    """The elements of x, or its parts along the first axes, at which the mask of those axes is true."""
    inner = list(x.shape)[len(mask.shape) :]
    flat = call.reshape(x, [product(mask.shape), *inner])
    picked = call.create("compress", [flat, call.reshape(mask, [product(mask.shape)])], count=call.found_size())
    return call.reshape(picked, call.shape())


@rule("_local_scalar_dense.default", "item.default")
def _item(call: Call) -> Any:
    x = call.reshape(call["self"], [])
    if not call.finds_sizes:  # a real or a truth value
        return x
    number = call.create("read_size", [call.cast(x, "i64")], sizes=[call.found_size()])
    return x if x.dtype == "bool" else number  # of a truth torch makes a comparison of a size


@rule("nonzero.default")
def _nonzero(call: Call) -> Any:
    return call.reshape(call.create("nonzero", [call["self"]], count=call.found_size()), call.shape())


@rule("masked_select.default")
def _masked_select(call: Call) -> Any:
    return compressed(call, *call.broadcast(call["self"], call["mask"]))


@rule("_unique2.default", "unique_dim.default", "unique_consecutive.default", "unique_dim_consecutive.default")
def _unique(call: Call) -> list[Any]:
    x, axis = call["self"], call.args.get("dim")
    flat = call.reshape(x, [product(x.shape)]) if axis is None else x
    attrs = {"axis": axis or 0, "count": call.found_size(), "neighbours": "consecutive" in call.target}
    y, _, inverse, counts = call.create_all("unique", [flat], attrs)
    return [y, call.reshape(inverse, x.shape) if axis is None else inverse, counts]
