"""Resizing as torch does it: an axis that a scale leaves as long as it is is copied, one that doubles is repeated."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.reference
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import hetnn

SCALES = (1.0, 1.121, 2.05, 0.7)
MODES: dict[str, dict[str, Any]] = {
    "nearest": {}, "nearest-exact": {}, "linear": {}, "bilinear": {}, "bicubic": {}, "trilinear": {},
    "corners": {"mode": "bilinear", "align_corners": True}, "smooth": {"mode": "bilinear", "antialias": True},
}  # fmt: skip
KINDS = [
    *((name, axes, torch.float32) for name in ("nearest", "nearest-exact") for axes in (1, 2, 3)),
    ("linear", 1, torch.float32), ("trilinear", 3, torch.float32),
    *((name, 2, torch.uint8) for name in ("nearest", "bilinear")),
    *((name, 2, torch.float32) for name in ("bilinear", "bicubic", "corners", "smooth")),
]  # fmt: skip


def image(sizes: list[int], dtype: torch.dtype) -> Tensor:
    x = torch.rand(2, 3, *sizes, generator=torch.Generator().manual_seed(0)) * 255
    return x.to(dtype)


@pytest.mark.parametrize(("mode", "axes", "dtype"), KINDS)
def test_axes_by_scales(mode: str, axes: int, dtype: torch.dtype) -> None:
    x = image([4, 7, 5][:axes], dtype)
    every = list(itertools.product(SCALES, repeat=axes))

    def model(x: Tensor) -> list[Tensor]:
        return [F.interpolate(x, scale_factor=scales, **{"mode": mode, **MODES[mode]}) for scales in every[:: axes**2]]

    for mine, theirs in zip(hetnn.compile(model, args=(x,))(x), model(x), strict=True):
        assert mine.shape == theirs.shape
        apart = float((mine.double() - theirs.double()).abs().max())
        assert apart <= (1e-5 * 255 if dtype == torch.float32 else 0), (mode, mine.shape)


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
@pytest.mark.parametrize("scale", SCALES)
def test_an_exported_file_means_the_same(mode: str, scale: float, tmp_path: Path) -> None:
    x = image([4, 5], torch.float32)

    def model(x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=(scale, 2.05 if mode == "nearest" else 1.05), mode=mode)

    hetnn.export(model, tmp_path / "m.onnx", args=(x,))
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    (theirs,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    np.testing.assert_allclose(theirs, model(x).numpy(), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scale", [1.121, 2.05, 1.0])
def test_onnx_resizes_what_stays_as_long(mode: str, scale: float) -> None:
    """By the scale that the file says, where torch copies."""
    places = "asymmetric" if mode == "nearest" else "half_pixel"
    text = f"""<ir_version: 9, opset_import: ["" : 19]> g (float[1,1,4,5] x) => (float[1,1,h,w] y)
        <float[4] s = {{1, 1, {scale}, {scale}}}>
        {{ y = Resize <mode = "{mode}", coordinate_transformation_mode = "{places}", nearest_mode = "floor">
          (x, , s) }}"""
    model = onnx.parser.parse_model(text)
    x = np.random.default_rng(0).standard_normal((1, 1, 4, 5), np.float32)
    (theirs,) = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})  # ONNX Runtime copies, too
    np.testing.assert_allclose(hetnn.compile(model)(x), theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("corners", [False, True])
def test_grids_of_affine_maps(corners: bool) -> None:
    plane, space = torch.randn(2, 2, 3), torch.randn(1, 3, 4)

    def model(plane: Tensor, space: Tensor) -> tuple[Tensor, ...]:
        fixed = torch.tensor([[[0.9, 0.2, 0.1], [-0.3, 1.1, 0.0]]])
        grids = [F.affine_grid(plane, (2, 1, 3, size), corners) for size in (1, 4)]
        return *grids, F.affine_grid(space, (1, 1, 2, 3, 4), corners), F.affine_grid(fixed, (1, 1, 2, 3), corners)

    for mine, theirs in zip(hetnn.compile(model, args=(plane, space))(plane, space), model(plane, space), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-6)
