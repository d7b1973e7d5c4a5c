"""What reads feature maps one way and has to write them the other way: at a model's ends, and between devices."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import hetnn
from hetnn import _core

sys.path[:0] = [str(Path(__file__).resolve().parents[3] / "tools")]
from samples import as_input, graph_of, random_array  # noqa: E402

OPERATORS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "group_norm": lambda x: F.group_norm(x, 3, torch.arange(6.0), torch.ones(6)),
    "instance_norm": F.instance_norm,
    "layer_norm": lambda x: F.layer_norm(x, x.shape[1:]),
    "batch_norm": lambda x: F.batch_norm(x, torch.zeros(6), torch.arange(1.0, 7.0)),
    "softmax of channels": lambda x: F.softmax(x, 1),
    "softmax of rows": lambda x: F.softmax(x, -1),
    "log_softmax": lambda x: F.log_softmax(x, 1),
    "mean of pixels": lambda x: x.mean((2, 3), keepdim=True),
    "sum of channels": lambda x: x.sum(1, keepdim=True),
    "unary": torch.tanh,
    "binary": lambda x: x * torch.linspace(0, 1, 6 * 36).reshape(6, 6, 6),
    "where": lambda x: torch.where(x > 0.1, x, -2 * x),
    "cast": lambda x: x.to(torch.int32).to(torch.float32),
    "concat": lambda x: torch.cat([x, x + 1], 1),
    "slice": lambda x: x[:, 1:4],
    "pad": lambda x: F.pad(x, (1, 2, 0, 1)),
    "flip": lambda x: x.flip(1),
    "nearest": lambda x: F.interpolate(x, scale_factor=2.0),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
    "maximum of windows": lambda x: F.max_pool2d(x, 2),
    "cumsum": lambda x: x.cumsum(1),
    "permute": lambda x: x.permute(0, 1, 3, 2),
}


class Between(nn.Module):
    """An operator behind a convolution, or before one with a ReLU between, or both; its own values come out, too."""

    def __init__(self, op: Callable[[torch.Tensor], torch.Tensor], before: bool, behind: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.op, self.before, self.behind = op, before, behind
        self.first = nn.Conv2d(6, 6, 3, padding=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = self.op(self.first(x) if self.before else x)
        return (y, y.relu() + 1) if self.behind else (y,)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("rows", [6, 5])
def test_numbers_of_channels_behind_it(name: str, rows: int) -> None:
    """Slopes and factors, one a channel, of images whose lines may be as long as there are channels."""
    op, x = OPERATORS[name], torch.randn(2, 6, 6, 6, generator=torch.Generator().manual_seed(1))
    x = x if name == "binary" else x[..., :rows]
    many = op(x).shape[1]
    slopes = torch.linspace(-1, 2, many)

    def model(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return F.prelu(op(x), slopes), (op(x) * slopes[:, None, None] - 1).relu()

    for mine, theirs in zip(hetnn.compile(model, args=(x,))(x), model(x), strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-5, atol=1e-5)


class Joined(nn.Module):
    """An operator that reads a part of a whole, and whose result is a part of another."""

    def __init__(self, op: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.op = op
        self.first, self.second = nn.Conv2d(6, 6, 3, padding=1), nn.Conv2d(6, 20, 3, padding=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        part = self.first(x)
        y = self.op(part)
        cut = self.op(self.second(x)[:, 7:13])
        return torch.cat([self.second(x), part], 1).relu(), torch.cat([y, y + 1, cut], 1).relu()


@pytest.mark.parametrize("name", OPERATORS)
def test_parts_of_wholes(name: str) -> None:
    x = torch.randn(2, 6, 6, 6, generator=torch.Generator().manual_seed(1))
    model = Joined(OPERATORS[name]).eval()
    exe = hetnn.compile(model, "cpu", args=(x,))
    for mine, theirs in zip(exe(x.numpy()), model(x), strict=True):
        np.testing.assert_allclose(mine, theirs.detach().numpy(), rtol=2e-5, atol=2e-5)
    assert "view" in [row["kernel"] for row in exe.profile(x.numpy()) if "cat" in row["node"]]


class Blocks(nn.Module):
    """Dense layers, a channel shuffle, and convolutions between permutations."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.dense = nn.ModuleList([nn.Conv2d(16 + 8 * k, 8, 3, padding=1) for k in range(3)])
        self.branch, self.depthwise = nn.Conv2d(20, 20, 1), nn.Conv2d(40, 40, 3, padding=1, groups=40)
        self.linear = nn.Linear(40, 40)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [self.stem(x)]
        for layer in self.dense:
            parts.append(layer(torch.cat(parts, 1).relu()))
        y = torch.cat(parts, 1)
        for _ in range(2):
            a, b = y.chunk(2, 1)
            y = torch.cat([a, self.branch(b).relu()], 1)
            y = y.view(len(y), 2, 20, *y.shape[2:]).transpose(1, 2).flatten(1, 2)
        for _ in range(2):
            y = y + self.linear(self.depthwise(y).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return self.depthwise(y)


@pytest.mark.parametrize("batch", [1, 3])
def test_nothing_is_moved_between_blocks(batch: int) -> None:
    x = torch.randn(batch, 3, 9, 7, generator=torch.Generator().manual_seed(1))
    model = Blocks().eval()
    exe = hetnn.compile(model, "cpu", args=(x,))
    np.testing.assert_allclose(exe(x.numpy()), model(x).detach().numpy(), rtol=2e-5, atol=2e-5)
    kernels = [row["kernel"] for row in exe.profile(x.numpy())]
    # Halves of the first shuffle, all of the second.
    assert kernels.count("gather_channels") == 3
    # Half of what lies in the last dense layer's input goes on into another whole.
    assert kernels.count("concat") == 1
    assert not {"slice", "reshape", "binary"} & set(kernels)
    plain = hetnn.compile(model, "cpu", args=(x,), fusion=False)
    np.testing.assert_allclose(exe(x.numpy()), plain(x.numpy()), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only"])
@pytest.mark.parametrize("name", OPERATORS)
def test_every_mixture(name: str, target: str) -> None:
    x = torch.randn(2, 6, 6, 6, generator=torch.Generator().manual_seed(1))
    for before, behind in ((True, False), (False, True), (True, True)):
        model = Between(OPERATORS[name], before, behind).eval()
        exe = hetnn.compile(model, target, args=(x,))
        got = exe(x.numpy())
        wanted = model(x)
        for mine, theirs in zip(got if isinstance(got, tuple) else (got,), wanted, strict=True):
            np.testing.assert_allclose(mine, theirs.detach().numpy(), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("groups", [2, 3])
def test_a_part_of_ordered_channels_is_a_result(groups: int) -> None:
    class Cut(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            y = x.view(2, groups, 6 // groups, 4, 5).transpose(1, 2).reshape(2, 6, 4, 5)
            return torch.roll(y, 1, 1)[:, :2], y[:, 3:]

    x = torch.randn(2, 6, 4, 5)
    for got, wanted in zip(hetnn.compile(Cut(), args=(x,))(x), Cut()(x), strict=True):
        assert torch.equal(got, wanted)


@pytest.mark.parametrize("op", ["mul", "floor_divide", "maximum"])
@pytest.mark.parametrize("anchor", ["matmul", "group_norm", "expand"])
def test_steps_read_what_lies_as_the_result_is_written(anchor: str, op: str) -> None:
    """A convolution on an accelerator alone reads it, and there it lies with its channels last."""
    builder = _core.GraphBuilder("g")
    shape = [2, 6, 6, 6]
    x, w, c = (builder.add_input(name, "f32", size) for name, size in (("x", shape), ("w", shape[1:]), ("c", shape)))
    made = {
        "matmul": lambda: builder.create("matmul", [x, w], {}),
        "group_norm": lambda: builder.create("group_norm", [x], {"groups": 3}),
        "expand": lambda: builder.create("expand", [w], {"shape": shape}),
    }[anchor]()
    made = builder.create(op, [made[0], c], {})
    builder.output(convolved(builder, made[0]))
    graph = builder.finish()
    exe = hetnn.compile(str(graph.print()), "cpu+relu-only", pin={"conv2d": "relu-only"})
    assert exe.report(format="dict")["nodes_on"]["relu-only"] > 0
    feeds = [random_array(np.random.default_rng(k), port.dtype, port.shape) for k, port in enumerate(exe.inputs)]
    np.testing.assert_allclose(exe(*feeds), _core.interpret(graph, feeds)[0], rtol=1e-4, atol=1e-4)


def is_map(dtype: str, shape: Any) -> bool:
    return dtype == "f32" and len(shape) == 4 and all(isinstance(n, int) and n > 0 for n in shape)


def convolved(builder: Any, value: Any) -> Any:
    channels = value.shape[1]
    weight = np.random.default_rng(2).standard_normal((channels, channels, 1, 1)) / channels
    return builder.create("conv2d", [value, builder.constant(weight.astype(np.float32))], {})[0]


def between(op: dict[str, Any], sample: str, before: bool, step: bool, also: bool) -> tuple[Any, list[Any], list[str]]:
    """The sample's graph with convolutions behind its feature maps, its inputs, and the names of the convolutions.

    `before`: some are before, too; `step`: it is multiplied first; `also`: it is an output, too.
    """
    feeds: list[Any] = []
    names: list[str] = []
    numbers = np.random.default_rng(1)

    def give(builder: Any, dtype: str, shape: Any) -> Any:
        feeds.append(random_array(numbers, dtype, shape))
        return as_input(builder, len(feeds), dtype, shape)

    def convolve(builder: Any, value: Any) -> Any:
        value = convolved(builder, value)
        names.append(value.name)
        return value

    def given(builder: Any, _: int, dtype: str, shape: Any) -> Any:
        value = give(builder, dtype, shape)
        return convolve(builder, value) if before and is_map(dtype, shape) else value

    found = graph_of(op, sample, lambda size: int(size) if size.isdigit() else 2, given=given)
    if found is None:
        return None, [], []
    builder, values = found
    for value in values:
        behind = is_map(value.dtype, value.shape)
        if behind and step:
            (value,) = builder.create("mul", [value, give(builder, "f32", value.shape)], {})
        if also or not behind:
            builder.output(value)
        if behind:
            builder.output(convolve(builder, value))
    return builder.finish(), feeds, names


@pytest.mark.parametrize(
    ("before", "target"),
    [
        (False, "cpu"),
        (True, "cpu"),
        (True, "cpu+relu-only"),
        pytest.param(False, "cpu+relu-only", marks=pytest.mark.long),
    ],
)
def test_every_operator_on_feature_maps(before: bool, target: str) -> None:
    tried = 0
    for op in _core.operators():
        for sample in op["samples"] if op["name"] not in ("constant", "draw", "image_decode") else ():
            for step, also in ((False, False), (True, False), (True, True)):
                graph, feeds, names = between(op, sample, before, step, also)
                if not names:
                    continue
                pins = dict.fromkeys(names, "relu-only") if target != "cpu" else {}
                got = hetnn.compile(str(graph.print()), target, pin=pins)(*feeds)
                wanted = _core.interpret(graph, feeds)
                for mine, theirs in zip(got if isinstance(got, list | tuple) else [got], wanted, strict=True):
                    np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-3, err_msg=sample)
                tried += 1
    assert tried > 200
