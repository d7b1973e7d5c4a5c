"""Sums, products and extremes of many values: one layer each, from torch to the executable."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hetnn
from functions import Function
from hetnn.machine import default_threads

Computation = Callable[..., torch.Tensor]


def compiled(function: Computation, inputs: list[torch.Tensor], **options: Any) -> hetnn.Executable:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return hetnn.compile(torch.export.export(Function(function), tuple(inputs)), "cpu", **options)


def kernels(executable: hetnn.Executable, inputs: list[torch.Tensor]) -> list[str]:
    return [row["kernel"] for row in executable.profile(*inputs)]


def bits(tensor: torch.Tensor) -> Any:
    return tensor.numpy().view(np.int32)


def random(count: int, *shape: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(count)
    return [torch.randn(shape, generator=generator) for _ in range(count)]


def chain(*xs: torch.Tensor) -> torch.Tensor:
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total


def tree(*xs: torch.Tensor) -> torch.Tensor:
    return xs[0] if len(xs) == 1 else tree(*xs[: len(xs) // 2]) + tree(*xs[len(xs) // 2 :])


def weighted(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    return a - b * 0.3 + c / 3 - (-d)


def product(*xs: torch.Tensor) -> torch.Tensor:
    total = xs[0]
    for x in xs[1:]:
        total = total * x
    return total


def largest(*xs: torch.Tensor) -> torch.Tensor:
    total = xs[0]
    for x in xs[1:]:
        total = torch.maximum(total, x)
    return total


@pytest.mark.parametrize("count", [3, 4, 17, 100])
@pytest.mark.parametrize("function", [chain, tree, product, largest])
def test_many_values_are_one_kernel(function: Computation, count: int) -> None:
    inputs = random(count, 3, 171)
    executable = compiled(function, inputs)
    assert kernels(executable, inputs) == ["nary"]
    want = function(*inputs)
    assert float((executable(*inputs) - want).abs().max()) <= 2e-6 * float(want.abs().max())
    (row,) = executable.report(format="dict")["fusions"]
    size = 3 * 171 * 4
    assert len(row["nodes"]) == count - 1
    assert row["bytes_before"] == 3 * size * (count - 1)
    assert row["bytes_after"] == (count + 1) * size


def test_what_is_beyond_a_hundred_values_follows_as_steps() -> None:
    inputs = random(150, 7)
    executable = compiled(chain, inputs)
    assert kernels(executable, inputs) == ["nary"]
    assert float((executable(*inputs) - chain(*inputs)).abs().max()) <= 1e-5


def test_coefficients_and_steps_behind_the_layer() -> None:
    inputs = random(4, 2, 5, 6)
    executable = compiled(lambda *x: torch.relu(weighted(*x)) * x[0], inputs)
    assert kernels(executable, inputs) == ["nary"]
    want = torch.relu(weighted(*inputs)) * inputs[0]
    assert float((executable(*inputs) - want).abs().max()) <= 1e-6 * float(want.abs().max())


@pytest.mark.parametrize("function", [chain, tree, weighted, product, largest])
def test_deterministic_equals_torch_to_the_last_bit(function: Computation) -> None:
    inputs = random(4, 5, 67)
    for k, special in enumerate([float("nan"), float("inf"), -float("inf"), -0.0, 1e-41]):
        inputs[k % 4][k] = special
        inputs[(k + 1) % 4][k, ::2] = special
    executable = compiled(function, inputs, deterministic=True)
    # Of a balanced tree no half may join the other; they follow each other as steps.
    assert ("nary" in kernels(executable, inputs)) == (function is not tree)
    got, want = executable(*inputs), function(*inputs)
    assert torch.equal(got.isnan(), want.isnan())
    assert np.array_equal(bits(got.nan_to_num(7.0)), bits(want.nan_to_num(7.0)))


def test_a_convolution_takes_the_sum_as_steps() -> None:
    conv = torch.nn.Conv2d(3, 3, 1)
    inputs = random(3, 1, 3, 8, 8)
    executable = compiled(lambda a, b, c: conv(a) + b + c, inputs)
    assert kernels(executable, inputs)[0].startswith("conv2d_")
    assert "nary" not in kernels(executable, inputs)


def test_a_sum_that_is_read_elsewhere_is_written() -> None:
    inputs = random(3, 40)

    def shared(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        both = a + b
        return (both + c) * torch.sum(both)

    executable = compiled(shared, inputs)
    assert "nary" not in kernels(executable, inputs)
    assert torch.allclose(executable(*inputs), shared(*inputs), rtol=1e-5)


def test_operands_broadcast_and_may_be_empty() -> None:
    a, b, c = torch.randn(4, 1, 6), torch.randn(5, 1), torch.randn(4, 5, 6)
    executable = compiled(lambda a, b, c: c + a + b + c, [a, b, c])
    assert kernels(executable, [a, b, c]) == ["nary"]
    assert torch.allclose(executable(a, b, c), c + a + b + c, atol=1e-6)
    nothing = [torch.randn(0, 3) for _ in range(3)]
    assert compiled(chain, nothing)(*nothing).shape == (0, 3)


def test_integers_stay_as_they_are() -> None:
    inputs = [torch.arange(k, 20 + k) for k in range(3)]
    executable = compiled(chain, inputs)
    assert "nary" not in kernels(executable, inputs)
    assert torch.equal(executable(*inputs), chain(*inputs))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("threads", [1, 2])
def test_halves_are_one_kernel_with_every_rounding(dtype: torch.dtype, threads: int) -> None:
    inputs = [(4.0**k * x).to(dtype) for k, x in enumerate(random(6, 7, 671))]
    for k, special in enumerate([float("nan"), float("inf"), -float("inf"), -0.0, 6e4, 6e-8]):
        inputs[k][k] = special
    executable = compiled(lambda *x: chain(*x) - x[2], inputs, threads=threads)
    assert kernels(executable, inputs) == ["nary"]
    got, want = executable(*inputs), chain(*inputs) - inputs[2]
    single = compiled(lambda *x: chain(*x) - x[2], inputs, fusion="off")(*inputs)
    for other in (want, single):
        assert torch.equal(got.isnan(), other.isnan())
        assert torch.equal(got.nan_to_num(7.0), other.nan_to_num(7.0))


def test_bytes_are_one_kernel_and_wrap() -> None:
    generator = torch.Generator().manual_seed(1)
    inputs = [torch.randint(-128, 128, (3, 333), dtype=torch.int8, generator=generator) for _ in range(6)]
    executable = compiled(tree, inputs)
    assert kernels(executable, inputs) == ["nary"]
    assert torch.equal(executable(*inputs), tree(*inputs))


def test_without_fusion_every_node_is_a_kernel() -> None:
    inputs = random(6, 33)
    executable = compiled(chain, inputs, fusion="off")
    assert kernels(executable, inputs) == ["binary"] * 5
    assert executable.report(format="dict")["fusions"] == []


def test_out_that_overlaps_an_input_is_refused() -> None:
    inputs = [x.numpy() for x in random(3, 33)]
    executable = compiled(chain, [torch.from_numpy(x) for x in inputs])
    with pytest.raises(hetnn.InvalidModel, match=r"out\[0\] shares memory with input 1"):
        executable.run(inputs, [inputs[1]])


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ("nary()", "input 'x' is missing"),
        ("nary(%a, %a) {op = sub}", "op must be add, mul, maximum or minimum; got 'sub'"),
        ("nary(%a, %a) {coefficients = [1.0]}", "one for each of 2 inputs; got 1"),
        ("nary(%a, %a) {op = mul, coefficients = [1.0, 2.0]}", "coefficients go with op add"),
        ("nary(" + ", ".join(["%a"] * 101) + ")", "at most 100 inputs; got 101"),
    ],
)
def test_layers_that_mean_nothing_are_refused(layer: str, message: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=message):
        hetnn.compile(f"graph @g {{stage = imported}} (%a: f32[4]) -> (%y) {{\n  %y = {layer} : f32[4]\n}}")


def test_a_layer_of_one_input_is_that_input_times_its_coefficient() -> None:
    text = "graph @g {stage = imported} (%a: f32[4]) -> (%y) {\n  %y = nary(%a) {coefficients = [-2.5]} : f32[4]\n}"
    x = np.float32([1, -0.0, np.nan, np.inf])
    assert np.array_equal(hetnn.compile(text)(x), x * np.float32(-2.5), equal_nan=True)


def test_groups_are_measured_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "tuning.json"
    monkeypatch.setenv("HETNN_TUNING", str(cache))
    inputs = random(9, 3000)
    first = compiled(chain, inputs)
    threads = min(4, default_threads())
    known = json.loads(cache.read_text())
    assert 2 <= known[f"add 9 x 2^12 by {threads}"] <= 9
    cache.write_text("no JSON")
    assert float((first(*inputs) - compiled(chain, inputs)(*inputs)).abs().max()) <= 1e-5
    compiled(chain, random(5, 3000), tune=False)
    assert cache.read_text() == "no JSON"
    compiled(chain, random(7, 3000))
    assert {f"add 9 x 2^12 by {threads}", f"add 7 x 2^12 by {threads}"} <= json.loads(cache.read_text()).keys()
    compiled(chain, inputs, threads=1)
    assert "add 9 x 2^12 by 1" in json.loads(cache.read_text())


@pytest.mark.parametrize("op", ["add", "mul", "maximum", "minimum"])
def test_terms_may_lack_inputs(op: str) -> None:
    """What is summed, or compared, comes out of an operator whose second and third input are absent."""
    text = f"""graph @g {{stage = imported}} (%x: f32[1,1,2,2], %z: f32[1,1,4,4]) -> (%y) {{
  %goal = constant() {{value = i64[2] {{4, 4}}}} : i64[2]
  %r = resize_over(%x, _, _, %goal) {{axes = [2,3], sizes = [1,1,4,4]}} : f32[1,1,4,4]
  %y = {op}(%r, %z) : f32[1,1,4,4]
}}
"""
    x, z = np.ones((1, 1, 2, 2), np.float32), np.full((1, 1, 4, 4), 3, np.float32)
    combined = {"add": 4.0, "mul": 3.0, "maximum": 3.0, "minimum": 1.0}[op]
    np.testing.assert_array_equal(hetnn.compile(text)(x, z), np.full((1, 1, 4, 4), combined))
