"""OpenVINO as a compiler: `cpu+openvino-cpu`, `-gpu`, `-npu`. Needs `hetnn[openvino]`, and `hetnn[onnx]` to compile."""

from __future__ import annotations

import ctypes
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hetnn.backends import measuring, onnx_form
from hetnn.backends.backend import Backend, Port, Reason, Run
from hetnn.backends.openvino_errors import EDGES, errors_in
from hetnn.element_types import numpy_type
from hetnn.errors import Unavailable
from hetnn.machine import default_threads

if TYPE_CHECKING:
    from hetnn import _core

# OpenVINO computes in narrower types than the model's where the processor has them, unless it is told not to.
_CONFIG = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
# What OpenVINO has said of graphs without their constants' values, which are of no account to it.
_reasons: measuring.Known[list[Reason]] = measuring.Known()
_times: measuring.Known[Mapping[str, float] | None] = measuring.Known()


class OpenVino(Backend):
    """A device of OpenVINO. The spec: `variant`, its name there in small letters (cpu where it is absent), and
    `config`, properties of OpenVINO's to compile with, as {"INFERENCE_PRECISION_HINT": "bf16"}."""

    measures = True

    def __init__(self, name: str, spec: Mapping[str, Any]) -> None:
        super().__init__(name, spec)
        try:
            import openvino
        except ModuleNotFoundError as error:
            raise Unavailable(f"device '{name}' needs OpenVINO. Run pip install 'hetnn[openvino]'.") from error
        self._openvino = openvino
        self._core = openvino.Core()
        self._device = str(self.spec.get("variant", "cpu")).upper()
        there = self._core.available_devices
        if self._device not in there and self._device not in {device.split(".")[0] for device in there}:
            raise Unavailable(
                f"device '{name}': OpenVINO finds no {self._device} on this machine; it finds {', '.join(there)}."
            )

    @property
    def version(self) -> str:
        """OpenVINO's own."""
        return str(self._openvino.__version__)

    @cached_property
    def launch_us(self) -> float:
        """What the spec says, else what a subgraph takes that computes next to nothing."""
        if "launch_us" in self.spec:
            return float(self.spec["launch_us"])
        return measuring.visit_us(self)

    def supports(self, node: _core.Graph) -> Iterable[Reason | str]:
        """What ONNX has no form for, and what OpenVINO itself says that the device does not run."""
        return _reasons.once(self._key(node), lambda: self._refusals(node))

    def _key(self, graph: _core.Graph) -> tuple[str, str, str]:
        return self._device, json.dumps(self._config, sort_keys=True), graph.print(constants=False, locations=False)

    def _refusals(self, node: _core.Graph) -> list[Reason]:
        if missing := onnx_form.refusals(node):
            return missing
        try:
            model = self._read(node)
            taken = self._core.query_model(model, self._device, self._config)
        except RuntimeError as error:
            return [Reason("openvino_refuses", node.nodes()[-1]["op"], "a model it reads", _first_line(error))]
        left = sorted({op.get_type_name() for op in model.get_ops() if op.get_friendly_name() not in taken} - EDGES)
        if wrong := next(errors_in(model, node.outputs), None):
            return [wrong]
        if left:
            found = ", ".join(left)
            sentence = f"OpenVINO runs no {found} on {self._device}"
            return [Reason("openvino_lacks", found, "operations of the device", sentence)]
        return []

    def times_us(self, graph: _core.Graph) -> Mapping[str, float] | None:
        """What OpenVINO's own counters say of a graph that is run on zeros; None where sizes are open."""
        return _times.once(self._key(graph), lambda: self._measured_us(graph))

    def _measured_us(self, graph: _core.Graph) -> Mapping[str, float] | None:
        shapes = [shape for _, _, shape in graph.inputs]
        if any(not isinstance(size, int) for shape in shapes for size in shape):
            return None
        compiled = self._core.compile_model(self._read(graph), self._device, {**self._config, "PERF_COUNT": True})
        request = compiled.create_infer_request()
        for k in range(len(shapes)):
            request.get_input_tensor(k).data[...] = 0
        for _ in range(measuring.RUNS):
            request.infer()
        times: dict[str, float] = {}
        for row in request.get_profiling_info():
            times[row.node_name] = times.get(row.node_name, 0.0) + row.real_time.total_seconds() * 1e6
        # What OpenVINO fuses into another has no row, and costs nothing by itself.
        return {node["name"]: times.get(node["name"], 0.0) for node in graph.nodes()}

    def compile(self, graph: _core.Graph) -> bytes:
        """A blob of OpenVINO's own, which the device imports."""
        blob = io.BytesIO()
        self._core.compile_model(self._read(graph), self._device, self._config).export_model(blob)
        return blob.getvalue()

    def open(self, code: bytes, inputs: Sequence[Port], outputs: Sequence[Port]) -> Run:
        """A request of the imported blob."""
        try:
            compiled = self._core.import_model(io.BytesIO(code), self._device, self._config)
        except RuntimeError as error:
            raise Unavailable(
                f"device '{self.name}': OpenVINO does not import the code: {_first_line(error)}. Compile the model "
                "again on this machine."
            ) from error
        request = compiled.create_infer_request()
        types = [port.element_type for port in compiled.inputs]
        # Inputs of which nothing is read, as those that only tell a size, are not among its own.
        places = {port.name: k for k, port in enumerate(inputs)}
        read = [next((places[name] for name in port.get_names() if name in places), -1) for port in compiled.inputs]
        if -1 in read:
            raise Unavailable(f"device '{self.name}': OpenVINO's code reads what is none of {', '.join(places)}.")

        def run(arrays: list[Any]) -> Sequence[Any]:
            for place, k in enumerate(read):
                request.set_input_tensor(place, self._lent(arrays[k], types[place]))
            request.infer()
            return [_array(request.get_output_tensor(k)) for k in range(len(outputs))]

        return run

    def _lent(self, array: Any, type: Any) -> Any:
        """A tensor in the array's memory. OpenVINO's own way copies what is read-only."""
        if not array.size:
            return self._openvino.Tensor(type, self._openvino.Shape(array.shape))
        memory = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
        return self._openvino.Tensor(np.frombuffer(memory, np.uint8), self._openvino.Shape(array.shape), type)

    @cached_property
    def _config(self) -> dict[str, Any]:
        threads = {"INFERENCE_NUM_THREADS": default_threads()} if self._device == "CPU" else {}
        return {**_CONFIG, **threads, **self.spec.get("config", {})}

    def _read(self, graph: _core.Graph) -> Any:
        from hetnn.exporters.onnx import export

        return self._core.read_model(export(graph).SerializeToString(), b"")


def _array(tensor: Any) -> Any:
    # OpenVINO shows the bits of bf16, which numpy lacks, as f16.
    is_brain = tensor.element_type.get_type_name() == "bf16"
    return tensor.data.view(numpy_type("bf16")) if is_brain else tensor.data


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
