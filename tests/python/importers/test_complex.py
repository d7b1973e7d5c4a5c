"""Complex numbers of torch models: transforms, inputs and outputs, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hetnn

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "rfft": lambda x: torch.fft.rfft(x),
    "fft": lambda x: torch.fft.fft(x, n=5, norm="ortho"),
    "fft2": lambda x: torch.fft.fft2(x),
    "irfft": lambda x: torch.fft.irfft(torch.fft.rfft(x), n=6),
    "ifftn": lambda x: torch.fft.ifftn(x, norm="forward"),
    "hfft": lambda x: torch.fft.hfft(x),
    "stft": lambda x: torch.stft(x, 4, hop_length=2, window=torch.hann_window(4), return_complex=True),
    "size": lambda x: torch.fft.fft(x).abs(),
    "angle": lambda x: torch.polar(x.abs(), x).angle(),
    "product": lambda x: torch.complex(x, x + 1) * torch.view_as_complex(torch.stack([x, -x], -1)) * (2 - 1j),
    "moved": lambda x: torch.cat([torch.complex(x, -x).mT, torch.ones(6, 4)], dim=1).conj().sum(0),
    "parts": lambda x: torch.view_as_real(torch.fft.fftshift(torch.fft.fft(x))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_equals_torch(name: str) -> None:
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(3))
    want, got = FUNCTIONS[name](x), hetnn.compile(FUNCTIONS[name], args=(x,))(x)
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


def test_complex_inputs_and_outputs_pass_as_tensors_and_arrays(tmp_path: Path) -> None:
    x = torch.randn(3, 4, dtype=torch.complex64, generator=torch.Generator().manual_seed(3))
    exe = hetnn.compile(lambda z: {"twice": z + z, "root": torch.fft.fft(z)}, args=(x,))
    exe.save(tmp_path / "complex.hetnn")
    for run in (exe, hetnn.load(tmp_path / "complex.hetnn")):
        torch.testing.assert_close(run(x), {"twice": x + x, "root": torch.fft.fft(x)})
        of_array = run(x.numpy())
        assert of_array["twice"].dtype == np.complex64
        np.testing.assert_array_equal(of_array["twice"], (x + x).numpy())
        with pytest.raises(hetnn.InvalidModel, match=r"input 'z' must be complex; got torch.float32"):
            run(torch.zeros(3, 4))


ELEMENTARY = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "log",
    "log10",
    "log1p",
    "log2",
    "reciprocal",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "sgn",
    "abs",
    "angle",
]


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_elementary_functions_are_those_of_torch(dtype: torch.dtype) -> None:
    """Over the plane, close to zero and far out, and on both sides of the cuts along the axes."""
    sizes = torch.tensor([1e-6, 0.3, 1.0, 2.5, 30.0], dtype=torch.float64)
    turns = torch.polar(torch.ones(9, dtype=torch.float64), torch.linspace(0.1, 6.1, 9, dtype=torch.float64))
    points = [(sizes[:, None] * turns).reshape(-1)]
    for sign in (0.0, -0.0):
        for real in (-2.0, -0.5, 0.5, 2.0):
            points.append(torch.complex(torch.tensor([real]), torch.tensor([sign])).to(torch.complex128))
            points.append(torch.complex(torch.tensor([sign]), torch.tensor([real])).to(torch.complex128))
    z = torch.cat(points).to(dtype)
    exe = hetnn.compile(lambda z: tuple(getattr(torch, name)(z) for name in ELEMENTARY), args=(z,))
    for name, got in zip(ELEMENTARY, exe(z), strict=True):
        want = getattr(torch, name)(z.to(torch.complex128))  # torch's c64 itself is off by more, far out
        torch.testing.assert_close(got.to(want.dtype), want, rtol=2e-6, atol=1e-6, msg=lambda m, n=name: f"{n}: {m}")


def test_arithmetic_and_reductions_take_complex_numbers() -> None:
    def call(z: Tensor, w: Tensor, x: Tensor) -> Any:
        index = torch.tensor([2, 0])
        return (
            (z / w, z - 2, 3 + z, z * 0.5, z**w, 2**z, z**2, z == w, z != z, z.to(torch.bool)),
            (z @ w.mT, z.prod(), z.prod(1), z.var(), z.var(1, correction=0), z.cumsum(1), z.mean()),
            (z.any(1), torch.logical_and(z, w), z.isnan(), z.nonzero(), torch.where(x > 0, z, 1 - 1j)),
            (z.index_put((index,), w[:2]), z.scatter(1, torch.tensor([[1]] * 3), 2j), torch.full_like(z, 1 + 2j)),
            (torch.nn.functional.pad(z, (1, 0), value=1), torch.ones_like(z), x + z, z.real.to(z.dtype)),
        )

    torch.manual_seed(2)
    z, w, x = torch.randn(3, 4, dtype=torch.complex64), torch.randn(3, 4, dtype=torch.complex64), torch.randn(3, 4)
    z[0, 1] = 0
    torch.testing.assert_close(hetnn.compile(call, args=(z, w, x))(z, w, x), call(z, w, x), rtol=1e-5, atol=1e-5)


def test_what_has_no_rule_is_refused() -> None:
    x = torch.zeros(3, dtype=torch.complex64)
    with pytest.raises(hetnn.Unsupported, match=r"linalg_inv_ex.default: it computes with complex numbers"):
        hetnn.compile(torch.linalg.inv, args=(x.reshape(3, 1, 1),))
    with pytest.raises(hetnn.Unsupported, match=r"complex input .* Return the new value"):
        hetnn.compile(lambda z: z.add_(1), args=(x,))


def test_batch_statistics_of_given_tensors_are_computed_and_written_back() -> None:
    def call(x: Tensor, mean: Tensor, var: Tensor) -> Tensor:
        return nn.functional.batch_norm(x, mean, var, training=True, momentum=0.5)

    x, mean, var = torch.arange(24.0).reshape(4, 2, 3), torch.zeros(2), torch.ones(2)
    exe, of_torch, given = (
        hetnn.compile(call, args=(x, mean, var)),
        [mean.clone(), var.clone()],
        [mean.clone(), var.clone()],
    )
    torch.testing.assert_close(exe(x, *given), call(x, *of_torch))
    torch.testing.assert_close(given, of_torch)
    with pytest.raises(hetnn.InvalidModel, match=r"batch_norm.*works as in training"):
        hetnn.compile(torch.export.export(nn.BatchNorm1d(2), (x,), strict=False))
