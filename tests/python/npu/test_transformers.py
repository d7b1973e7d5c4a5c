"""Transformers that ONNX Runtime's static quantizer wrote, on an integer NPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process
from torch import nn

import hetnn
from models import nets

Made = tuple[nn.Module, tuple[torch.Tensor, ...]]


def encoder() -> Made:
    sizes = {"vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    module = nets.Encoder(**sizes, intermediate_size=128)
    return module, (torch.randint(0, 100, (1, 24)), torch.ones(1, 24, dtype=torch.int64))


class Features(nn.Module):
    """The logits of a network of the transformers package."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: torch.Tensor) -> Any:
        return self.network(x).logits


def image_classifier() -> Made:
    nets.declare_torchvision_operators()
    import transformers as t

    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    config = t.ViTConfig(image_size=32, patch_size=8, num_labels=10, **sizes)
    return Features(t.ViTForImageClassification(config)), (torch.randn(1, 3, 32, 32),)


def gated_by_tanh() -> Made:
    """A layer's halves around GELU as GPT-2 writes it: powers, products with numbers, and a sum of two branches."""
    return nn.Sequential(nn.Linear(32, 64), nn.GELU(approximate="tanh"), nn.Linear(64, 32)), (torch.randn(6, 32),)


class Listener(nn.Module):
    """How Whisper begins: convolutions of a line, whose positions are normalized then."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv1d(12, 16, 3, padding=1), nn.Conv1d(16, 16, 3, stride=2, padding=1)
        self.norm, self.last = nn.LayerNorm(16), nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gelu = nn.functional.gelu
        return self.last(self.norm(gelu(self.second(gelu(self.first(x)))).permute(0, 2, 1)))


def listener() -> Made:
    return Listener(), (torch.randn(1, 12, 40),)


def quantized(made: Made, folder: Path) -> tuple[Path, dict[str, Any]]:
    module, inputs = made
    names = [f"x{k}" for k in range(len(inputs))]
    plain, prepared, path = (folder / f"{name}.onnx" for name in ("plain", "prepared", "i8"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module.eval(), inputs, plain, input_names=names, dynamo=False)
    arrays = {name: x.numpy() for name, x in zip(names, inputs, strict=True)}

    class Once(quantization.CalibrationDataReader):  # type: ignore[misc]
        """The inputs, once."""

        def __init__(self) -> None:
            self.left = [arrays]

        def get_next(self) -> Any:
            return self.left.pop() if self.left else None

    quant_pre_process(plain, prepared, skip_symbolic_shape=True)
    quantization.quantize_static(prepared, path, Once())
    return path, arrays


def noise_db(got: Any, want: Any) -> float:
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    return float(10 * np.log10(np.sum(want**2) / np.sum((got - want) ** 2)))


@pytest.mark.parametrize("make", [encoder, image_classifier, gated_by_tanh, listener])
def test_a_transformer_is_one_subgraph_of_the_npu(make: Callable[[], Made], tmp_path: Path) -> None:
    torch.manual_seed(3)
    path, arrays = quantized(make(), tmp_path)
    executable = hetnn.compile(path, "cpu+relu-rows", strategy="take-all")
    report = executable.report(format="dict")
    devices = [part["device"] for part in report["subgraphs"]]
    assert devices.count("relu-rows") == 1, report["not_on_preferred"]
    assert len(devices) <= 3, report["not_on_preferred"]
    assert report["macs_on"]["cpu"] == 0
    inputs = [arrays[value.name] for value in onnxruntime.InferenceSession(path).get_inputs()]
    (got,), (on_cpu,) = executable.run(inputs), hetnn.compile(path, "cpu").run(inputs)
    want = onnxruntime.InferenceSession(tmp_path / "plain.onnx").run(None, arrays)[0]
    assert noise_db(got, want) > noise_db(on_cpu, want) - 1
