"""Graphs in PT2E's form, with steps to integers and back around layers: equal to eager torch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.ao.quantization.fx._decomposed
from torch import Tensor, nn

import hetnn

Q = torch.ops.quantized_decomposed


class Steps(nn.Module):
    """To integers and back, by one scale and by one for each channel, of signed and unsigned integers."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scales", torch.tensor([0.013, 0.2, 0.05]))
        self.register_buffer("zeros", torch.tensor([3, -7, 0]))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        a = Q.quantize_per_tensor(x, 0.037, 5, -128, 127, torch.int8)
        b = Q.quantize_per_tensor(x, 0.0625, 128, 0, 255, torch.uint8)
        c = Q.quantize_per_channel(x, self.scales, self.zeros, 1, -127, 127, torch.int8)
        d = Q.quantize_per_tensor.tensor(x, self.scales[1], self.zeros[1], -128, 127, torch.int8)
        return (
            a,
            b,
            c,
            d,
            Q.dequantize_per_tensor(a, 0.037, 5, -128, 127, torch.int8),
            Q.dequantize_per_tensor(b, 0.0625, 128, 0, 255, torch.uint8),
            Q.dequantize_per_channel(c, self.scales, self.zeros, 1, -127, 127, torch.int8),
            Q.dequantize_per_tensor.tensor(d, self.scales[1], self.zeros[1], -128, 127, torch.int8),
        )


class Network(nn.Module):
    """A convolution and a layer with integer weights by channel, and integers between them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kernel", torch.randint(-127, 128, (8, 3, 3, 3), dtype=torch.int8))
        self.register_buffer("kernel_scales", torch.rand(8) * 0.01 + 0.001)
        self.register_buffer("weight", torch.randint(-127, 128, (5, 8), dtype=torch.int8))
        self.register_buffer("weight_scales", torch.rand(5) * 0.01 + 0.001)
        self.register_buffer("eight", torch.zeros(8, dtype=torch.int64))
        self.register_buffer("five", torch.zeros(5, dtype=torch.int64))
        self.bias = nn.Parameter(torch.randn(8))

    def forward(self, x: Tensor) -> Tensor:
        def stepped(x: Tensor, scale: float, zero: int) -> Tensor:
            q = Q.quantize_per_tensor(x, scale, zero, -128, 127, torch.int8)
            result: Tensor = Q.dequantize_per_tensor(q, scale, zero, -128, 127, torch.int8)
            return result

        kernel = Q.dequantize_per_channel(self.kernel, self.kernel_scales, self.eight, 0, -127, 127, torch.int8)
        y = nn.functional.conv2d(stepped(x, 0.03, 1), kernel, self.bias, padding=1).relu()
        y = stepped(y, 0.05, -128).mean((2, 3))
        weight = Q.dequantize_per_channel(self.weight, self.weight_scales, self.five, 0, -127, 127, torch.int8)
        return stepped(nn.functional.linear(stepped(y, 0.02, -128), weight), 0.1, 0)


class Dynamic(nn.Module):
    """Scale and zero point from the values."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        scale, zero = Q.choose_qparams.tensor(x, -128, 127, 1e-5, torch.int8)
        q = Q.quantize_per_tensor.tensor(x, scale, zero, -128, 127, torch.int8)
        return scale, zero, q


@pytest.mark.parametrize("model", [Steps, Network, Dynamic])
def test_equals_eager(model: type[nn.Module], tmp_path: Path) -> None:
    torch.manual_seed(3)
    module = model().eval()
    x = torch.randn(2, 3, 6, 6) * 2
    x[0, 0, 0, :4] = torch.tensor([0.0185, 0.0555, 1e9, -1e9])  # between two integers, and beyond all
    with torch.no_grad():
        want = module(x)
        program = torch.export.export(module, (x,), strict=False)
    for target in ("cpu", "cpu+relu-only"):
        exe = hetnn.compile(program, target)
        exe.save(tmp_path / "quantized.hetnn")
        for run in (exe, hetnn.load(tmp_path / "quantized.hetnn")):
            got = run(x)
            if model is Network:
                steps = (got - want).abs() / 0.1  # where sums of floats fall between two integers, one step
                assert float(steps.max()) < 1.01
                assert float((steps > 0.5).float().mean()) < 0.1
            else:
                torch.testing.assert_close(got, want)  # integers to the last bit
