"""The engines of the CPU's bench: how each is given a network, and how it runs.

A network is a folder: `model.pt2`, `model.onnx`, `inputs.npz`, `inputs2.npz` and what torch answers, `outputs.npz` and
`outputs2.npz`; engines that read none of them have files of their own (`model.mnn`, `model.ncnn.*`, `model.pte`).
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Arrays = list[Any]
Run = Callable[[], Arrays]
Engine = Callable[[Path, Arrays, int], Run]


def arrays_of(path: Path) -> Arrays:
    import numpy as np

    return [array for _, array in sorted(np.load(path).items())]


def _listed(result: Any) -> Arrays:
    return list(result) if isinstance(result, list | tuple) else [result]


def _hetnn(model: Any, inputs: Arrays, threads: int) -> Run:
    import hetnn

    executable = hetnn.compile(model, "cpu", threads=threads)
    return lambda: _listed(executable(*inputs))


def hetnn_torch(folder: Path, inputs: Arrays, threads: int) -> Run:
    """hetnn, from torch.export."""
    return _hetnn(folder / "model.pt2", inputs, threads)


def hetnn_onnx(folder: Path, inputs: Arrays, threads: int) -> Run:
    """hetnn, from ONNX."""
    return _hetnn(folder / "model.onnx", inputs, threads)


def onnxruntime(folder: Path, inputs: Arrays, threads: int) -> Run:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
    feed = dict(zip([value.name for value in session.get_inputs()], inputs, strict=True))
    return lambda: list(session.run(None, feed))


def openvino(folder: Path, inputs: Arrays, threads: int) -> Run:
    import openvino as ov

    options = {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",  # else it computes in bf16 where the processor can
    }
    request = ov.Core().compile_model(folder / "model.onnx", "CPU", options).create_infer_request()
    kept = [ov.Tensor(array, shared_memory=True) for array in inputs]
    for k, tensor in enumerate(kept):
        request.set_input_tensor(k, tensor)

    def run(kept: Arrays = kept) -> Arrays:
        request.infer()
        return [tensor.data for tensor in request.output_tensors]

    return run


def mnn(folder: Path, inputs: Arrays, threads: int) -> Run:
    import MNN.expr
    import MNN.nn
    import numpy as np

    names = json.loads((folder / "names.json").read_text(encoding="utf-8"))
    config = {"precision": "high", "backend": 0, "numThread": threads}
    runtime = MNN.nn.create_runtime_manager((config,))
    net = MNN.nn.load_module_from_file(
        str(folder / "model.mnn"), names["inputs"], names["outputs"], runtime_manager=runtime
    )
    expr, variables = MNN.expr, []
    for array in inputs:
        whole = array.dtype == np.int64
        variable = expr.const(
            array.astype(np.int32) if whole else array, list(array.shape), expr.NCHW, expr.int if whole else expr.float
        )
        variables.append(expr.convert(variable, expr.NC4HW4) if array.ndim == 4 else variable)
    return lambda: [expr.convert(y, expr.NCHW).read() for y in _listed(net.forward(variables))]


def ncnn(folder: Path, inputs: Arrays, threads: int) -> Run:
    import ncnn as engine
    import numpy as np

    net = engine.Net()
    net.opt.num_threads = threads
    for narrow in ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_storage"):
        setattr(net.opt, f"use_{narrow}", False)
    if net.load_param(str(folder / "model.ncnn.param")) or net.load_model(str(folder / "model.ncnn.bin")):
        raise RuntimeError("ncnn does not read its file")
    whole = [a.astype(np.int32) if a.dtype == np.int64 else a for a in inputs]
    mats = [engine.Mat(np.ascontiguousarray(a.squeeze(0))).clone() for a in whole]
    outputs = len(json.loads((folder / "names.json").read_text(encoding="utf-8"))["outputs"])

    def run() -> Arrays:
        extractor = net.create_extractor()
        for k, mat in enumerate(mats):
            extractor.input(f"in{k}", mat)
        return [np.array(extractor.extract(f"out{k}")[1]) for k in range(outputs)]

    return run


def xnnpack(folder: Path, inputs: Arrays, threads: int) -> Run:
    """By way of ExecuTorch, which has an environment of its own."""
    import torch
    from executorch.extension.pybindings import _C
    from executorch.extension.pybindings.portable_lib import _load_for_executorch

    _C._unsafe_reset_threadpool(threads)
    program = _load_for_executorch(str(folder / "model.pte"))
    tensors = tuple(torch.from_numpy(array) for array in inputs)
    return lambda: [y.numpy() for y in program.forward(tensors)]


def _torch(folder: Path, inputs: Arrays, threads: int, inductor: bool) -> Run:
    import torch

    torch.set_num_threads(threads)
    module: Any = torch.export.load(folder / "model.pt2").module()
    if inductor:
        import torch._inductor.config

        torch._inductor.config.freezing = True
        module = torch.compile(module)
    tensors = [torch.from_numpy(array) for array in inputs]

    def run() -> Arrays:
        with torch.no_grad():
            return [y.numpy() for y in _listed(module(*tensors))]

    return run


def eager(folder: Path, inputs: Arrays, threads: int) -> Run:
    return _torch(folder, inputs, threads, inductor=False)


def inductor(folder: Path, inputs: Arrays, threads: int) -> Run:
    """torch.compile with frozen weights."""
    return _torch(folder, inputs, threads, inductor=True)


ENGINES: dict[str, Engine] = {
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "mnn": mnn,
    "ncnn": ncnn,
    "xnnpack": xnnpack,
    "inductor": inductor,
    "eager": eager,
    "hetnn": hetnn_torch,
    "hetnn-onnx": hetnn_onnx,
}


def prepare(name: str, folder: Path) -> None:
    """Writes the network's folder, with the files of the engines that are installed beside this interpreter."""
    import numpy as np
    import torch
    from networks import build, others

    folder.mkdir(parents=True, exist_ok=True)
    module, inputs = build(name)
    for suffix, given in ("2", others(inputs)), ("", inputs):
        with torch.no_grad():
            outputs = _listed(module(*given))
        np.savez(folder / f"inputs{suffix}.npz", **{f"x{k}": x.numpy() for k, x in enumerate(given)})
        np.savez(folder / f"outputs{suffix}.npz", **{f"y{k}": y.numpy() for k, y in enumerate(outputs)})
    names = {"inputs": [f"in{k}" for k in range(len(inputs))], "outputs": [f"out{k}" for k in range(len(outputs))]}
    (folder / "names.json").write_text(json.dumps(names) + "\n", encoding="utf-8")
    torch.export.save(torch.export.export(module, inputs), folder / "model.pt2")
    torch.onnx.export(
        module,
        inputs,
        folder / "model.onnx",
        input_names=names["inputs"],
        output_names=names["outputs"],
        dynamo=True,
        external_data=False,
        verbose=False,
    )
    # Its own command installs packages for telemetry first, with which onnx does not load.
    convert = [sys.executable, "-c", "import sys, _tools; _tools.mnnconvert(sys.argv)"]
    names_of_files = ["--modelFile", "model.onnx", "--MNNModel", "model.mnn"]
    _quietly([*convert, "-f", "ONNX", *names_of_files, "--bizCode", "hetnn"], folder, "model.mnn")
    torch.jit.trace(module, inputs, check_trace=False).save(str(folder / "model.pt"))
    types = {torch.int64: "i64", torch.float32: "f32"}
    shapes = ",".join(f"{list(x.shape)}{types[x.dtype]}".replace(" ", "") for x in inputs)
    _quietly(["pnnx", "model.pt", f"inputshape={shapes}", "fp16=0"], folder, "model.ncnn.param")


def _quietly(command: list[str], folder: Path, made: str) -> None:
    """An engine whose converter is absent or refuses the network has no file, and no time in the table."""
    with contextlib.suppress(FileNotFoundError, subprocess.TimeoutExpired):
        subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=600)
    if not (folder / made).exists():
        print(f"{folder.name}: there is no {made}", flush=True)


def lower(folder: Path) -> None:
    """Writes `model.pte` from `model.pt2`, by an interpreter that has ExecuTorch."""
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    exported = torch.export.load(folder / "model.pt2")
    program = to_edge_transform_and_lower(exported, partitioner=[XnnpackPartitioner()]).to_executorch()
    (folder / "model.pte").write_bytes(program.buffer)
