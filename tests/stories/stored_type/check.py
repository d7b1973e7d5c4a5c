"""Casts round to the type as ml_dtypes does, its arrays go in and out, and executables with it are saved and loaded."""

import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

import hetnn
from hetnn.element_types import TYPES, numpy_type

(row,) = (row for row in TYPES if row.name == "f6e2m3")
assert (row.bits, row.is_stored, row.c) == (6, True, "HETNN_F6E2M3"), row
assert numpy_type("f6e2m3") == ml_dtypes.float6_e2m3fn

TEXT = """graph @g {stage = imported} (%x: f32[64], %b: f6e2m3[64]) -> (%q, %y) {
  %q = cast(%x) {to = f6e2m3} : f6e2m3[64]
  %y = cast(%b) {to = f32} : f32[64]
}"""
x = np.linspace(-7.5, 7.5, 64, dtype=np.float32)
every = np.arange(64, dtype=np.uint8).view(ml_dtypes.float6_e2m3fn)
exe = hetnn.compile(TEXT)
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "net.hetnn"
    exe.save(file)
    for each in (exe, hetnn.load(file)):
        q, y = each(x, every)
        assert q.dtype == ml_dtypes.float6_e2m3fn
        np.testing.assert_array_equal(q.astype(np.float32), x.astype(ml_dtypes.float6_e2m3fn).astype(np.float32))
        np.testing.assert_array_equal(y, every.astype(np.float32))
