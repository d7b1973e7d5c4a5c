"""hetnn as a backend of ONNX: onnx.backend.base.Backend over `hetnn.compile`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from hetnn.api import compile
from hetnn.errors import InvalidModel
from hetnn.executable import Executable


class OnnxRep(BackendRep):
    """A compiled model; `run` takes inputs in the graph's order, or by name, and returns a tuple with names."""

    def __init__(self, executable: Executable, outputs: Sequence[str]) -> None:
        self.executable = executable
        self._outputs = list(outputs)

    def run(self, inputs: Any, **kwargs: Any) -> Any:
        """The outputs as a named tuple of arrays; `inputs` by name, in the graph's order, or one array alone."""
        if isinstance(inputs, Mapping):
            values = [inputs[port.name] for port in self.executable.inputs]
        else:
            values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        found = self.executable(*values)
        return namedtupledict("Outputs", self._outputs)(*(found if len(self._outputs) != 1 else (found,)))


class OnnxBackend(Backend):
    """`OnnxBackend.prepare(model, target="cpu+relu-only")`; further keywords are those of `hetnn.compile`."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", target: Any = "cpu", **kwargs: Any) -> OnnxRep:
        """Compiles a model; `target` and further keywords are those of `hetnn.compile`.

        InvalidModel for a device that is not CPU: accelerators are named by `target`.
        """
        if not cls.supports_device(device):
            raise InvalidModel(f"the device must be CPU; got '{device}'. Name accelerators by `target`.")
        return OnnxRep(compile(model, target, **kwargs), [output.name for output in model.graph.output])

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> Any:
        """Compiles a model and runs it once; arguments are those of `prepare` and `OnnxRep.run`."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> Any:
        """One node on arrays; `target` and `opset` by keyword."""
        opset = kwargs.pop("opset", onnx.defs.onnx_opset_version())
        names = [name for name in node.input if name]
        ports = [
            onnx.helper.make_tensor_value_info(
                name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), list(array.shape)
            )
            for name, array in zip(names, inputs, strict=True)
        ]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", ports, results)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(node.domain, opset)])
        return cls.run_model(model, inputs, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """True of `CPU` and `CPU:0`; accelerators are part of a target."""
        return device.partition(":")[0] == "CPU"
