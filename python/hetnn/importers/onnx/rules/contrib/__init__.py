"""Operators that ONNX Runtime adds to the standard, by family. What a node of each holds stands beside its rule."""

from hetnn.importers.onnx.rules.contrib import (
    accelerated,
    attention,
    blocks,
    cache,
    early,
    experts,
    fused,
    gates,
    group_attention,
    norms,
    plain,
    quantized,
    quantized_layers,
    refused,
    rotary,
    states,
)

__all__ = [
    "accelerated",
    "attention",
    "blocks",
    "cache",
    "early",
    "experts",
    "fused",
    "gates",
    "group_attention",
    "norms",
    "plain",
    "quantized",
    "quantized_layers",
    "refused",
    "rotary",
    "states",
]
