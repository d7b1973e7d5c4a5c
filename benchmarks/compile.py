"""How long hetnn.compile takes and how much memory it needs: a row a network and target, each in a process of its own.

    python benchmarks/compile.py [--targets cpu,cpu+relu-only] [--models resnet50,bert] [--repeat 3]

The exported program is given and everything is imported: a tiny network was compiled before. `peak` is what compiling
adds to the process at most and `kept` what remains when the executable stands, beside the size of the saved file.

Files of ONNX follow, a row each: seconds of importing and of importing and compiling, and what importing adds to the
process at most. Those of `onnx-mapped` are 10^9 parameters in a file beside the model, which nothing reads.

Last, quantized files to an NPU by the command `hetnn compile`, a whole process: seconds by the clock and of processors,
the least of some. The files of ONNX are those of quantized.py and need what it needs.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "benchmarks")]

import torch  # noqa: E402

import hetnn  # noqa: E402
from hetnn.importers import import_model  # noqa: E402
from models import nets  # noqa: E402


def bert() -> nets.Case:
    torch.manual_seed(7)
    sizes = {"hidden_size": 768, "num_hidden_layers": 12, "intermediate_size": 3072}
    return nets.Encoder(**sizes).eval(), (torch.randint(0, 30522, (1, 128)), torch.ones(1, 128, dtype=torch.int64))


MODELS: dict[str, Callable[[], nets.Case]] = {
    "resnet50": lambda: nets.vision("resnet50"),
    "densenet121": lambda: nets.vision("densenet121"),
    "maxvit": lambda: nets.vision("maxvit_t"),
    "bert": bert,
}


def chain(folder: Path, nodes: int = 20_000) -> Path:
    """Convolutions, norms, sums and functions of one element, one behind another."""
    makers = [
        lambda v, w: ("Conv", [v, "w"]),
        lambda v, w: ("BatchNormalization", [v, "c", "c", "c", "c"]),
        lambda v, w: ("Relu", [v]),
        lambda v, w: ("Add", [v, w]),
        lambda v, w: ("Sigmoid", [v]),
        lambda v, w: ("Mul", [v, w]),
    ]
    made, names = [], ["x", "x"]
    for k in range(nodes):
        op, inputs = makers[k % len(makers)](names[-1], names[-2])
        made.append(helper.make_node(op, inputs, [f"v{k}"], name=f"n{k}"))
        names.append(f"v{k}")
    weights = {"w": np.eye(4, dtype=np.float32).reshape(4, 4, 1, 1), "c": np.ones(4, np.float32)}
    constants = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    return _written(folder, made, constants, [1, 4, 4, 4])


def mapped(folder: Path, layers: int = 60, width: int = 4096) -> Path:
    """Products with 10^9 parameters, which lie in one sparse file."""
    size = 4 * width * width
    with open(folder / "weights.bin", "wb") as file:
        file.truncate(layers * size)
    made, weights = [], []
    for k in range(layers):
        tensor = onnx.TensorProto(name=f"w{k}", data_type=onnx.TensorProto.FLOAT, dims=[width, width])
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", "weights.bin"), ("offset", k * size), ("length", size)):
            tensor.external_data.add(key=key, value=str(value))
        weights.append(tensor)
        made.append(helper.make_node("MatMul", [f"v{k - 1}" if k else "x", f"w{k}"], [f"v{k}"]))
    return _written(folder, made, weights, [1, width])


def resnet50(folder: Path) -> Path:
    """A residual network of 50 layers, its weights in the model."""
    rng, nodes, constants = np.random.default_rng(0), [], []

    def weight(name: str, *shape: int) -> str:
        constants.append(numpy_helper.from_array(rng.random(shape, np.float32) * np.float32(0.02), name))
        return name

    def add(op: str, inputs: list[str], name: str, **attrs: Any) -> str:
        nodes.append(helper.make_node(op, inputs, [name], name=name, **attrs))
        return name

    def layer(x: str, channels: int, filters: int, kernel: int, stride: int, name: str, act: bool = True) -> str:
        window = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4}
        y = add("Conv", [x, weight(f"{name}.w", filters, channels, kernel, kernel)], name, **window)
        y = add("BatchNormalization", [y, *(weight(f"{name}.{k}", filters) for k in range(4))], f"{name}.norm")
        return add("Relu", [y], f"{name}.relu") if act else y

    x, channels = layer("x", 3, 64, 7, 2, "stem"), 64
    x = add("MaxPool", [x], "pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for stage, (width, blocks) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
        for k in range(blocks):
            name, stride = f"s{stage}.{k}", 2 if stage and not k else 1
            y = layer(layer(x, channels, width, 1, 1, f"{name}.a"), width, width, 3, stride, f"{name}.b")
            y = layer(y, width, 4 * width, 1, 1, f"{name}.c", act=False)
            x = x if k else layer(x, channels, 4 * width, 1, stride, f"{name}.d", act=False)
            x, channels = add("Relu", [add("Add", [y, x], f"{name}.sum")], f"{name}.out"), 4 * width
    x = add("Flatten", [add("GlobalAveragePool", [x], "mean")], "flat")
    add("Gemm", [x, weight("fc.w", 1000, channels), weight("fc.b", 1000)], "y", transB=1)
    return _written(folder, nodes, constants, [1, 3, 224, 224])


def _written(folder: Path, nodes: list[Any], weights: list[Any], shape: list[int]) -> Path:
    given = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "g", [given], [onnx.ValueInfoProto(name=nodes[-1].output[0])], weights)
    path = folder / "model.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())
    return path


FILES: dict[str, Callable[[Path], Path]] = {"onnx-20000": chain, "onnx-resnet50": resnet50, "onnx-mapped": mapped}


def int8_onnx(net: str, folder: Path) -> Path:
    import quantized

    quantized.write(net, folder)
    return folder / "i8.onnx"


def int8_tflite(net: str, folder: Path) -> Path:
    from backends.integer_networks import NETWORKS

    path = folder / "i8.tflite"
    path.write_bytes(NETWORKS[net]())
    return path


WHOLE: dict[str, Callable[[Path], Path]] = {
    "int8-mobilenet": partial(int8_onnx, "mobilenet_v2"),
    "int8-resnet50": partial(int8_onnx, "resnet50"),
    "tflite-mobilenet": partial(int8_tflite, "mobilenet_v2"),
}


def memory_mb(row: str) -> float:
    """Of this process, in 10^6 bytes, as the system sees it: VmRSS now, VmHWM at its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(row))


def measure(name: str, target: str, repeat: int) -> None:
    module, inputs = MODELS[name]()
    program = torch.export.export(module, inputs, strict=False)
    hetnn.compile(torch.export.export(*nets.tiny(), strict=False))
    took = []
    for k in range(repeat):
        gc.collect()
        before = memory_mb("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")
        began = time.perf_counter()
        executable = hetnn.compile(program, target=target)
        took.append(time.perf_counter() - began)
        if k == 0:  # later ones find memory that the first one left
            peak, kept = memory_mb("VmHWM") - before, memory_mb("VmRSS") - before
            with tempfile.TemporaryDirectory() as folder:
                executable.save(Path(folder) / "model.hetnn")
                size = (Path(folder) / "model.hetnn").stat().st_size / 1e6
        del executable
    print(f"{name:14}{target:16}{min(took):8.2f}{took[0]:8.2f}{size:9.1f}{peak:9.0f}{kept:9.0f}", flush=True)


def measure_file(name: str, repeat: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = FILES[name](Path(folder))
        path_size = sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e6
        hetnn.compile(_written(Path(tempfile.mkdtemp(dir=folder)), [helper.make_node("Relu", ["x"], ["y"])], [], [2]))
        imports, compiles = [], []
        for k in range(repeat):
            gc.collect()
            before = memory_mb("VmRSS")
            Path("/proc/self/clear_refs").write_text("5")
            began = time.perf_counter()
            import_model(path)
            imports.append(time.perf_counter() - began)
            if k == 0:
                peak = memory_mb("VmHWM") - before
            if name == "onnx-mapped":
                continue
            began = time.perf_counter()
            hetnn.compile(path)
            compiles.append(time.perf_counter() - began)
    took = f"{min(compiles):10.2f}" if compiles else f"{'':10}"
    print(f"{name:14}{min(imports):10.2f}{took}{path_size:9.1f}{peak:9.0f}", flush=True)


def measure_whole(name: str, target: str, repeat: int) -> None:
    command = [str(Path(sys.executable).parent / "hetnn"), "compile", "--target", target]
    with tempfile.TemporaryDirectory() as folder:
        path = WHOLE[name](Path(folder))
        clock, busy = [], []
        for _ in range(repeat):
            began = time.perf_counter()
            process = subprocess.Popen(
                [*command, str(path), "-o", f"{folder}/out.hetnn"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            _, status, used = os.wait4(process.pid, 0)
            clock.append(time.perf_counter() - began)
            busy.append(used.ru_utime + used.ru_stime)
            if status:
                sys.exit(f"hetnn compile of {name} failed.")
    print(f"{name:18}{target:16}{min(clock):8.2f}{min(busy):8.2f}", flush=True)


def run_alone(call: Callable[..., None], *args: object) -> None:
    """In a process of its own."""
    process = multiprocessing.get_context("spawn").Process(target=call, args=args)
    process.start()
    process.join()
    if process.exitcode:
        sys.exit(f"{args[0]} ended with code {process.exitcode}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", default="cpu,cpu+relu-only")
    parser.add_argument("--models", default=",".join([*MODELS, *FILES, *WHOLE]))
    parser.add_argument("--repeat", type=int, default=3)
    asked = parser.parse_args()
    print(
        f"{'network':14}{'target':16}{'best s':>8}{'first s':>8}{'file MB':>9}{'peak MB':>9}{'kept MB':>9}", flush=True
    )
    names = asked.models.split(",")
    for name in names:
        for target in asked.targets.split(",") if name in MODELS else []:
            run_alone(measure, name, target, asked.repeat)
    if any(name in FILES for name in names):
        print(f"{'file':14}{'import s':>10}{'compile s':>10}{'file MB':>9}{'peak MB':>9}", flush=True)
    for name in names:
        if name in FILES:
            run_alone(measure_file, name, asked.repeat)
    whole = [name for name in names if name in WHOLE]
    if not importlib.util.find_spec("onnxscript"):
        whole = [name for name in whole if name.startswith("tflite")]
    if whole:
        print(f"{'whole process':18}{'target':16}{'clock s':>8}{'cpu s':>8}", flush=True)
    for name in whole:
        run_alone(measure_whole, name, "cpu+relu-only", max(asked.repeat, 10))


if __name__ == "__main__":
    main()
