"""Known numbers taken, repeated and shaped by symbolic sizes, as embeddings of positions are."""

from __future__ import annotations

import numpy as np
import pytest

from importers.onnx_models import agrees, f32, model_of, same_as_reference

SIZE = " ".join(f"{name} = Constant<value_ints = [{n}]>()" for name, n in (("one", 1), ("two", 2), ("zero", 0)))
PLACED = {
    "Slice": "t = Shape<start = 1, end = 2>(x) y = Slice(table, zero, t, one)",
    "Slice from": "t = Shape<start = 1, end = 2>(x) y = Slice(table, t, two, one)",
    "Slice from far": "t = Shape<start = 1, end = 2>(x) n = Add(t, t) m = Add(n, n) y = Slice(table, m, minus, one)",
    "Expand what is cut": "t = Shape<start = 1, end = 2>(x) all = Shape(x) "
    "f = Slice(table, zero, t, one) y = Expand(f, all)",
    "Expand": "b = Shape<start = 0, end = 1>(x) s = Concat<axis = 0>(b, one) y = Expand(table, s)",
    "Reshape": "flat = Reshape(table, minus) t = Shape<start = 1, end = 2>(x) "
    "f = Slice(flat, zero, t) s = Concat<axis = 0>(one, t) y = Reshape(f, s)",
}


@pytest.mark.parametrize("name", PLACED)
def test_numbers_are_placed_by_sizes(name: str) -> None:
    table = "<int64[1,8] table = {5, 6, 7, 8, 9, 10, 11, 12}, int64[1] minus = {-1}>"
    model = model_of(f"agraph (float[b,t] x) => (int64[p,q] y) {table} {{ {SIZE} {PLACED[name]} }}")
    exe = agrees(model, f32(2, 3))
    same_as_reference(exe, model, f32(1, 1))
    assert exe(f32(3, 4)).dtype == np.int64
