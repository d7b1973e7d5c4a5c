"""Fourier transforms of every length, along every axis, beside torch in f64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import hetnn
from functions import Function

LENGTHS = [*range(1, 18), 20, 21, 30, 49, 64, 77, 97, 100, 128, 210, 243, 1000, 1024]


def close(function: Callable[..., torch.Tensor], x: torch.Tensor) -> None:
    (mine,) = hetnn.compile(Function(function), args=(x,)).run([x.numpy()])
    wanted = function(x.double()).numpy()
    assert mine.shape == wanted.shape
    assert np.abs(mine - wanted).max() <= 1e-6 * np.abs(wanted).max()


def complex_of(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_complex(x)


@pytest.mark.parametrize("length", LENGTHS)
def test_a_transform_is_torchs(length: int) -> None:
    generator = torch.Generator().manual_seed(length)
    rows = 1 if length > 200 else 19  # fewer lines than lanes, and lines that fill none of them up
    reals = torch.randn(rows, length, generator=generator)
    pairs = torch.randn(rows, length, 2, generator=generator)
    half = torch.randn(rows, length // 2 + 1, 2, generator=generator)
    close(lambda x: torch.view_as_real(torch.fft.fft(complex_of(x))), pairs)
    close(lambda x: torch.view_as_real(torch.fft.ifft(complex_of(x))), pairs)
    close(lambda x: torch.view_as_real(torch.fft.rfft(x)), reals)
    close(lambda x: torch.view_as_real(torch.fft.fft(x)), reals)
    close(lambda x: torch.fft.irfft(complex_of(x), n=length), half)


@pytest.mark.parametrize("length", [1, 6, 7, 16, 30])
def test_lines_may_lie_across_and_be_cut_or_filled_up(length: int) -> None:
    x = torch.randn(5, length, 3, generator=torch.Generator().manual_seed(length))
    close(lambda x: torch.view_as_real(torch.fft.rfft(x, dim=1)), x)
    close(lambda x: torch.view_as_real(torch.fft.rfft(x, n=2 * length + 2, dim=1)), x)
    close(lambda x: torch.view_as_real(torch.fft.rfft(x, n=max(length // 2, 1), dim=1)), x)
    close(lambda x: torch.view_as_real(torch.fft.ifft2(torch.complex(x, 2 * x), dim=(0, 1))), x)
    close(lambda x: torch.fft.irfft(torch.complex(x, 2 * x), n=2 * length, dim=1), x)
    close(lambda x: torch.fft.irfft(torch.complex(x, 2 * x), n=2 * length + 3, dim=1), x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.view_as_real(torch.fft.rfft(x)),
        lambda x: torch.fft.fft2(torch.complex(x, x), norm="ortho").real,
        lambda x: torch.fft.ifft(torch.complex(x, x), norm="forward").imag,
        lambda x: torch.stft(x, 64, 16, window=torch.hann_window(64, dtype=x.dtype), return_complex=True).abs(),
    ],
)
def test_lengths_may_be_known_when_it_runs(function: Callable[..., torch.Tensor]) -> None:
    batch, length = torch.export.Dim("batch", max=50), torch.export.Dim("length", min=100, max=900)
    shapes = (({0: batch, 1: length},),)
    exe = hetnn.compile(Function(function), args=(torch.randn(3, 130),), dynamic_shapes=shapes)
    for shape in ((3, 130), (5, 201), (1, 777)):
        x = torch.randn(*shape)
        wanted = function(x.double()).numpy()
        assert np.abs(exe(x.numpy()) - wanted).max() <= 1e-6 * np.abs(wanted).max()


def test_threads_change_nothing() -> None:
    x = torch.randn(100, 400)
    function = Function(lambda x: torch.view_as_real(torch.fft.rfft(x)))
    runs = [hetnn.compile(function, args=(x,), threads=threads).run([x.numpy()])[0] for threads in (1, 2)]
    np.testing.assert_array_equal(*runs)
