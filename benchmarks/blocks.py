"""Products with weights of 4 bits in blocks, in hetnn beside ONNX Runtime's MatMulNBits; a process each, in turns.

    python benchmarks/blocks.py [--shapes 4096x4096,4096x11008] [--rows 1,128] [--block 32] [--threads 2] [--rounds 5]

`accuracy 0` is ONNX Runtime in f32, `accuracy 4` with x rounded to 8 bits. Errors are against f64. Times as in
side_by_side.py; `ratio` is each of them over hetnn, which computes with the error of f32.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any

from side_by_side import compare, work

PEERS = {"hetnn": 0, "accuracy 0": 0, "accuracy 4": 4}


def model_of(columns: int, rows: int, block: int, batch: int, accuracy: int) -> tuple[Any, Any, Any]:
    """A model of one product, x, and what it gives in f64."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (rows, columns // block, block // 2), np.uint8)
    steps = rng.uniform(0.01, 0.02, (rows, columns // block)).astype(np.float32)
    x = rng.standard_normal((batch, columns)).astype(np.float32)
    told = {"K": columns, "N": rows, "bits": 4, "block_size": block, "accuracy_level": accuracy}
    node = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", **told)
    graph = helper.make_graph(
        [node],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, rows])],
        [numpy_helper.from_array(codes, "w"), numpy_helper.from_array(steps, "s")],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    numbers = np.stack([codes & 15, codes >> 4], -1).reshape(rows, -1, block).astype(np.float64) - 8
    weight = (numbers * steps[..., None]).reshape(rows, columns)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), x, x @ weight.T


def build(peer: str, sizes: list[int], threads: int) -> tuple[Callable[[], Any], list[Any], list[Any]]:
    """A function that multiplies once, its result, and what is wanted."""
    model, x, wanted = model_of(*sizes, PEERS[peer])
    if peer == "hetnn":
        import hetnn

        executable = hetnn.compile(model, "cpu", threads=threads)
        return lambda: executable(x), [executable(x)], [wanted]
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"x": x}), session.run(None, {"x": x}), [wanted]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default="4096x4096,4096x11008")
    parser.add_argument("--rows", default="1,128")
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--sizes", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        work(*build(args.work, [int(size) for size in args.sizes.split(",")], args.threads))
        return 0
    for shape in args.shapes.split(","):
        for batch in args.rows.split(","):
            columns, rows = shape.split("x")
            common = ["--sizes", f"{columns},{rows},{args.block},{batch}", "--threads", str(args.threads)]
            commands = {peer: [__file__, "--work", peer, *common] for peer in PEERS}
            row = compare(shape, commands, args.threads, args.rounds)
            us = row["us"]
            times = "  ".join(f"{peer} {time / 1e3:.3f} ms" for peer, time in us.items())
            ratios = "  ".join(f"{us[peer] / us['hetnn']:.2f}" for peer in PEERS if peer != "hetnn")
            errors = "  ".join(f"{error:.1e}" for error in row["error"].values())
            print(f"{shape:12} rows {batch:>4}  {times}  ratios {ratios}  errors {errors}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
