"""Models of one node beside ONNX Runtime, and what ONNX Runtime itself writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper, parser

import hetnn

MICROSOFT = "com.microsoft"
RNG = np.random.default_rng(0)
_START = RNG.bit_generator.state
Array = np.ndarray[Any, Any]


def restart() -> None:
    """The same numbers again: a file's do not depend on those that were read before it."""
    RNG.bit_generator.state = _START


def f32(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def i32(*values: Any) -> Array:
    return np.array(values, np.int32)


class Node:
    """A model of one node; inputs are arrays, None where one is absent, or a constant of the model."""

    def __init__(self, op: str, *inputs: Any, outputs: int = 1, domain: str = MICROSOFT, **attrs: Any) -> None:
        opset = attrs.pop("opset_of_model", 21)
        self.shared = attrs.pop("shared", {})  # inputs in whose memory ONNX Runtime must write outputs, by these
        types = attrs.pop("types", {})  # of outputs whose types nothing else says
        attrs = {key: value for key, value in attrs.items() if value != []}
        self.op, self.tolerance, self.steps, self.counted = op, 1e-5, 0, 0
        names = ["" if value is None else f"x{k}" for k, value in enumerate(inputs)]
        given = {name: value for name, value in zip(names, inputs, strict=True) if name}
        self.feeds = {name: value for name, value in given.items() if not isinstance(value, Fixed)}
        results = outputs if isinstance(outputs, (list, tuple)) else range(outputs)
        made = [f"y{k}" if k in results else "" for k in range(max(results) + 1)]
        node = helper.make_node(op, names, made, domain=domain, **attrs)
        graph = helper.make_graph(
            [node],
            "g",
            [self.port(name, value) for name, value in self.feeds.items()],
            [self.result(name, types.get(k)) for k, name in enumerate(made) if name],
            [numpy_helper.from_array(value.array, name) for name, value in given.items() if isinstance(value, Fixed)],
        )
        sets = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)]
        self.model = helper.make_model(graph, opset_imports=sets, ir_version=10)

    def port(self, name: str, value: Array) -> onnx.ValueInfoProto:
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        return helper.make_tensor_value_info(name, kind, [f"{name}_{k}" for k in range(value.ndim)])

    def result(self, name: str, kind: int | None) -> onnx.ValueInfoProto:
        return onnx.ValueInfoProto(name=name) if kind is None else helper.make_tensor_value_info(name, kind, None)

    def within(self, tolerance: float = 1e-5, steps: int = 0) -> Node:
        """How far reals, and how many steps integers, may lie apart."""
        self.tolerance, self.steps = tolerance, steps
        return self

    def rows(self, count: int) -> Node:
        """So many rows of a cache say something, those behind them nothing."""
        self.counted = count
        return self

    def fixed_sizes(self) -> onnx.ModelProto:
        """The model with the sizes that its inputs have."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        for port in model.graph.input:
            for size, dim in zip(self.feeds[port.name].shape, port.type.tensor_type.shape.dim, strict=True):
                dim.dim_value = size
        return model

    def __repr__(self) -> str:
        return self.op


class Fixed:
    """A constant of the model."""

    def __init__(self, array: Array) -> None:
        self.array = np.asarray(array)


def of_runtime(model: onnx.ModelProto, feeds: dict[str, Array], shared: dict[str, str] | None = None) -> list[Array]:
    """On one thread: on more, it quantizes what a layer keeps in parts."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    if not shared:
        found: list[Array] = session.run(None, feeds)
        return found
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array.copy()) for name, array in feeds.items()}
    binding = session.io_binding()
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    for output in session.get_outputs():
        if output.name in shared:
            binding.bind_ortvalue_output(output.name, values[shared[output.name]])
        else:
            binding.bind_output(output.name)
    session.run_with_iobinding(binding)
    copied: list[Array] = binding.copy_outputs_to_cpu()
    return copied


def same(mine: Array, theirs: Array, tolerance: float, steps: int) -> None:
    assert mine.dtype == theirs.dtype
    assert mine.shape == theirs.shape
    if theirs.dtype == object:
        assert mine.tolist() == theirs.tolist()
    elif theirs.dtype.kind in "iu":
        assert np.abs(mine.astype(np.int64) - theirs.astype(np.int64)).max(initial=0) <= steps
    else:
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)


def agrees(case: Node, model: onnx.ModelProto) -> None:
    given = hetnn.compile(model)(*case.feeds.values())
    wanted = of_runtime(model, case.feeds, case.shared)
    for mine, theirs in zip(given if isinstance(given, tuple) else [given], wanted, strict=True):
        if case.counted and theirs.ndim == 4:
            mine, theirs = mine[:, :, : case.counted], theirs[:, :, : case.counted]
        same(mine, theirs, case.tolerance, case.steps)


def u8(*shape: int) -> Array:
    return RNG.integers(0, 256, shape, np.uint8)


def i8(*shape: int) -> Array:
    return RNG.integers(-128, 128, shape, np.int8)


def i7(*shape: int) -> Array:
    """Of whose products with unsigned bytes no processor's sums of pairs overflow, as ONNX Runtime's may."""
    return RNG.integers(-64, 64, shape, np.int8)


def step(number: float) -> Fixed:
    return Fixed(np.float32(number))


def zero(number: int, dtype: type = np.uint8) -> Fixed:
    return Fixed(dtype(number))


def saved_by_runtime(model: onnx.ModelProto, folder: Path, level: str = "EXTENDED") -> onnx.ModelProto:
    """What ONNX Runtime's optimizer makes of a model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    onnxruntime.InferenceSession(model.SerializeToString(), options)
    return onnx.load(options.optimized_model_filepath)


def model_of(text: str, **constants: Array) -> onnx.ModelProto:
    sets = '["" : 17, "com.microsoft" : 1]'
    model = parser.parse_model(f"<ir_version: 8, opset_import: {sets}>\n{text}")
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    return model
