"""hetnn behind ONNX Runtime's names: `import hetnn.onnxruntime as onnxruntime` is all that changes in a program.

Providers are targets: `InferenceSession(path, providers=["cpu+relu-only"])`; "CPUExecutionProvider" is "cpu". What a
session would raise there, it raises here, of the same name and with the same parts of the text.
"""

from __future__ import annotations

import types

import hetnn
from hetnn.onnxruntime import errors
from hetnn.onnxruntime.binding import IOBinding
from hetnn.onnxruntime.errors import (
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    NoSuchFile,
    NotImplemented,
    RuntimeException,
)
from hetnn.onnxruntime.options import (
    ExecutionMode,
    GraphOptimizationLevel,
    ModelMetadata,
    NodeArg,
    RunOptions,
    SessionOptions,
)
from hetnn.onnxruntime.session import CPU, InferenceSession
from hetnn.onnxruntime.values import OrtValue

__all__ = [
    "ExecutionMode",
    "Fail",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelMetadata",
    "NoSuchFile",
    "NodeArg",
    "NotImplemented",
    "OrtValue",
    "RunOptions",
    "RuntimeException",
    "SessionOptions",
    "capi",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "get_version_string",
    "preload_dlls",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
]
__version__ = hetnn.__version__
# Where programs look for the kinds of errors.
capi = types.SimpleNamespace(onnxruntime_pybind11_state=errors)


def get_available_providers() -> list[str]:
    """The CPU; targets of hetnn are providers, too: "cpu+relu-only"."""
    return [CPU]


def get_all_providers() -> list[str]:
    """As get_available_providers."""
    return [CPU]


def get_device() -> str:
    """Always "CPU"."""
    return "CPU"


def get_version_string() -> str:
    """Of hetnn."""
    return __version__


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """There are none."""


def set_default_logger_severity(severity: int) -> None:
    """Taken and without effect."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Taken and without effect."""


def disable_telemetry_events() -> None:
    """There are none."""


def enable_telemetry_events() -> None:
    """There are none."""
