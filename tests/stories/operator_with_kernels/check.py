"""The operator runs by its kernel, equal to its meaning, which serves the types that the kernel does not take."""

import numpy as np

import hetnn

for dtype, numpy_type in (("f32", np.float32), ("i64", np.int64)):
    text = f"graph @g {{stage = imported}} (%x: {dtype}[2,3]) -> (%y) {{\n  %y = mirror(%x) : {dtype}[2,3]\n}}"
    x = np.arange(6).reshape(2, 3).astype(numpy_type)
    for target in ("cpu", "reference"):
        np.testing.assert_array_equal(hetnn.compile(text, target)(x), x.ravel()[::-1].reshape(2, 3))
    kernels = [row["kernel"] for row in hetnn.compile(text).profile(x)]
    assert ("meaning" in kernels[0]) == (dtype == "i64"), kernels
