"""Weights in blocks that torch exports: by its own groups, and as torchao's tensors, which come as several as one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.ao.quantization.fx._decomposed
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

import hetnn
from importers import torchao_operators

Q = torch.ops.quantized_decomposed

torchao_operators.declare()


class Affine(nn.Module):
    """A linear layer of integers in blocks of a row."""

    def __init__(self, bits: int, block: int, zeros: bool, shape: tuple[int, int] = (24, 96)) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(bits * block)
        self.low, self.high, self.block = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, block
        counts = (shape[0], shape[1] // block)

        def integers(size: tuple[int, int]) -> Tensor:
            return torch.randint(self.low, self.high + 1, size, dtype=torch.int8, generator=generator)

        self.register_buffer("q", integers(shape))
        self.register_buffer("scale", torch.rand(counts, generator=generator) * 0.1 + 0.01)
        self.register_buffer("zero", integers(counts) if zeros else None)
        self.bias = nn.Parameter(torch.randn(shape[0], generator=generator))

    def forward(self, x: Tensor) -> Tensor:
        weight = torch.ops.torchao.dequantize_affine(
            self.q, [1, self.block], self.scale, self.zero, torch.int8, self.low, self.high
        )
        return linear(x, weight, self.bias)


class Groups(Affine):
    """The same by torch's own operator."""

    def forward(self, x: Tensor) -> Tensor:
        zero = None if self.zero is None else self.zero.to(torch.int32)
        weight = Q.dequantize_per_channel_group(
            self.q, self.scale, zero, self.low, self.high, torch.int8, self.block, torch.float32
        )
        return linear(x, weight, self.bias)


def agrees(module: nn.Module, x: Tensor, kernel: str = "block_linear") -> Any:
    """hetnn multiplies by the codes, as eager torch by the reals."""
    want = module(x).detach().numpy()
    executable = hetnn.compile(torch.export.export(module.eval(), (x,)))
    np.testing.assert_allclose(executable(x.numpy()), want, rtol=0, atol=2e-6 * np.abs(want).max())
    assert [row["kernel"] for row in executable.profile(x.numpy())] == [kernel]
    return executable


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("block", [16, 32, 96])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("kind", [Affine, Groups])
def test_linear_layers_keep_their_codes(kind: type[Affine], bits: int, block: int, zeros: bool) -> None:
    x = torch.randn(3, 96, generator=torch.Generator().manual_seed(1))
    agrees(kind(bits, block, zeros), x)


def test_rows_under_one_scale_are_blocks_as_large_as_may_be() -> None:
    agrees(Affine(4, 1024, True, (8, 1024)), torch.randn(2, 1024, generator=torch.Generator().manual_seed(1)))


def test_codes_take_half_a_byte(tmp_path: Any) -> None:
    x = torch.randn(1, 512, generator=torch.Generator().manual_seed(1))
    agrees(Affine(4, 32, False, (512, 512)), x).save(tmp_path / "y.hetnn")
    assert (tmp_path / "y.hetnn").stat().st_size < 512 * 512 * 0.625 + 8000


def test_integers_outside_of_the_range_that_is_told_keep_their_type() -> None:
    module = Affine(4, 16, False)
    module.q[0, 0] = 100
    executable = agrees(module, torch.randn(3, 96, generator=torch.Generator().manual_seed(1)))
    assert executable.profile(np.zeros((3, 96), np.float32))[0]["kernel"] == "block_linear"


def test_blocks_along_two_axes_are_refused() -> None:
    class Tiles(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("q", torch.ones(4, 6, dtype=torch.int8))
            self.register_buffer("scale", torch.ones(2, 3))

        def forward(self, x: Tensor) -> Tensor:
            return x + torch.ops.torchao.dequantize_affine(self.q, [2, 2], self.scale, None, torch.int8)

    with pytest.raises(hetnn.Unsupported, match=r"blocks \[2, 2\], which are along more than one axis"):
        hetnn.compile(torch.export.export(Tiles(), (torch.ones(4, 6),)))


class SeveralAsOne(Tensor):
    """Codes and scales that look like one tensor of reals, as torchao's do."""

    @staticmethod
    def __new__(cls, q: Tensor, scale: Tensor) -> Any:
        return Tensor._make_wrapper_subclass(cls, q.shape, dtype=torch.float32, requires_grad=False)

    def __init__(self, q: Tensor, scale: Tensor) -> None:
        self.q, self.scale = q, scale

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        return ["q", "scale"], None

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, Tensor], context: Any, size: Any, stride: Any) -> Any:
        return SeveralAsOne(inner["q"], inner["scale"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def plain(x: Any) -> Any:
            if not isinstance(x, SeveralAsOne):
                return x
            return torch.ops.torchao.dequantize_affine(x.q, [1, 32], x.scale, None, torch.int8, -8, 7)

        if func is torch.ops.aten.detach.default:
            return SeveralAsOne(args[0].q, args[0].scale)
        return func(*(plain(x) for x in args), **{name: plain(x) for name, x in (kwargs or {}).items()})


def test_parameters_that_are_several_tensors_are_taken_apart() -> None:
    module = nn.Linear(96, 24)
    parts = Affine(4, 32, False)
    module.weight = nn.Parameter(SeveralAsOne(parts.q, parts.scale), requires_grad=False)
    assert is_traceable_wrapper_subclass(module.state_dict()["weight"])
    agrees(module, torch.randn(3, 96, generator=torch.Generator().manual_seed(1)))
