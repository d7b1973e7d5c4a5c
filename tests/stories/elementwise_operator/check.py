"""The new operator computes what its row says, by a kernel and not by its meaning, alone and behind another one."""

import numpy as np

import hetnn

TEXT = """graph @g {stage = imported} (%x: f32[32,64]) -> (%y) {
  %n = neg(%x) : f32[32,64]
  %y = squareplus(%n) : f32[32,64]
}"""

x = np.linspace(-9, 9, 2048, dtype=np.float32).reshape(32, 64)
wanted = (-x + np.sqrt(x * x + 4)) / 2
for fusion in (True, False):
    exe = hetnn.compile(TEXT, fusion=fusion)
    np.testing.assert_allclose(exe(x), wanted, rtol=2e-6, atol=1e-6)
    kernels = {row["node"]: row["kernel"] for row in exe.profile(x)}
    assert len(kernels) == (1 if fusion else 2), kernels
    assert "meaning" not in " ".join(kernels.values()), kernels
