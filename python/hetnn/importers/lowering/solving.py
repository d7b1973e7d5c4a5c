"""Systems of linear equations, by the factors of their matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.importers.lowering import sizes
from hetnn.importers.lowering.building import Building


def transposed(call: Building, x: Any) -> Any:
    """Stacks of matrices, each turned."""
    rank = len(x.shape)
    return call.create("permute", [x], perm=[*range(rank - 2), rank - 1, rank - 2])


def unit_matrices(call: Building, like: Any) -> Any:
    """Ones on the diagonals of matrices, of a value's shape."""
    n = like.shape[-1]
    if isinstance(n, int):
        return call.broadcast_to(call.constant(np.eye(n), like.dtype), like.shape)
    places = call.create("arange", [], end=n)
    return call.broadcast_to(
        call.cast(call.create("eq", [call.reshape(places, [n, 1]), places]), like.dtype), like.shape
    )


def triangular(call: Building, a: Any, b: Any, upper: bool, unit: bool = False, left: bool = True) -> Any:
    """X of A X = B, or of X A = B; leading axes broadcast."""
    lead = sizes.broadcast(a.shape[:-2], b.shape[:-2])
    a, b = call.broadcast_to(a, [*lead, *a.shape[-2:]]), call.broadcast_to(b, [*lead, *b.shape[-2:]])
    if left:
        return call.create("triangular_solve", [a, b], upper=upper, unit=unit)
    flipped = [transposed(call, a), transposed(call, b)]
    return transposed(call, call.create("triangular_solve", flipped, upper=not upper, unit=unit))


def in_order(call: Building, x: Any, order: Any) -> Any:
    """The rows of matrices in the order that indices [...,M] give."""
    rows = call.reshape(order, [*order.shape, 1])
    return call.create("gather_elements", [x, call.broadcast_to(rows, x.shape)], axis=-2)


def solved(call: Building, factors: Any, order: Any, b: Any, adjoint: bool = False) -> Any:
    """X of A X = B, or with `adjoint` of Aᵀ X = B, from what `lu` gives of A: factors, and the order of its rows."""
    lead = sizes.broadcast(factors.shape[:-2], b.shape[:-2])
    b = call.broadcast_to(b, [*lead, *b.shape[-2:]])
    order = call.broadcast_to(order, [*lead, order.shape[-1]])
    if adjoint:
        x = triangular(call, transposed(call, factors), b, upper=False)
        x = triangular(call, transposed(call, factors), x, upper=True, unit=True)
        return in_order(call, x, call.create_all("sort", [order], {"axis": -1})[1])
    x = triangular(call, factors, in_order(call, b, order), upper=False, unit=True)
    return triangular(call, factors, x, upper=True)
