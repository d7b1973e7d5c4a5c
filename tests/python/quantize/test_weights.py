"""Weights as integers: scales of blocks, and rounding by what a layer reads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hetnn.quantization import rounding
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


def test_rounding_by_few_samples_is_no_worse_than_to_the_nearest() -> None:
    """Places of a sample are nearly the same, as words of a sentence: 40 samples say little of 256 channels."""
    rng = np.random.default_rng(0)
    mixed = 0.3 * rng.standard_normal((256, 256)) + np.eye(256)

    def sample() -> NDArray[np.float64]:
        return (rng.standard_normal(256) + 0.2 * rng.standard_normal((24, 256))) @ mixed

    weights = rng.standard_normal((64, 256))
    moments = rounding.Moments(())
    for _ in range(40):
        moments.add(sample())
    factor = moments.factor(None)
    assert factor is not None
    told = rounding.round_weights(weights, factor, lambda column, _: np.round(column * 4) / 4)
    others = np.concatenate([sample() for _ in range(400)])
    off, nearest = (((others @ (made - weights).T) ** 2).mean() for made in (told, np.round(weights * 4) / 4))
    assert off < nearest
