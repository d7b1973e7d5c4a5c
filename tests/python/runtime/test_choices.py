"""Which kernel runs: the best for the sizes at hand of those that read what a file has packed."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

import hetnn


def test_other_sizes_may_take_another_kernel_of_the_same_packed_weights() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 24, 1)).eval()
    narrow, wide = torch.randn(1, 3, 8, 17), torch.randn(1, 3, 8, 48)
    width = torch.export.Dim("width", min=4, max=64)
    exe = hetnn.compile(torch.export.export(net, (narrow,), dynamic_shapes=({3: width},), strict=False), "cpu")
    ran = [next(row["kernel"] for row in exe.profile(x) if row["kernel"].startswith("conv2d")) for x in (narrow, wide)]
    assert ran == ["conv2d_few_channels", "conv2d_planes"]
    for x in (narrow, wide):
        with torch.no_grad():
            np.testing.assert_allclose(np.asarray(exe(x)), net(x).numpy(), rtol=0, atol=1e-5)


def test_deterministic_is_without_transforms() -> None:
    net = nn.Conv2d(32, 32, 3, padding=1).eval()
    x = torch.randn(1, 32, 28, 28)

    def kernels(**options: bool) -> set[str]:
        return {row["kernel"] for row in hetnn.compile(net, args=(x,), **options).profile(x)}

    assert "conv2d_winograd" in kernels()
    assert "conv2d_winograd" not in kernels(deterministic=True)


def test_what_a_step_reads_for_each_channel_is_asked_about_as_it_lies() -> None:
    class Residual(nn.Module):
        """A sum behind a layer, then a scale and a bias for each channel, which lie as [32] and not as [32,1,1]."""

        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(3, 32, 1)
            self.layer = nn.Conv2d(32, 32, 3, padding=1, groups=32)
            self.norm = nn.BatchNorm2d(32)
            self.norm.running_mean.normal_()  # type: ignore[union-attr]
            self.norm.weight.data.normal_()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.first(x)
            return self.norm(y + self.layer(y))  # type: ignore[no-any-return]

    net, x = Residual().eval(), torch.randn(1, 3, 6, 5)
    with torch.no_grad():
        np.testing.assert_allclose(np.asarray(hetnn.compile(net, args=(x,))(x)), net(x).numpy(), rtol=0, atol=1e-5)
