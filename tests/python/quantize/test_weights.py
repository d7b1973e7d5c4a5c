"""Weights as integers: scales of blocks."""

from __future__ import annotations

import numpy as np

from hetnn.quantization.weights import block_scales


def test_scales_of_blocks_are_halves_where_these_hold_them() -> None:
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((8, 70))
    scales = block_scales(weight, 32, 7)
    np.testing.assert_array_equal(scales.astype(np.float16).astype(np.float64), scales)
    # A layer with a block too small for them keeps all as they are.
    weight[3, :32] *= 1e-6
    tiny = block_scales(weight, 32, 7)
    assert (tiny[3, :32] > 0).all()
    assert (tiny[3, :32] < 1e-6).all()
    assert (tiny.astype(np.float16) != tiny).any()
