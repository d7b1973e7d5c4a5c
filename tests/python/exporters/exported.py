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
from samples import graph_of, random_array

Array = np.ndarray[Any, Any]
OPERATORS = {op["name"]: op for op in _core.operators()}
SIZES = {"n": 3, "m": 2, "h": 9, "w": 7}
# Of the largest magnitude: how far results of a type may be apart whatever the operator promises.
_IN_NUMPY = {NUMBERS[name] for name in NUMPY}
ROUNDED = {"float64": 1e-12, "float32": 1e-6, "float16": 2e-3, "bfloat16": 2e-2}


def made(name: str, sample: str, is_open: bool, like: dict[str, str] | None = None) -> tuple[Any, list[Any]] | None:
    """The sample's graph and inputs; None for what no random numbers are for."""
    numbers = np.random.default_rng(len(sample))
    feeds: list[Any] = []

    def size(text: str) -> int | str:
        if text.isdigit():
            return int(text)
        return text if is_open else SIZES.get(text, text)

    def give(builder: Any, number: int, dtype: str, shape: list[Any]) -> Any:
        known = [int(_evaluated(part)) for part in shape]
        feeds.append(random_array(numbers, dtype, known))
        return builder.add_input(f"x{number}", dtype, shape)

    found = graph_of(OPERATORS[name], sample, size, like, give)
    if found is None:
        return None
    builder, values = found
    for k, value in enumerate(values):
        builder.output(value, f"out{k}")
    return builder.finish(), feeds


def _evaluated(size: Any) -> int:
    whole = _core.Dim.parse(str(size))
    return whole if isinstance(whole, int) else int(str(whole.substitute(SIZES)))


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
