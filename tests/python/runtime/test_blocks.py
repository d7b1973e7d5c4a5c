"""Batches in blocks: the same results as at once whatever the batch; what mixes entries is left whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hetnn
from hetnn import _runtime

# Two images leave these caches and one does not, and memory is slow: blocks of one image are always faster.
SLOW = {"one": 1, "all": 1}
FAST = {"one": 1e12, "all": 1e12}
SMALL_CACHES = {
    "schema": 2,
    "kernel_us": 0,
    "launch_us": 0,
    "cache_bytes": {"first_level": 1 << 10, "second_level": 1 << 12, "third_level": 1 << 19},
    "bytes_per_us": {"first_level": FAST, "second_level": FAST, "third_level": FAST, "memory": SLOW},
}


class Images(torch.nn.Module):
    """Convolutions, a residual, a gate of the whole image, a class and a map: two outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 8, 3, 2, 1)
        self.wide = torch.nn.Conv2d(8, 24, 1)
        self.depthwise = torch.nn.Conv2d(24, 24, 3, 1, 1, groups=24)
        self.narrow = torch.nn.Conv2d(24, 8, 1)
        self.head = torch.nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.relu(self.stem(x))
        y = x + self.narrow(torch.relu(self.depthwise(torch.relu(self.wide(x)))))
        gated = y * torch.sigmoid(y.mean((2, 3), keepdim=True))
        return self.head(torch.nn.functional.adaptive_avg_pool2d(gated, 1).flatten(1)), torch.cat([gated, y], 1)


class Tokens(torch.nn.Module):
    """Attention with a mask that all entries share."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(32, 96)
        self.outer = torch.nn.Linear(32, 32)
        self.norm = torch.nn.LayerNorm(32)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        n, length, width = x.shape
        q, k, v = (
            part.reshape(n, length, 4, width // 4).transpose(1, 2) for part in self.inner(self.norm(x)).chunk(3, -1)
        )
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask)
        return x + self.outer(y.transpose(1, 2).reshape(n, length, width))


def blocks_of(executable: hetnn.Executable) -> list[int]:
    """Of each subprogram of the CPU."""
    program = json.loads(_runtime.take_apart(executable._engine.image())["program"])
    return [part["code"].get("blocks", 1) for part in program["subprograms"] if part["kind"] == "cpu"]


def compiled(model: Any, inputs: tuple[torch.Tensor, ...], caches: Any = SMALL_CACHES, **more: Any) -> hetnn.Executable:
    return hetnn.compile(model, args=inputs, calibration=caches, deterministic=True, **more)


def arrays(results: Any) -> list[np.ndarray]:
    several = results if isinstance(results, (list, tuple)) else [results]
    return [each.detach().numpy() if isinstance(each, torch.Tensor) else np.asarray(each) for each in several]


@pytest.mark.parametrize("entries", [1, 2, 3, 4, 5, 6, 7, 8, 9])
@pytest.mark.parametrize("threads", [1, 2])
def test_images_in_blocks_are_as_each_by_itself(entries: int, threads: int) -> None:
    torch.manual_seed(entries)
    model = Images().eval()
    x = torch.randn(entries, 3, 48, 40)
    executable = compiled(model, (x,), threads=threads)
    assert (max(blocks_of(executable)) > 1) == (entries > 1)
    found = arrays(executable(x))
    for result, wanted in zip(found, arrays(model(x)), strict=True):
        np.testing.assert_allclose(result, wanted, 1e-4, 1e-5)
    alone = compiled(model, (x[:1],), threads=threads)
    for n in range(entries):
        for result, wanted in zip(found, arrays(alone(x[n : n + 1])), strict=True):
            np.testing.assert_array_equal(result[n : n + 1], wanted)


@pytest.mark.parametrize("entries", [2, 3, 8])
def test_a_mask_without_a_batch_is_read_by_every_block(entries: int) -> None:
    torch.manual_seed(0)
    model = Tokens().eval()
    x, mask = torch.randn(entries, 128, 32), torch.randn(1, 1, 128, 128)
    executable = compiled(model, (x, mask))
    assert max(blocks_of(executable)) > 1
    np.testing.assert_allclose(arrays(executable(x, mask))[0], arrays(model(x, mask))[0], 1e-4, 1e-5)


def over_the_batch(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x - x.mean(0, keepdim=True))


def merged(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x.reshape(-1, 40), 0).reshape(x.shape)


def turned(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x.transpose(0, 1), -1).transpose(0, 1) * 2


def rolled(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x[1:], x[:1]], 0) * torch.softmax(x, 0)


def trained(x: torch.Tensor) -> torch.Tensor:
    y: torch.Tensor = torch.nn.functional.batch_norm(x, None, None, training=True) * 3
    return y


@pytest.mark.parametrize("model", [over_the_batch, merged, turned, rolled, trained])
def test_what_mixes_entries_runs_at_once(model: Callable[[torch.Tensor], torch.Tensor]) -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 3, 48, 40)

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return model(x)

    executable = compiled(Net(), (x,))
    assert blocks_of(executable) == [1]
    np.testing.assert_allclose(arrays(executable(x))[0], arrays(model(x))[0], 1e-4, 1e-5)


def test_layers_that_fit_the_caches_run_at_once() -> None:
    x = torch.randn(8, 3, 48, 40)
    assert blocks_of(hetnn.compile(Images().eval(), args=(x,))) == [1]


def test_blocks_take_less_memory_and_survive_saving(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Images().eval()
    x = torch.randn(8, 3, 48, 40)
    parted, whole = compiled(model, (x,)), compiled(model, (x,), "off")
    assert blocks_of(whole) == [1]
    assert parted.arena_bytes < whole.arena_bytes
    parted.save(tmp_path / "model.hetnn")
    loaded = hetnn.load(tmp_path / "model.hetnn")
    for result, wanted in zip(arrays(loaded(x)), arrays(parted(x)), strict=True):
        np.testing.assert_array_equal(result, wanted)
    rows = {row["node"]: row for row in parted.profile(x)}
    at_once = {row["node"]: row for row in whole.profile(x)}
    assert rows["conv2d"]["macs"] == at_once["conv2d"]["macs"]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("blocks", 0, "blocks"),
        ("blocks", 3, "cannot cut"),
        ("blocks", 1 << 20, "blocks"),
        ("in_blocks", [], "in_blocks leaves out an output"),
    ],
)
def test_damaged_blocks_are_refused(key: str, value: Any, message: str) -> None:
    x = torch.randn(4, 3, 48, 40)
    pieces = _runtime.take_apart(compiled(Images().eval(), (x,))._engine.image())
    program = json.loads(pieces["program"])
    part = next(part for part in program["subprograms"] if part["code"].get("blocks", 1) > 1)
    part["code"][key] = value
    pieces["program"] = json.dumps(program)
    with pytest.raises(hetnn.InvalidModel, match=message):
        hetnn.Executable.from_image(_runtime.put_together(**pieces))
