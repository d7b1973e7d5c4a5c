"""Elementwise layers run in the launch of their deepest producer: kernels, values and bytes."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import hetnn
from functions import Function

CHANNELS = 6
IMAGE = (2, CHANNELS, 9, 7)
TOKENS = (2, 5, CHANNELS)


def export(module: nn.Module, inputs: tuple[torch.Tensor, ...]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return torch.export.export(module.eval(), inputs, strict=False)


def kernels_of(executable: hetnn.Executable, *inputs: torch.Tensor) -> list[str]:
    """What runs; of convolutions, whichever algorithm it is."""
    kernels = [row["kernel"] for row in executable.profile(*inputs)]
    return ["conv2d" if kernel.startswith("conv2d_") else kernel for kernel in kernels]


def check(module: nn.Module, shapes: list[tuple[int, ...]], kernels: list[str], tolerance: float = 2e-6) -> None:
    """Fused, exactly these kernels run; unfused, more; both equal torch; the report's rows save bytes."""
    torch.manual_seed(3)
    inputs = tuple(torch.randn(shape) for shape in shapes)
    program = export(module, inputs)
    with torch.no_grad():
        want = module(*inputs)
    wanted = want if isinstance(want, tuple) else (want,)
    counts = []
    for fusion in ("on", "off"):
        executable = hetnn.compile(program, "cpu", fusion=fusion)
        for k, (got, one) in enumerate(zip(executable.run(inputs), wanted, strict=True)):
            assert float((got - one).abs().max()) <= tolerance * float(one.abs().max()), (fusion, k)
        counts.append(kernels_of(executable, *inputs))
        rows = executable.report(format="dict")["fusions"]
        assert all(row["bytes_after"] < row["bytes_before"] for row in rows)
        assert bool(rows) == (fusion == "on")
    assert counts[0] == kernels
    assert len(counts[1]) > len(counts[0])


class Follow(nn.Module):
    """A producer, then a function of its result and further operands."""

    def __init__(self, producer: nn.Module, function: Any) -> None:
        super().__init__()
        self.producer, self.function = producer, function

    def forward(self, x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.function(self.producer(x), *others)
        return result


class Reduced(nn.Module):
    """A reduction over some axes."""

    def __init__(self, reduce: Any, axes: tuple[int, ...]) -> None:
        super().__init__()
        self.reduce, self.axes = reduce, axes

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.reduce(x, dim=self.axes)
        return result


class States(nn.Module):
    """The states of a recurrent layer."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states: torch.Tensor = self.layer(x)[0]
        return states


SERIES = (9, 2, CHANNELS)

# The layer, the shape of its input, and the kernels that run, the last one with what is fused.
PRODUCERS: dict[str, tuple[nn.Module, tuple[int, ...], list[str]]] = {
    "conv2d": (nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), IMAGE, ["conv2d"]),
    "depthwise": (nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, groups=CHANNELS), IMAGE, ["conv2d"]),
    "linear": (nn.Linear(CHANNELS, CHANNELS), TOKENS, ["linear"]),
    "max_pool": (nn.MaxPool2d(3, 1, 1), IMAGE, ["max_pool2d"]),
    "avg_pool": (nn.AvgPool2d(3, 1, 1), IMAGE, ["avg_pool2d"]),
    "layer_norm": (nn.LayerNorm(CHANNELS), TOKENS, ["layer_norm"]),
    "group_norm": (nn.GroupNorm(2, CHANNELS), IMAGE, ["group_norm"]),
    "activation": (nn.Tanh(), TOKENS, ["unary"]),
    "softmax": (nn.Softmax(-1), TOKENS, ["softmax"]),
    "softmax_of_long_rows": (nn.Softmax(-1), (3, 70), ["softmax"]),
    "softmax_of_channels": (nn.Softmax(1), IMAGE, ["softmax"]),
    "nearest": (nn.UpsamplingNearest2d(scale_factor=2), IMAGE, ["upsample_nearest2d"]),
    "nearest_of_channels_last": (
        nn.Sequential(nn.Conv2d(CHANNELS, CHANNELS, 1), nn.UpsamplingNearest2d(scale_factor=2)),
        IMAGE,
        ["conv2d", "upsample_nearest2d"],
    ),
    "bilinear": (nn.UpsamplingBilinear2d(scale_factor=2), IMAGE, ["upsample_bilinear2d"]),
    "sum_of_rows": (Reduced(torch.sum, (-1,)), (4, 5, 40), ["reduce"]),
    "mean_of_columns": (Reduced(torch.mean, (1,)), (4, 7, 40), ["reduce"]),
    "largest_of_few": (Reduced(torch.amax, (2, 3)), IMAGE, ["reduce"]),
    "lstm": (States(nn.LSTM(CHANNELS, CHANNELS)), SERIES, ["linear", "lstm"]),
    "gru": (States(nn.GRU(CHANNELS, CHANNELS)), SERIES, ["linear", "gru"]),
}


def shapes_of(producer: str, operands: int) -> list[tuple[int, ...]]:
    """Of its input, and of that many operands behind it."""
    module, shape, _ = PRODUCERS[producer]
    with torch.no_grad():
        return [shape] + [tuple(module(torch.zeros(shape)).shape)] * operands


ACTIVATIONS: dict[str, Any] = {
    "relu": F.relu,
    "relu6": F.relu6,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
    "elu": F.elu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "silu": F.silu,
    "silu_in_pieces": lambda x: x * torch.sigmoid(x),
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_in_pieces": lambda x: 0.5 * x * (1 + torch.erf(x / 2**0.5)),
    "hardswish": F.hardswish,
    "hardswish_in_pieces": lambda x: x * F.relu6(x + 3) / 6,
    "hardsigmoid": F.hardsigmoid,
    "mish": F.mish,
    "abs": torch.abs,
    "clamp": lambda x: x.clamp(-0.5, 0.75),
}


@pytest.mark.parametrize("producer", PRODUCERS)
def test_activations_run_in_their_producers_launch(producer: str) -> None:
    module, shape, kernels = PRODUCERS[producer]

    class All(nn.Module):
        """The producer with each activation behind it, every time on an input of its own."""

        def __init__(self) -> None:
            super().__init__()
            self.producer = module

        def forward(self, *xs: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return tuple(f(self.producer(x)) for f, x in zip(ACTIVATIONS.values(), xs, strict=True))

    check(All(), [shape] * len(ACTIVATIONS), kernels * len(ACTIVATIONS))


@pytest.mark.parametrize("producer", PRODUCERS)
def test_residuals_scales_and_products_join_too(producer: str) -> None:
    module, _, kernels = PRODUCERS[producer]
    together = Follow(module, lambda x, a, b: torch.relu((x + a) * 0.5) * b - a)
    check(together, shapes_of(producer, 2), kernels)


SUMS: dict[str, tuple[int, Any]] = {
    "coefficients": (2, lambda x, a, b: x + 2 * a + 3 * b),
    "taken_away": (1, lambda x, a: a - x),
    "all_over": (3, lambda x, a, b, c: torch.relu(0.5 * a - (b / 3 - x) - (c - b))),
    "of_a_tree": (4, lambda x, a, b, c, d: ((2 * a + b) + (x - c)) - 0.25 * d),
    "scaled": (1, lambda x, a: torch.clamp(-1.5 * x + a, -0.5, 0.75)),
    "many": (12, lambda x, *all: sum((k * each for k, each in enumerate(all, 2)), x)),
}


@pytest.mark.parametrize("producer", PRODUCERS)
@pytest.mark.parametrize("form", SUMS)
def test_sums_with_coefficients_are_one_step(producer: str, form: str) -> None:
    module, _, kernels = PRODUCERS[producer]
    count, function = SUMS[form]
    check(Follow(module, function), shapes_of(producer, count), kernels)


@pytest.mark.parametrize("producer", PRODUCERS)
def test_sums_in_order_equal_the_single_operations_to_the_last_bit(producer: str) -> None:
    module, _, kernels = PRODUCERS[producer]
    torch.manual_seed(5)
    inputs = tuple(torch.randn(shape) for shape in shapes_of(producer, 3))
    inputs[1].view(-1)[:3] = torch.tensor([float("nan"), float("inf"), -0.0])
    follow = Follow(module, lambda x, a, b, c: torch.relu((0.3 * a - x) + 1.7 * b - c))
    runs = [hetnn.compile(export(follow, inputs), "cpu", fusion=f, deterministic=True) for f in ("on", "off")]
    assert kernels_of(runs[0], *inputs) == kernels
    fused, single = (executable(*inputs) for executable in runs)
    assert torch.equal(fused.isnan(), single.isnan())
    assert torch.equal(fused.nan_to_num(7.0), single.nan_to_num(7.0))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("producer", PRODUCERS)
def test_halves_are_rounded_in_their_producers_launch_as_by_themselves(producer: str, dtype: torch.dtype) -> None:
    """Conversions of the inputs, then the producer's kernels alone; the bits are those of single operations."""
    module, _, kernels = PRODUCERS[producer]
    torch.manual_seed(7)
    inputs = tuple(torch.randn(shape).to(dtype) for shape in shapes_of(producer, 4))
    inputs[1].view(-1)[:4] = torch.tensor([float("nan"), float("inf"), -0.0, 6e-8])

    def function(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
        return torch.tanh(torch.relu((0.3 * a - x) + 1.7 * b - c) - d)

    follow = Follow(copy.deepcopy(module).to(dtype), function)
    program = export(follow, inputs)
    runs = [hetnn.compile(program, "cpu", fusion=fusion) for fusion in ("on", "off")]
    ran = kernels_of(runs[0], *inputs)
    # Weights of 16 bits are read as they are; of many rows of bf16, where the processor multiplies them fast, all is.
    of_halves = {"linear_narrow": "linear", "linear_bf16": "linear"}
    assert [of_halves.get(kernel, kernel) for kernel in ran if kernel != "cast"] == kernels
    # Of the input alone: what lies between two kernels is rounded behind the first one, and stays f32.
    assert ran.count("cast") == 1
    fused, single = (executable(*inputs) for executable in runs)
    assert torch.equal(fused.isnan(), single.isnan())
    assert torch.equal(fused.nan_to_num(7.0), single.nan_to_num(7.0))
    with torch.no_grad():
        want = function(module(inputs[0].float()), *(x.float() for x in inputs[1:]))
    finite = want.isfinite() & fused.isfinite()
    assert int((~finite).sum()) == int(want.isnan().sum()) == int(fused.isnan().sum())
    bound = {torch.float16: 6e-3, torch.bfloat16: 6e-2}[dtype]
    assert float((fused.float() - want)[finite].abs().max()) <= bound


def test_bounds_of_halves_are_in_their_producers_launch_on_any_machine(tmp_path: Path) -> None:
    """Bits are those of single operations; with other instructions a file computes the same, up to a rounding."""
    torch.manual_seed(7)
    module = nn.Sequential(
        nn.Conv2d(16, 40, 3, padding=1), nn.ReLU(), nn.Conv2d(40, 24, 1), nn.ReLU6(), nn.Conv2d(24, 16, 3, stride=2)
    ).to(torch.bfloat16)
    x = torch.randn(2, 16, 13, 11, dtype=torch.bfloat16)
    x[0, 3, 4, 4], x[1, 0, 0, 0] = float("nan"), float("inf")
    program = export(module, (x,))
    fused = hetnn.compile(program, "cpu")
    ran = [row["kernel"] for row in fused.profile(x)]
    assert not {"unary", ""} & set(ran)
    single = hetnn.compile(program, "cpu", fusion="off")
    assert torch.equal(fused(x).nan_to_num(7.0), single(x).nan_to_num(7.0))
    with torch.no_grad():
        want = module(x)
    assert torch.equal(fused(x).isnan(), want.isnan())
    assert torch.allclose(fused(x).nan_to_num(7.0), want.nan_to_num(7.0), rtol=2e-2, atol=2e-2)
    fused.save(tmp_path / "net.hetnn")
    np.save(tmp_path / "x.npy", x.view(torch.int16).numpy())
    code = (
        "import sys, hetnn, numpy as np, torch;"
        "x = torch.from_numpy(np.load(sys.argv[2])).view(torch.bfloat16);"
        "np.save(sys.argv[3], hetnn.load(sys.argv[1])(x).float().numpy())"
    )
    for target in ("avx2", "baseline"):
        command = [
            sys.executable,
            "-c",
            code,
            str(tmp_path / "net.hetnn"),
            str(tmp_path / "x.npy"),
            str(tmp_path / "y.npy"),
        ]
        subprocess.run(command, check=True, env=os.environ | {"HETNN_TARGET": target})
        other = torch.from_numpy(np.load(tmp_path / "y.npy"))
        assert torch.equal(other.isnan(), want.isnan())
        assert torch.allclose(other.nan_to_num(7.0), want.float().nan_to_num(7.0), rtol=2e-2, atol=2e-2)


class Residual(nn.Module):
    """Two convolutions and a sum with what they read, or with a third one's result."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(channels, 24, 3, padding=1), nn.Conv2d(24, out, 3, padding=1)
        self.beside = nn.Conv2d(channels, out, 1) if channels != out else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.second(torch.relu(self.first(x))) + (self.beside(x) if self.beside else x))


def test_sums_of_halves_are_in_their_producers_launch() -> None:
    torch.manual_seed(7)
    module = nn.Sequential(nn.Conv2d(3, 16, 7, stride=2), Residual(16, 16), Residual(16, 40)).to(torch.bfloat16)
    x = torch.randn(2, 3, 29, 31, dtype=torch.bfloat16)
    x[0, 1, 4, 4], x[1, 0, 20, 20] = float("nan"), float("inf")
    program = export(module, (x,))
    fused = hetnn.compile(program, "cpu")
    assert not {"unary", "nary", ""} & {row["kernel"] for row in fused.profile(x)}
    single = hetnn.compile(program, "cpu", fusion="off")
    assert torch.equal(fused(x).nan_to_num(7.0), single(x).nan_to_num(7.0))
    with torch.no_grad():
        want = module(x)
    assert torch.equal(fused(x).isnan(), want.isnan())
    assert torch.allclose(fused(x).nan_to_num(7.0), want.nan_to_num(7.0), rtol=4e-2, atol=4e-2)


def test_what_is_multiplied_by_zero_is_read_unless_it_is_finite() -> None:
    conv = nn.Conv2d(CHANNELS, CHANNELS, 1)
    x, b = torch.randn(IMAGE), torch.full(IMAGE, float("inf"))
    bounded = Follow(conv, lambda x, b: x + 0 * torch.clamp(b, -1, 1))
    executable = hetnn.compile(export(bounded, (x, b)), "cpu")
    assert kernels_of(executable, x, b) == ["conv2d"]
    assert torch.allclose(executable(x, b), conv(x), atol=1e-5)
    unbounded = Follow(conv, lambda x, b: x + 0 * b)
    assert bool(hetnn.compile(export(unbounded, (x, b)), "cpu")(x, b).isnan().all())


def test_convolution_bias_norm_residual_and_activation_are_one_launch() -> None:
    norm = nn.BatchNorm2d(CHANNELS)
    nn.init.uniform_(norm.running_var, 0.5, 2)
    nn.init.normal_(norm.running_mean)
    block = nn.Sequential(nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), norm)
    check(Follow(block, lambda x, a: torch.relu(x + a)), [IMAGE, IMAGE], ["conv2d"])


def test_slopes_of_every_channel_join() -> None:
    prelu = nn.PReLU(CHANNELS)
    nn.init.normal_(prelu.weight)
    check(Follow(nn.Conv2d(CHANNELS, CHANNELS, 1), prelu), [IMAGE], ["conv2d"])


def test_the_pieces_of_a_softmax_join_its_matrix_product() -> None:
    class Scores(nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return torch.softmax(q @ k / 6**0.5 + mask, dim=-1)

    check(Scores(), [(2, 5, CHANNELS), (2, CHANNELS, 8), (2, 5, 8)], ["matmul", "softmax"])


def test_a_norm_takes_the_residual_behind_it_and_the_layer_before_takes_the_one_in_front() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.norm = nn.Linear(CHANNELS, CHANNELS), nn.LayerNorm(CHANNELS)

        def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
            normed: torch.Tensor = self.norm(self.linear(x) + residual)
            return normed + residual

    check(Block(), [TOKENS, TOKENS], ["linear", "layer_norm"])


def test_the_product_of_squeeze_and_excitation_joins_the_convolution_that_reads_it() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.expand, self.project = nn.Conv2d(CHANNELS, 8, 1), nn.Conv2d(8, CHANNELS, 1)
            self.down, self.up = nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = F.hardswish(self.expand(x))
            gate = F.hardsigmoid(self.up(F.relu(self.down(F.adaptive_avg_pool2d(y, 1)))))
            projected: torch.Tensor = self.project(y * gate)
            return projected + x

    # The feature map is read by the pool and by the product, so it is written; what is gated is not.
    check(Block(), [IMAGE], ["conv2d", "adaptive_avg_pool2d", "conv2d", "conv2d", "scaled_conv2d"])


@pytest.mark.parametrize(("size", "joined"), [(112, True), (56, False)])
def test_what_two_convolutions_have_between_is_computed_in_bands_where_caches_do_not_keep_it(
    size: int, joined: bool
) -> None:
    class Inverted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.expand, self.project = nn.Conv2d(4, 64, 1), nn.Conv2d(64, 4, 1)
            self.apart = nn.Conv2d(64, 64, 3, 2, 1, groups=64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            projected: torch.Tensor = self.project(F.relu6(self.apart(F.relu6(self.expand(x)))))
            return projected

    convolutions = ["pointwise_depthwise_conv2d"] if joined else ["conv2d", "conv2d"]
    check(Inverted(), [(1, 4, size, size)], [*convolutions, "conv2d"])


def test_a_norm_joins_the_convolution_that_reads_it() -> None:
    class Dense(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.conv = nn.BatchNorm2d(2 * CHANNELS), nn.Conv2d(2 * CHANNELS, 8, 1)
            self.make = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1)
            for values in (self.norm.running_mean, self.norm.weight):
                assert values is not None
                nn.init.uniform_(values, -1, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            both = torch.cat([x, self.make(x)], 1)
            made: torch.Tensor = self.conv(F.relu(self.norm(both)))
            return torch.cat([both, F.max_pool2d(made, 3, 1, 1)], 1)

    # The concatenation is read twice, so it is written; what is normed is not.
    check(Dense().eval(), [IMAGE], ["conv2d", "concat", "scaled_conv2d", "max_pool2d", "concat"])


def test_the_deepest_producer_is_joined_and_the_other_result_is_its_operand() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = (nn.Conv2d(CHANNELS, CHANNELS, 1) for _ in range(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.a(x) + self.c(torch.relu(self.b(x))))

    torch.manual_seed(1)
    module = Two()
    check(module, [IMAGE], ["conv2d"] * 3)
    rows = hetnn.compile(export(module, (torch.randn(IMAGE),)), "cpu").report(format="dict")["fusions"]
    size = 2 * CHANNELS * 9 * 7 * 4
    weights = (CHANNELS * CHANNELS + CHANNELS) * 4
    (last,) = (row for row in rows if len(row["nodes"]) == 3)
    # One by one: a convolution, a sum and a ReLU; together: the inputs of the first two and the last one's output.
    assert last["bytes_before"] == 7 * size + weights
    assert last["bytes_after"] == 3 * size + weights


def test_no_group_waits_for_itself() -> None:
    class Crossed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = (nn.Conv2d(CHANNELS, CHANNELS, 1) for _ in range(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            a = self.a(x)
            return torch.relu(a) + self.b(a)

    check(Crossed(), [IMAGE], ["conv2d", "conv2d", "unary"])


def _of(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape) + len(shape)))


A, B, ROW = _of(7, 130), _of(7, 130).flip(0), _of(7, 1)
TRUTHS, WORDS = A > 0.3, (8 * A).long()
# What a function computes by comparisons, logic and choices, and the launches that it takes.
MASKS: dict[str, tuple[Any, tuple[torch.Tensor, ...], list[str]]] = {
    "a choice by a comparison": (lambda x, a, b: torch.where(x > 0, a, b), (A, B, A.exp()), ["compare"]),
    "a mask that is multiplied": (lambda x, y: (x > 0.5).float() * y, (A, B), ["compare"]),
    "a mask of a row": (lambda x, y, t: torch.where(x * y > t, x, y), (A, B, ROW), ["binary"]),
    "filled behind a function": (lambda x, m: torch.exp(x).masked_fill(m, 0.0) * 2, (A, TRUTHS), ["unary"]),
    "filled in front": (lambda x, m: torch.sigmoid(x.masked_fill(m, -1e9)), (A, TRUTHS), ["where"]),
    "logic": (lambda x, m: ~((x > 0) & m), (A, TRUTHS), ["compare"]),
    "words that are compared": (lambda w, x: (w != 0).float() * x, (WORDS, A), ["compare"]),
    "truth at the end": (lambda x, y: torch.abs(x - y) < 0.1, (A, B), ["binary"]),
    "subtracted from": (lambda x, y: y - torch.tanh(x), (A, B), ["unary"]),
    "divided by": (lambda x, y: y / (torch.exp(x) + 1), (A, B), ["unary"]),
    "a mask of a product": (lambda x, y: torch.where(x @ y.T > 0, x @ x.T, 0.0), (A, B), ["linear", "linear"]),
    "masked scores": (
        lambda x, y, m: torch.softmax((x @ y / 3).masked_fill(m, float("-inf")), -1),
        (_of(2, 5, 8), _of(2, 8, 5), _of(2, 5, 5) > 1),
        ["matmul", "softmax"],
    ),
    "to half": (lambda x: (x > 0).half(), (A,), ["compare"]),
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("deterministic", [False, True])
def test_masks_are_in_one_launch_with_what_makes_and_takes_them(name: str, deterministic: bool) -> None:
    """Bit for bit as launch by launch, by any number of threads; of NaN, infinities and both zeros, too."""
    function, inputs, kernels = MASKS[name]
    inputs = tuple(x.clone() for x in inputs)
    for x in inputs:
        if x.is_floating_point() and x.shape == A.shape:
            x[2, :5] = torch.tensor([float("nan"), float("inf"), float("-inf"), 0.0, -0.0])
    program = export(Follow(nn.Identity(), function), inputs)
    alone = hetnn.compile(program, "cpu", fusion="off", deterministic=deterministic)
    fused = hetnn.compile(program, "cpu", deterministic=deterministic)
    assert [row["kernel"] for row in fused.profile(*inputs)] == kernels
    want = alone(*inputs)
    torch.testing.assert_close(want, function(*inputs), rtol=1e-5, atol=1e-5, equal_nan=True)
    for threads in (1, 2, 3):
        got = hetnn.compile(program, "cpu", deterministic=deterministic, threads=threads)(*inputs)
        assert got.dtype == want.dtype
        assert got.numpy().tobytes() == want.numpy().tobytes()
    again = pickle.loads(pickle.dumps(fused))
    assert again(*inputs).numpy().tobytes() == want.numpy().tobytes()


@pytest.mark.parametrize("shape", [(7, 5003), (130, 17)])
def test_a_chain_writes_over_what_a_later_step_of_it_reads(shape: tuple[int, int]) -> None:
    def chosen(x: torch.Tensor) -> torch.Tensor:
        q = torch.tanh(x)
        y: torch.Tensor = torch.where(torch.exp(x.abs()) * 2 + 1 > 4, q, torch.zeros(())) * q
        return torch.softmax(y, 1)

    x = torch.randn(shape)
    exe = hetnn.compile(torch.export.export(Function(chosen), (x,)), "cpu", threads=2)
    assert exe.arena_bytes < 1.5 * x.nbytes  # q and what is chosen lie in one place
    np.testing.assert_allclose(np.asarray(exe(x)), chosen(x).numpy(), rtol=1e-5, atol=1e-7)
