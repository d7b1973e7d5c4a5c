"""ONNX Runtime's execution providers as devices."""

from hetnn.backends.onnxruntime.backend import OnnxRuntime

__all__ = ["OnnxRuntime"]
