"""Values that no run may read are refused, whoever computes the operator: a kernel, many threads, the meaning."""

from __future__ import annotations

import numpy as np
import pytest

import hetnn

GATHER = """graph @g {{stage = imported}} (%x: f32[500,64], %i: i64[{n}]) -> (%y) {{
  %y = gather(%x, %i) {{from_end = {from_end}}} : f32[{n},64]
}}
"""


@pytest.mark.parametrize("target", ["cpu", "reference"])
@pytest.mark.parametrize("count", [2, 1000])
def test_an_index_outside_is_refused_and_the_next_run_works(target: str, count: int) -> None:
    exe = hetnn.compile(GATHER.format(n=count, from_end="true"), target, threads=2, progress=False)
    x = np.random.default_rng(1).standard_normal((500, 64)).astype(np.float32)
    good = np.arange(count, dtype=np.int64) % 1000 - 500
    for outside in (500, -501, np.iinfo(np.int64).max, np.iinfo(np.int64).min):
        indices = good.copy()
        indices[-1] = outside
        with pytest.raises(hetnn.InvalidModel, match=f"index {outside} is outside an axis of 500"):
            exe(x, indices)
        np.testing.assert_array_equal(exe(x, good), x[good])


PUT = """graph @g {{stage = imported}} (%x: f32[500,64], %i: i64[{n},64], %u: f32[{n},64]) -> (%y, %z) {{
  %y = scatter_elements(%x, %i, %u) {{axis = 0, from_end = true}} : f32[500,64]
  %z = gather_elements(%x, %i) {{axis = 0, from_end = true}} : f32[{n},64]
}}
"""


@pytest.mark.parametrize("count", [2, 1000])
def test_an_index_of_one_element_outside_is_refused(count: int) -> None:
    exe = hetnn.compile(PUT.format(n=count), threads=2, progress=False)
    generator = np.random.default_rng(2)
    x, update = (generator.standard_normal((rows, 64)).astype(np.float32) for rows in (500, count))
    good = np.arange(count * 64, dtype=np.int64).reshape(count, 64) % 1000 - 500
    wanted = [array.copy() for array in exe.run([x, good, update])]
    for outside in (500, -501, np.iinfo(np.int64).min):
        indices = good.copy()
        indices[-1, 17] = outside
        with pytest.raises(hetnn.InvalidModel, match=f"index {outside} is outside an axis of 500"):
            exe.run([x, indices, update])
        for again, before in zip(exe.run([x, good, update]), wanted, strict=True):
            np.testing.assert_array_equal(again, before)


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_rows_are_counted_from_the_front_alone_where_the_model_says_so(target: str) -> None:
    exe = hetnn.compile(GATHER.format(n=2, from_end="false"), target, progress=False)
    x = np.ones((500, 64), np.float32)
    with pytest.raises(hetnn.InvalidModel, match=r"index -1 is outside an axis of 500; it must be in \[0,500\)"):
        exe(x, np.array([0, -1]))
