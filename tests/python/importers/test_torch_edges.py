"""Edges of torch's operators: beyond a type's range, without axes, without elements, of open strides."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import hetnn
from functions import Function

GAINS = torch.tensor([0.5, -2.0, 1.5])
CASES: dict[str, tuple[Callable[..., torch.Tensor], torch.Tensor]] = {
    "squares beyond f16": (lambda x: x.norm(), torch.full((3, 40), 60.0, dtype=torch.float16)),
    "squares beyond f32 of one element": (lambda x: F.normalize(x, dim=2), torch.tensor([[[3e38], [-1e-30], [0.0]]])),
    "transposed rows without pixels": (
        lambda x: F.conv_transpose2d(x, torch.ones(4, 3, 2, 2), None, (1, 2), (1, 1), (0, 1)),
        torch.randn(3, 4, 1, 2),
    ),
    "a number squeezed": (lambda x: x.sum().squeeze(0).squeeze(-1).squeeze((0,)).squeeze(), torch.randn(3)),
    "slopes behind a number": (lambda x: F.prelu(torch.sum(x, (0,)), torch.tensor([0.25])), torch.tensor([-3.0, 1.0])),
    "steps behind a norm without pixels": (
        lambda x: torch.fmod(torch.tanh(F.group_norm(x, 1, GAINS, GAINS, 0.1)), 1.098),
        torch.randn(2, 3, 4, 0),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_results_are_torchs(case: str) -> None:
    function, x = CASES[case]
    got = np.asarray(hetnn.compile(torch.export.export(Function(function), (x,)), "cpu")(x))
    np.testing.assert_allclose(got, function(x).numpy(), rtol=1e-3 if x.dtype == torch.float16 else 1e-6)


def test_a_view_of_open_strides_is_read() -> None:
    function = Function(lambda x: torch.argmax(x[:, None, 1] @ x[:, None, 1].mT, 0))
    x = torch.randn(5, 4)
    exported = torch.export.export(function, (x,), dynamic_shapes={"inputs": ({1: torch.export.Dim.AUTO},)})
    exe = hetnn.compile(exported, "cpu")
    for width in (4, 7):
        y = torch.randn(5, width)
        np.testing.assert_array_equal(np.asarray(exe(y)), function(y).numpy())


def test_an_axis_of_open_size_is_squeezed_as_torch_exported_it() -> None:
    function = Function(lambda x: x.squeeze(-3))
    auto = torch.export.Dim.AUTO
    varying = {"inputs": ({0: auto, 1: auto},)}
    exe = hetnn.compile(torch.export.export(function, (torch.randn(4, 3, 2),), dynamic_shapes=varying), "cpu")
    x = torch.randn(2, 1, 2)
    np.testing.assert_array_equal(np.asarray(exe(x)), function(x).numpy())
    with pytest.raises(hetnn.InvalidModel, match="!= 1"):
        exe(torch.randn(1, 3, 2))


@pytest.mark.parametrize("options", [{"target": "cpu"}, {"target": "cpu+relu-only", "rewrite": "always"}], ids=str)
def test_transposed_rows_of_an_open_size_may_be_none(options: dict[str, str]) -> None:
    function = Function(lambda x: F.conv_transpose2d(x, torch.ones(4, 3, 2, 2), None, (1, 2), (1, 1), (0, 1)))
    varying = {"inputs": ({2: torch.export.Dim.AUTO},)}
    exe = hetnn.compile(torch.export.export(function, (torch.randn(3, 4, 6, 2),), dynamic_shapes=varying), **options)
    for rows in (6, 2, 1):
        x = torch.randn(3, 4, rows, 2)
        np.testing.assert_allclose(np.asarray(exe(x)), function(x).numpy(), rtol=1e-5, atol=1e-6)
