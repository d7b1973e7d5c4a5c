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


class Of(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def compiled(function: Callable[..., Any], *inputs: Tensor) -> hetnn.Executable:
    return hetnn.compile(torch.export.export(Of(function), inputs, strict=False))


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
    want, got = FUNCTIONS[name](x), compiled(FUNCTIONS[name], x)(x)
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


def test_complex_inputs_and_outputs_pass_as_tensors_and_arrays(tmp_path: Path) -> None:
    x = torch.randn(3, 4, dtype=torch.complex64, generator=torch.Generator().manual_seed(3))
    exe = compiled(lambda z: {"twice": z + z, "root": torch.fft.fft(z)}, x)
    exe.save(tmp_path / "complex.hetnn")
    for run in (exe, hetnn.load(tmp_path / "complex.hetnn")):
        torch.testing.assert_close(run(x), {"twice": x + x, "root": torch.fft.fft(x)})
        of_array = run(x.numpy())
        assert of_array["twice"].dtype == np.complex64
        np.testing.assert_array_equal(of_array["twice"], (x + x).numpy())
        with pytest.raises(hetnn.InvalidModel, match=r"input 'inputs_0' must be complex; got torch.float32"):
            run(torch.zeros(3, 4))


def test_what_has_no_rule_is_refused() -> None:
    x = torch.zeros(3, dtype=torch.complex64)
    with pytest.raises(hetnn.Unsupported, match=r"exp.default: it computes with complex numbers"):
        compiled(torch.exp, x)
    with pytest.raises(hetnn.Unsupported, match=r"complex input .* Return the new value"):
        compiled(lambda z: z.add_(1), x)


def test_batch_statistics_of_given_tensors_are_computed_and_written_back() -> None:
    def call(x: Tensor, mean: Tensor, var: Tensor) -> Tensor:
        return nn.functional.batch_norm(x, mean, var, training=True, momentum=0.5)

    x, mean, var = torch.arange(24.0).reshape(4, 2, 3), torch.zeros(2), torch.ones(2)
    exe, of_torch, given = compiled(call, x, mean, var), [mean.clone(), var.clone()], [mean.clone(), var.clone()]
    torch.testing.assert_close(exe(x, *given), call(x, *of_torch))
    torch.testing.assert_close(given, of_torch)
    with pytest.raises(hetnn.InvalidModel, match=r"batch_norm.*works as in training"):
        hetnn.compile(torch.export.export(nn.BatchNorm1d(2), (x,), strict=False))


def test_dropout_of_nothing_and_of_everything_needs_no_chance() -> None:
    x = torch.randn(3, 4)
    exe = compiled(lambda y: (nn.functional.dropout(y, 0.0), nn.functional.alpha_dropout(y, 1.0, training=True)), x)
    torch.testing.assert_close(exe(x), (x, torch.zeros(3, 4)))
    with pytest.raises(hetnn.InvalidModel, match=r"dropout.*works as in training"):
        compiled(lambda y: nn.functional.dropout(y, 0.5), x)
