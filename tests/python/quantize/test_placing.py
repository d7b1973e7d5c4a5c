"""What has no integers of its own is quantized as layers that have: decoders and transformers stay on an NPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hetnn
from hetnn.targets import load_spec


class Decoder(nn.Module):
    """An image made larger between two layers, and by nearest pixels behind them."""

    def __init__(self, **how: Any) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.larger = nn.ConvTranspose2d(8, 6, **how)
        self.last = nn.Conv2d(6, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.last(torch.relu(self.larger(torch.relu(self.first(x)))))
        return nn.functional.interpolate(y, scale_factor=2, mode="nearest")


@pytest.mark.parametrize(
    "how",
    [
        {"kernel_size": 2, "stride": 2},
        {"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1},
        {"kernel_size": 4, "stride": (1, 3), "padding": (2, 0)},
        {"kernel_size": 3, "stride": 1, "padding": 1},
        {"kernel_size": 2, "stride": 2, "groups": 2},
    ],
)
def test_a_decoder_is_integers_throughout(how: dict[str, Any]) -> None:
    torch.manual_seed(3)
    module, image = Decoder(**how).eval(), torch.randn(1, 3, 10, 12)
    samples = [(torch.randn(1, 3, 10, 12).numpy(),) for _ in range(6)]
    exported = torch.export.export(module, (image,))
    spec = load_spec("relu-only")
    spec["numerics"]["rounding"] = "half_even_fp32"  # as the processor's
    target = {
        "name": "t",
        "devices": [{"name": "cpu", "kind": "cpu"}, {"name": "npu", "kind": "npu", "spec": spec}],
    }
    quantized = hetnn.quantize(exported, samples, equalize=False)
    placed = hetnn.compile(quantized, target, strategy="take-all")
    on_cpu = {row["op"] for row in placed.report(format="dict")["not_on_preferred"]}
    assert on_cpu <= {"quantize", "dequantize"}
    want = module(image).detach().numpy()
    got = placed(image).numpy()
    assert got.shape == want.shape
    assert np.square(got - want).mean() < 1e-3 * np.square(want).mean()
    # The processor computes the same integers.
    np.testing.assert_array_equal(hetnn.compile(quantized, "cpu")(image).numpy(), got)


class Block(nn.Module):
    """A layer of a transformer behind a layer that brings its input into integers."""

    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.embed, self.before, self.after = nn.Linear(16, width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.to_qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        batch, rows, width = x.shape
        qkv = self.to_qkv(self.before(x)).reshape(batch, rows, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        heads = nn.functional.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2])
        x = x + self.out(heads.transpose(1, 2).reshape(batch, rows, width))
        return x + self.narrow(nn.functional.gelu(self.wide(self.after(x))))


def test_a_transformer_is_integers_on_an_npu_of_rows() -> None:
    """Shares and norms of rows come along where the data sheet has them for i8; elsewhere they stay float."""
    torch.manual_seed(5)
    module, x = Block().eval(), torch.randn(1, 12, 16)
    samples = [(torch.randn(1, 12, 16).numpy(),) for _ in range(8)]
    exported = torch.export.export(module, (x,))
    want = module(x).detach().numpy()
    parts = {}
    for name in ("relu-rows", "relu-only"):
        placed = hetnn.quantize(exported, samples, target=f"cpu+{name}", strategy="take-all", equalize=False)
        report = placed.report(format="dict")
        parts[name] = sum(part["device"] == name for part in report["subgraphs"])
        on_cpu = {row["op"] for row in report["not_on_preferred"]}
        assert (on_cpu <= {"quantize", "dequantize"}) == (name == "relu-rows")
        got = placed(x).numpy()
        assert np.square(got - want).mean() < 2e-3 * np.square(want).mean()
    # The sum that the model returns is of reals, on the NPU too.
    assert parts["relu-rows"] <= 2 < parts["relu-only"]


class Channels(nn.Module):
    """Blocks as ConvNeXt has them: norm and layers over the channels that a permute made the last axis, and a gain."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, width, 4, stride=4)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width)) for _ in range(2)
        )
        self.windows = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1, groups=width) for _ in range(2))
        self.gain = nn.Parameter(torch.linspace(0.2, 1.5, width)[:, None, None])
        self.last = nn.Conv2d(width, 5, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for window, block in zip(self.windows, self.blocks, strict=True):
            x = x + self.gain * block(window(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return self.last(x)


def test_norms_over_channels_are_integers_in_one_part() -> None:
    torch.manual_seed(8)
    module, x = Channels().eval(), torch.randn(1, 3, 24, 24)
    samples = [(torch.randn(1, 3, 24, 24).numpy(),) for _ in range(6)]
    exported = torch.export.export(module, (x,))
    placed = hetnn.quantize(exported, samples, target="cpu+relu-rows", strategy="take-all", equalize=False)
    report = placed.report(format="dict")
    assert sum(part["device"] == "relu-rows" for part in report["subgraphs"]) == 1
    assert {row["op"] for row in report["not_on_preferred"]} <= {"quantize", "dequantize"}
    want, got = module(x).detach().numpy(), placed(x).numpy()
    assert np.square(got - want).mean() < 3e-3 * np.square(want).mean()


class Masked(nn.Module):
    """Attention whose mask is made from what the caller gives, between layers of integers."""

    def __init__(self, mask: Callable[[Tensor], Tensor | None], causal: bool = False) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 4)
        self.mask, self.causal = mask, causal

    def forward(self, x: Tensor, given: Tensor) -> Tensor:
        y = self.first(x).reshape(2, 6, 2, 8).transpose(1, 2) * 2
        y = nn.functional.scaled_dot_product_attention(y, y, y, self.mask(given), is_causal=self.causal)
        return self.last(y.transpose(1, 2).reshape(2, 6, 16))


def lengths(*many: int) -> Tensor:
    """A mask of so many tokens each, of six."""
    return torch.arange(6)[None] < torch.tensor(many)[:, None]


def fixed(seen: Tensor, otherwise: float | None = None) -> Callable[[Tensor], Tensor]:
    """A constant mask, of booleans or of numbers."""
    return lambda _: seen if otherwise is None else torch.where(seen, 0.0, otherwise)


LOWER = torch.ones(6, 6, dtype=torch.bool).tril()
MASKS = {
    "keys of the caller's": Masked(lambda given: given[:, None, None, :]),
    "rows of the caller's": Masked(lambda given: given[:, None, :, None] & given[:, None, None, :]),
    "all": Masked(fixed(torch.ones(6, 6, dtype=torch.bool))),
    "causal": Masked(lambda _: None, causal=True),
    "constant": Masked(fixed(LOWER)),
    "constant that hides a row": Masked(fixed(LOWER.flip(1) & LOWER)),
    "least numbers": Masked(fixed(LOWER, torch.finfo(torch.float32).min)),
    "infinite": Masked(fixed(LOWER & (torch.arange(6) != 2)[:, None], -torch.inf)),
    "moderate numbers": Masked(fixed(LOWER, -1.5)),
}


def masked_by(module: Masked, strategy: str = "take-all") -> tuple[Any, Any, set[str]]:
    """The float module, the compiled one and the operators that stay on the processor."""
    torch.manual_seed(6)
    for layer in module.children():
        layer.reset_parameters()  # what they were made with hangs on what was drawn before
    module = module.eval()
    samples = [(torch.randn(2, 6, 8).numpy(), lengths(1 + k % 6, 6).numpy()) for k in range(24)]
    exported = torch.export.export(module, (torch.randn(2, 6, 8), lengths(5, 6)))
    spec = load_spec("relu-rows")
    spec["numerics"]["rounding"] = "half_even_fp32"
    target = {
        "name": "t",
        "devices": [{"name": "cpu", "kind": "cpu"}, {"name": "npu", "kind": "npu", "spec": spec}],
    }
    placed = hetnn.quantize(exported, samples, target=target, strategy=strategy, equalize=False)
    return module, placed, {row["op"] for row in placed.report(format="dict")["not_on_preferred"]}


@pytest.mark.parametrize("kind", MASKS)
def test_attention_with_a_mask_is_integers(kind: str) -> None:
    """What a mask hides has no share, and a row that it hides altogether none at all, as in attention."""
    module, placed, on_cpu = masked_by(MASKS[kind])
    assert not on_cpu & {"scaled_dot_product_attention", "matmul", "softmax", "add"}
    for many in ((3, 6), (1, 2), (0, 4)):
        torch.manual_seed(sum(many))
        x, given = torch.randn(2, 6, 8), lengths(*many)
        want, got = module(x, given).detach().numpy(), placed(x, given).numpy()
        assert np.square(got - want).mean() < 3e-3 * np.square(want).mean(), many


@pytest.mark.parametrize(
    "mask",
    [
        fixed(LOWER & (torch.arange(6) != 2)[:, None], torch.finfo(torch.float32).min),
        lambda given: torch.where(given[:, None, None, :], 0.0, -torch.inf) + torch.zeros(2, 1, 6, 6),
    ],
    ids=["a row hidden by numbers", "numbers of the caller's"],
)
def test_a_mask_of_which_nothing_is_known_stays_in_attention(mask: Callable[[Tensor], Tensor]) -> None:
    """A row of nothing but the least number has equal shares, one of -inf none: integers tell them not apart."""
    module, placed, on_cpu = masked_by(Masked(mask))
    assert "scaled_dot_product_attention" in on_cpu
    x, given = torch.randn(2, 6, 8), lengths(0, 4)
    want, got = module(x, given).detach().numpy(), placed(x, given).numpy()
    assert np.square(got - want).mean() < 3e-3 * np.square(want).mean()


def test_a_sum_of_several_is_integers_in_pairs() -> None:
    text = """graph @g {stage = imported} (%x: f32[1,2,6,7], %b: f32[1,2,6,7], %c: f32[1,2,6,7]) -> (%y) {
      %w = constant() {value = f32[2,2,1,1] {0.5, -1.5, 0.75, 1.0}} : f32[2,2,1,1]
      %a = conv2d(%x, %w) : f32[1,2,6,7]
      %y = nary(%a, %b, %c) {coefficients = [1.0, 2.0, -3.0]} : f32[1,2,6,7]
    }"""
    rng = np.random.default_rng(5)
    samples = [tuple(rng.standard_normal((1, 2, 6, 7), np.float32) for _ in range(3)) for _ in range(6)]
    executable = hetnn.quantize(text, samples, "int8", "minmax", "cpu+relu-only", strategy="take-all")
    on_cpu = {row["op"] for row in executable.report(format="dict")["not_on_preferred"]}
    assert on_cpu <= {"quantize", "dequantize"}
    want, got = hetnn.compile(text)(*samples[0]), executable(*samples[0])
    assert 0 < np.square(got - want).mean() < 1e-3 * np.square(want).mean()
