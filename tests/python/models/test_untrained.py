"""Networks whose activations shrink to almost nothing: rewriting must keep their digits, not only their size."""

from __future__ import annotations

import torch
from torch import nn

import hetnn
from models import nets


def test_mobilenet_without_training_stays_on_the_npu_with_its_digits() -> None:
    """35 ReLU6, each rewritten; without statistics of its own a batch norm leaves the shrinking of its convolution."""
    model, inputs = nets.vision("mobilenet_v2", 64)
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.reset_running_stats()
            layer.reset_parameters()
    with torch.no_grad():
        want = model(*inputs)
        assert 0 < model.features(*inputs).abs().max() < 1e-4
    exe = hetnn.compile(torch.export.export(model, inputs, strict=False), target="cpu+relu-only", rewrite="always")
    report = exe.report(format="dict")
    assert report["nodes_on"]["cpu"] == 0
    assert {row["rule"] for row in report["rewrites"]} == {"clamp_from_relu", "clamp_from_zero"}
    assert float((exe(*inputs) - want).abs().max()) <= 1e-5 * float(want.abs().max())
