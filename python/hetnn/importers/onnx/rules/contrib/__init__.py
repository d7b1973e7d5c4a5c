"""Operators that ONNX Runtime adds to the standard, by family. What a node of each holds stands beside its rule."""

from hetnn.importers.onnx.rules.contrib import (
    attention,
    fused,
    group_attention,
    norms,
    quantized,
    quantized_layers,
    rotary,
)

__all__ = ["attention", "fused", "group_attention", "norms", "quantized", "quantized_layers", "rotary"]
