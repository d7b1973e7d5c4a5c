"""Graphs as ONNX models in tests: exported, checked, run by ONNX Runtime, and beside their meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime

from hetnn import _core
from hetnn.element_types import NUMPY
from hetnn.exporters.onnx import export
from hetnn.importers import import_model
from hetnn.importers.onnx.model import NUMBERS

Array = np.ndarray[Any, Any]
# Of the largest magnitude: how far results of a type may be apart whatever the operator promises.
_IN_NUMPY = {NUMBERS[name] for name in NUMPY}
ROUNDED = {"float64": 1e-12, "float32": 1e-6, "float16": 2e-3, "bfloat16": 2e-2}


def checked(graph: _core.Graph) -> onnx.ModelProto:
    """The model, which onnx finds sound, every inferred type and shape that of the graph."""
    model = export(graph)
    onnx.checker.check_model(model, full_check=True)
    return model


def by_runtime(model: onnx.ModelProto, feeds: Sequence[Array]) -> list[Any] | str | None:
    """What ONNX Runtime gives, or that it has no kernel; None where its arrays lack an element type."""
    types = {port.type.tensor_type.elem_type for port in (*model.graph.input, *model.graph.output)}
    if types - _IN_NUMPY:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented as error:
        return str(error)
    names = [port.name for port in model.graph.input]
    found: list[Any] = session.run(None, dict(zip(names, feeds, strict=True)))
    return found


def again(model: onnx.ModelProto, feeds: Sequence[Array]) -> list[Array]:
    """What the model means when it is imported again."""
    return _core.interpret(import_model(model).graph, list(feeds))


def assert_equal(got: Sequence[Any], wanted: Sequence[Array], tolerance: float, what: str) -> None:
    """Of one type and shape, alike in NaN and infinities, and within the tolerance of the largest magnitude."""
    assert len(got) == len(wanted), what
    for mine, theirs in zip(map(np.asarray, got), wanted, strict=True):
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape), what
        if theirs.dtype.name not in ROUNDED:
            np.testing.assert_array_equal(mine, theirs, err_msg=what)
            continue
        a, b = mine.astype(np.float64), theirs.astype(np.float64)
        finite = np.isfinite(b)
        np.testing.assert_array_equal(a[~finite], b[~finite], err_msg=what)
        largest = float(np.abs(b[finite]).max(initial=0))
        within = max(tolerance, ROUNDED[theirs.dtype.name]) * max(largest, 1e-3)
        assert float(np.abs(a[finite] - b[finite]).max(initial=0)) <= within, what
