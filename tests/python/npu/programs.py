"""Models compiled for an NPU with and without fusion: their instructions, cycles and bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hetnn
from hetnn import _core
from hetnn.targets import load_spec

EVERY_OP = ("sub", "mul", "maximum", "minimum", "clamp")
# Transfers that take so long to begin that a layer is one tile.
ONE_TILE = {"read_latency_cycles": 20_000, "write_latency_cycles": 10_000}
# What computes; the rest of a stream moves data and passes tokens.
ENGINES = ("conv2d", "matmul", "elementwise", "pool", "activation", "reduce")


def target(more: tuple[str, ...] = EVERY_OP, **changes: Mapping[str, Any]) -> dict[str, Any]:
    """relu-only with more operators and other figures."""
    spec: dict[str, Any] = load_spec("relu-only")
    spec["name"] = "vpu"
    for op in more:
        spec["ops"][op] = {"dtypes": ["f32", "f16", "i8"], "max_rank": 4}
    for part, figures in changes.items():
        (spec[part][0] if isinstance(spec[part], list) else spec[part]).update(figures)
    return spec


@dataclass
class Program:
    """One compiled model: what its NPU computes with, its cycles, and the bytes between memory and scratchpad."""

    executable: hetnn.Executable
    code: list[tuple[str, str, dict[str, int]]]  # layer, instruction, fields
    cycles: int
    dma_bytes: int
    layers: list[str]

    def steps(self) -> int:
        """Instructions that compute."""
        return len(self.code)

    def computes(self) -> list[str]:
        """Names of each layer's instructions, with what they carry: `conv2d +old act=1`."""
        lines = [
            (layer, name + " +old" * fields.get("has_addend", 0) + (f" act={fields['act']}" if "act" in fields else ""))
            for layer, name, fields in self.code
        ]
        order = {layer: at for at, layer in enumerate(self.layers)}
        return [line for _, line in sorted(dict.fromkeys(lines), key=lambda each: order[each[0]])]

    def fusions(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.executable.report(format="dict")["fusions"]
        return rows


def build(model: Any, spec: dict[str, Any], folder: Path, **options: Any) -> Program:
    executable = hetnn.compile(model, spec, strategy="take-all", **options)
    report = executable.report(format="dict")
    assert report["nodes_on"]["cpu"] == 0, report["not_on_preferred"]
    path = str(folder / "model.hetnn")
    executable.save(path)
    (stream,) = _core.command_streams(path)
    code = []
    runs = iter(stream["layers"])
    layer, end = "", 0
    for line in stream["text"].splitlines():
        name = line.split()[0]
        if int(line.rsplit(";", 1)[1]) >= end and name != "end":
            layer, words = next(runs)
            end += words
        if name in ENGINES:
            code.append((layer, name, {key: int(value) for key, value in re.findall(r"(\w+)=(-?\d+)", line)}))
    timed = _core.simulate_model(path)
    (subgraph,) = timed["subgraphs"]
    assert timed["total_cycles"] >= timed["lower_bound_cycles"] > 0
    layers = subgraph["layers"]
    # What was planned is what it takes.
    assert report["parts"]["node_us"] == pytest.approx(timed["total_cycles"] * 1e6 / spec["clock_hz"])
    return Program(
        executable,
        code,
        timed["total_cycles"],
        sum(row["dma_bytes"] for row in layers),
        [row["name"] for row in layers],
    )


def both(model: Any, spec: dict[str, Any], folder: Path, **options: Any) -> tuple[Program, Program]:
    """Fused and not. Fused, no more is computed or moved; the report accounts for what layers by themselves would."""
    fused, plain = (build(model, spec, folder, fusion=fusion, **options) for fusion in ("on", "off"))
    assert plain.fusions() == []
    assert not any("+old" in line for line in plain.computes())
    # Unfused layers meet in cascades, which move no more; what is near is chosen by estimates.
    assert fused.cycles <= 1.3 * plain.cycles
    # Tiles of one layer may read what lies at their edges twice where that is sooner done.
    assert fused.dma_bytes <= plain.dma_bytes or fused.cycles < plain.cycles
    for row in fused.fusions():
        # By itself, layer after layer.
        assert row["predicted_us_after"] < row["predicted_us_before"]
        assert row["bytes_after"] < row["bytes_before"]
        assert row["into"] in fused.layers
        assert row["into"] == row["nodes"][0]
        # A fused node is no layer.
        assert not set(row["nodes"][1:]) & set(fused.layers)
    return fused, plain


def export(module: nn.Module, *inputs: Tensor) -> torch.export.ExportedProgram:
    return torch.export.export(module.eval(), inputs, strict=False)


def check_against_torch(module: nn.Module, inputs: tuple[Tensor, ...], programs: tuple[Program, Program]) -> None:
    """Fused and unfused give the same bits, and what torch gives."""
    with torch.no_grad():
        want = module(*inputs)
    got, unfused = (program.executable.run(inputs)[0] for program in programs)
    assert torch.equal(got, unfused)
    assert float((got - want).abs().max()) <= 1e-5 * float(want.abs().max())
