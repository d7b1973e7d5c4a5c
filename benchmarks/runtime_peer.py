"""Loads and runs the tiny network of runtime.py (16 → 64 → 4, one thread) in ExecuTorch or LiteRT: size, start, speed.

python benchmarks/runtime_peer.py executorch|litert

Prints one line of JSON: the size of the libraries that a program needs, stripped as they are published, the
milliseconds from a file to the first answer, and runs a second. For an environment that has the peer.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

LIBRARIES = {
    "executorch": [f"lib/libexecutorch{part}.so" for part in ("", "_kernels_optimized", "_backend_xnnpack")],
    "litert": ["libLiteRt.so"],
}
PACKAGES = {"executorch": "executorch", "litert": "ai_edge_litert"}


def executorch(path: Path) -> Callable[[], Callable[[], Any]]:
    """Writes the network to `path`; gives what loads it, which gives what runs it."""
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower
    from executorch.extension.pybindings import portable_lib

    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)).eval()
    exported = torch.export.export(model, (torch.zeros(1, 16),))
    lowered = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()])
    path.write_bytes(lowered.to_executorch().buffer)
    x = (torch.full((1, 16), 0.5),)

    def load() -> Callable[[], Any]:
        program = portable_lib._load_for_executorch(str(path))
        return lambda: program.forward(x)

    return load


def litert(path: Path) -> Callable[[], Callable[[], Any]]:
    """The same for LiteRT."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema
    from ai_edge_litert.interpreter import Interpreter

    model, graph = schema.ModelT(), schema.SubGraphT()
    model.version, model.subgraphs, model.buffers = 3, [graph], [schema.BufferT()]
    graph.tensors, graph.operators, graph.inputs, graph.outputs = [], [], [0], [6]
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.FULLY_CONNECTED
    code.version, model.operatorCodes = 1, [code]
    random = np.random.default_rng(0)

    def tensor(shape: list[int], constant: bool) -> int:
        made = schema.TensorT()
        made.shape, made.type, made.buffer = shape, schema.TensorType.FLOAT32, 0
        if constant:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(random.standard_normal(shape, np.float32).tobytes(), np.uint8)
            made.buffer = len(model.buffers)
            model.buffers.append(buffer)
        graph.tensors.append(made)
        return len(graph.tensors) - 1

    tensor([1, 16], False)
    for size, to, function in [(16, 64, "RELU"), (64, 4, "NONE")]:
        layer, options = schema.OperatorT(), schema.FullyConnectedOptionsT()
        options.fusedActivationFunction = getattr(schema.ActivationFunctionType, function)
        layer.opcodeIndex, layer.builtinOptions = 0, options
        layer.builtinOptionsType = schema.BuiltinOptions.FullyConnectedOptions
        before = len(graph.tensors) - 1
        layer.inputs = [before, tensor([to, size], True), tensor([to], True)]
        layer.outputs = [tensor([1, to], False)]
        graph.operators.append(layer)
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(builder.Output())
    x = np.full((1, 16), 0.5, np.float32)

    def load() -> Callable[[], Any]:
        interpreter = Interpreter(str(path), num_threads=1)
        interpreter.allocate_tensors()
        inputs, outputs = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]

        def run() -> Any:
            interpreter.set_tensor(inputs, x)
            interpreter.invoke()
            return interpreter.get_tensor(outputs)

        return run

    return load


def main() -> None:
    peer = sys.argv[1]
    (folder,) = importlib.util.find_spec(PACKAGES[peer]).submodule_search_locations  # type: ignore[union-attr, misc]
    with tempfile.TemporaryDirectory() as scratch:
        load = {"executorch": executorch, "litert": litert}[peer](Path(scratch) / "tiny")
        begin = time.perf_counter()
        run = load()
        run()
        start_ms = (time.perf_counter() - begin) * 1e3
        count, end = 0, time.perf_counter() + 1
        while time.perf_counter() < end:
            for _ in range(100):
                run()
            count += 100
    megabytes = sum(Path(folder, name).stat().st_size for name in LIBRARIES[peer]) / 1e6
    print(json.dumps({"library_mb": round(megabytes, 2), "start_ms": round(start_ms, 2), "runs_per_second": count}))


if __name__ == "__main__":
    main()
