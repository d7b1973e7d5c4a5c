"""ONNX Runtime's kinds of errors, and hetnn's under their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import hetnn

_Result = TypeVar("_Result")


class Fail(RuntimeError):
    """A run or a compilation failed."""


class InvalidArgument(ValueError):
    """An input of the wrong name, type or shape."""


class NoSuchFile(FileNotFoundError):
    """There is no model at the path."""


class InvalidProtobuf(ValueError):
    """The file is no model."""


class InvalidGraph(ValueError):
    """The model breaks a rule of the format."""


class NotImplemented(NotImplementedError):
    """The model uses what hetnn lacks."""


class RuntimeException(RuntimeError):
    """A run ended early."""


def translated(call: Callable[[], _Result], loads: bool = False) -> _Result:
    """What hetnn raises, under ONNX Runtime's names; `loads`: while a model is read, not run."""
    try:
        return call()
    except hetnn.Unsupported as error:
        lacking = NotImplemented(f"[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : {error}")  # the class above, no builtin
        raise lacking from error
    except hetnn.InvalidModel as error:
        if loads:
            raise InvalidGraph(f"[ONNXRuntimeError] : 10 : INVALID_GRAPH : {error}") from error
        raise InvalidArgument(f"[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : {error}") from error
    except hetnn.Unavailable as error:
        raise RuntimeException(f"[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : {error}") from error
    except hetnn.Error as error:
        raise Fail(f"[ONNXRuntimeError] : 1 : FAIL : {error}") from error
