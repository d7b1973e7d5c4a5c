"""Quantized networks in hetnn beside ONNX Runtime and OpenVINO, and beside hetnn's own f32; a process each, in turns.

    python benchmarks/quantized.py [--nets resnet50,mobilenet_v2,minilm_128] [--threads 2] [--rounds 5] [--json FILE]

The networks have random weights; onnxruntime's static quantizer writes steps to 8 bits around their layers (weights
i8, one scale a filter for convolutions; activations u8), calibrated on random inputs. Every peer reads the same file,
but for `hetnn f32`, which reads the network as it was. Times as in side_by_side.py; `ratio` is the fastest other int8
peer over hetnn, `f32 ratio` hetnn's own f32 over it. Errors are against ONNX Runtime on the quantized file.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from side_by_side import compare, work

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "python"))

NETS = ("resnet50", "mobilenet_v2", "minilm_128")


def write(net: str, folder: Path) -> None:
    """`f32.onnx`, `i8.onnx` and `inputs.npz` of a network."""
    import numpy as np

    from models import nets

    module, inputs = (
        nets.minilm(128) if net == "minilm_128" else nets.NETS[net]() if net in nets.NETS else nets.vision(net)
    )
    arrays = [x.numpy() for x in inputs]
    np.savez(folder / "inputs.npz", **{f"x{k}": array for k, array in enumerate(arrays)})
    write_quantized(module, [arrays], folder, per_channel=net != "minilm_128")


def write_quantized(module: Any, samples: Sequence[Sequence[Any]], folder: Path, per_channel: bool) -> None:
    """`f32.onnx` of a torch module, and `i8.onnx` as onnxruntime's static quantizer writes it from samples."""
    import torch
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    names = [f"x{k}" for k in range(len(samples[0]))]
    plain, prepared = folder / "f32.onnx", folder / "prepared.onnx"
    example = tuple(map(torch.from_numpy, samples[0]))
    torch.onnx.export(module, example, plain, input_names=names, dynamo=True, external_data=False, verbose=False)

    class Samples(quantization.CalibrationDataReader):  # type: ignore[misc]
        """Each of them once."""

        def __init__(self) -> None:
            self.left = iter(samples)

        def get_next(self) -> Any:
            sample = next(self.left, None)
            return None if sample is None else dict(zip(names, sample, strict=True))

    quant_pre_process(plain, prepared, skip_symbolic_shape=True)
    quantization.quantize_static(
        prepared,
        folder / "i8.onnx",
        Samples(),
        per_channel=per_channel,
        activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8,
    )


def instructions() -> str:
    """The best of the instructions with which products of bytes are computed that this processor has."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    except OSError:
        return "unknown"
    known = ("amx_int8", "avx512_vnni", "avx_vnni", "avx2", "asimddp")
    return next((name for name in known if name in flags), "none of their own")


def runtime(path: Path, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def build(peer: str, folder: Path, threads: int) -> tuple[Callable[[], Any], list[Any], list[Any]]:
    """A function that runs the network once, its results, and ONNX Runtime's on the quantized file."""
    import numpy as np

    inputs = dict(np.load(folder / "inputs.npz"))
    session = runtime(folder / "i8.onnx", threads)
    want = session.run(None, inputs)
    if peer == "onnxruntime":
        return lambda: session.run(None, inputs), want, want
    if peer == "openvino":
        import openvino

        core = openvino.Core()
        compiled = core.compile_model(
            folder / "i8.onnx", "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
        )
        request = compiled.create_infer_request()
        outputs = [request.infer(inputs)[out] for out in compiled.outputs]
        return lambda: request.infer(inputs), [np.array(y) for y in outputs], want
    import hetnn

    executable = hetnn.compile(folder / ("f32.onnx" if peer == "hetnn f32" else "i8.onnx"), "cpu", threads=threads)
    arrays = list(inputs.values())

    def run() -> Any:
        y = executable(*arrays)
        return y if isinstance(y, list | tuple) else [y]

    return run, list(run()), want


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        work(*build(args.work, args.folder, args.threads))
        return 0
    names = ["hetnn", "hetnn f32", "onnxruntime"]
    if importlib.util.find_spec("openvino"):
        names.append("openvino")
    rows = []
    print(f"instructions: {instructions()}; threads: {args.threads}", flush=True)
    for net in args.nets.split(","):
        with tempfile.TemporaryDirectory() as folder:
            write(net, Path(folder))
            common = ["--folder", folder, "--threads", str(args.threads)]
            row = compare(net, {name: [__file__, "--work", name, *common] for name in names}, args.threads, args.rounds)
        us = row["us"]
        row["ratio"] = min(time for name, time in us.items() if not name.startswith("hetnn")) / us["hetnn"]
        row["f32_ratio"] = us["hetnn f32"] / us["hetnn"]
        rows.append(row)
        times = "  ".join(f"{name} {time / 1e3:.3f} ms" for name, time in us.items())
        print(
            f"{net:14} {times}  ratio {row['ratio']:.2f}  f32 ratio {row['f32_ratio']:.2f}  errors {row['error']}",
            flush=True,
        )
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
