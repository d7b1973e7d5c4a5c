"""ONNX models as text, and what their executables must give."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import parser
from onnx.reference import ReferenceEvaluator

import hetnn

_RNG = np.random.default_rng(0)
ADD = "agraph (float[2,3] x, float[3] y) => (float[2,3] z) { z = Add(x, y) }"


def model_of(text: str, opset: int = 18) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')


def f32(*shape: int) -> np.ndarray[Any, Any]:
    return _RNG.standard_normal(shape).astype(np.float32)


def agrees(model: onnx.ModelProto, *inputs: np.ndarray[Any, Any]) -> Any:
    """The executable of a model whose outputs are those of ONNX' reference."""
    exe = hetnn.compile(model)
    same_as_reference(exe, model, *inputs)
    return exe


def same_as_reference(exe: Any, model: onnx.ModelProto, *inputs: np.ndarray[Any, Any]) -> None:
    names = [value.name for value in model.graph.input]
    wanted = ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))
    given = exe(*inputs)
    for mine, theirs in zip(given if isinstance(given, tuple) else [given], wanted, strict=True):
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
