"""hetnn compiles a neural network into one program for several processors.

Names are loaded when they are first used, so that `import hetnn` imports neither the compiler nor torch.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from hetnn.errors import DoesNotFit, Error, InternalError, InvalidModel, Unavailable, Unsupported

if TYPE_CHECKING:
    from hetnn.api import check as check
    from hetnn.api import compile as compile
    from hetnn.api import export as export
    from hetnn.api import plan as plan
    from hetnn.backends import register_backend as register_backend
    from hetnn.calibration import calibrate as calibrate
    from hetnn.dynamo.report import torch_report as torch_report
    from hetnn.executable import Executable as Executable
    from hetnn.executable import load as load
    from hetnn.inside.replay import replay as replay
    from hetnn.onnx_backend import OnnxBackend as OnnxBackend
    from hetnn.planning import Plan as Plan
    from hetnn.planning import generate_problem as generate_problem
    from hetnn.planning import plan_problem as plan_problem
    from hetnn.quantization.quantizer import quantize as quantize
    from hetnn.store import Store as Store
    from hetnn.training import compile_training as compile_training

__version__ = "0.1.0"

# Public name -> the module that holds it.
_HOMES = {
    "compile": "hetnn.api",
    "compile_training": "hetnn.training",
    "export": "hetnn.api",
    "plan": "hetnn.api",
    "check": "hetnn.api",
    "calibrate": "hetnn.calibration",
    "register_backend": "hetnn.backends",
    "Executable": "hetnn.executable",
    "load": "hetnn.executable",
    "OnnxBackend": "hetnn.onnx_backend",
    "Plan": "hetnn.planning",
    "plan_problem": "hetnn.planning",
    "generate_problem": "hetnn.planning",
    "quantize": "hetnn.quantization.quantizer",
    "replay": "hetnn.inside.replay",
    "Store": "hetnn.store",
    "torch_report": "hetnn.dynamo.report",
}

__all__ = [
    "DoesNotFit",
    "Error",
    "Executable",
    "InternalError",
    "InvalidModel",
    "OnnxBackend",
    "Plan",
    "Store",
    "Unavailable",
    "Unsupported",
    "calibrate",
    "check",
    "compile",
    "compile_training",
    "export",
    "generate_problem",
    "load",
    "plan",
    "plan_problem",
    "quantize",
    "register_backend",
    "replay",
    "torch_report",
]
# Packages whose own names are used, without an import of their own.
_PACKAGES = ("backends", "onnxruntime")


if os.environ.get("HETNN_LOG"):
    from hetnn.log import show_as_asked

    show_as_asked()


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"hetnn.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'hetnn' has no attribute '{name}'; it has {', '.join(__all__)}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
