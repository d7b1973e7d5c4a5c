"""Resizing along an axis as a product: what each entry of the input gives to each of the result."""

from __future__ import annotations

from typing import Any

import numpy as np


def along(call: Any, x: Any, axis: int, shares: np.ndarray[Any, Any]) -> Any:
    """x with `axis` resized by shares [results, size]: a product with a weight. `call`: a rule's, of any importer."""
    rank = len(x.shape)
    perm = [k for k in range(rank) if k != axis] + [axis]
    y = call.create("matmul", [call.create("permute", [x], perm=perm), call.constant(shares.T, x.dtype)])
    return call.create("permute", [y], perm=[perm.index(k) for k in range(rank)])
