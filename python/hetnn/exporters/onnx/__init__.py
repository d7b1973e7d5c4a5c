"""Graphs as ONNX models: `export`, and what of a graph ONNX has no form for."""

from hetnn.exporters.onnx.model import Refusal, export, refusal, unsupported, write

__all__ = ["Refusal", "export", "refusal", "unsupported", "write"]
