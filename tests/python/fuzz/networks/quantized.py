"""Networks that onnxruntime's quantizer wrote, beside ONNX Runtime's own run of them."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

import hetnn
from fuzz.networks.compare import REFUSALS, Target, Untaken, exported
from fuzz.networks.program import Program
from fuzz.workers import Found

Array = np.ndarray[Any, Any]
# A step of a layer's integers goes through all that follow.
STEPS = 0.08  # beside the largest value


class Samples(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, feeds: list[dict[str, Array]]) -> None:
        self.left = iter(feeds)

    def get_next(self) -> dict[str, Array] | None:
        return next(self.left, None)


def _run(path: Path, feed: dict[str, Array], optimized: bool) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    found: list[Array] = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"]).run(None, feed)
    return found


def attempt_quantized(program: Program, rng: random.Random, targets: list[Target]) -> str:
    """How it ended; Found where a target gives something else than ONNX Runtime."""
    if not program.outputs:
        return "empty"
    try:
        graph = exported(program)
    except Untaken as error:
        return str(error)
    feed = {name: x.numpy() for name, x in program.runs[0].items()}
    with tempfile.TemporaryDirectory() as folder:
        plain, path = Path(folder) / "f.onnx", Path(folder) / "q.onnx"
        kind = rng.choice([QuantType.QInt8, QuantType.QUInt8])
        told = {
            "quant_format": QuantFormat.QDQ,
            "activation_type": kind,
            "weight_type": rng.choice([QuantType.QInt8, kind]),
            "per_channel": rng.random() < 0.5,
            "extra_options": {"ActivationSymmetric": rng.random() < 0.2},
        }
        try:
            hetnn.export(graph, plain)
            quantize_static(plain, path, Samples([feed]), **told)
            wanted, optimized = (_run(path, feed, each) for each in (False, True))
        except Exception as error:
            return f"unquantized {type(error).__name__}"
        for target in targets:
            try:
                found = hetnn.compile(path, target.name, tune=False, **target.options).run([*feed.values()])
            except REFUSALS:
                continue
            for k, (y, right, other) in enumerate(zip(found, wanted, optimized, strict=True)):
                _compare(f"{target}, {told}, output {k}", np.asarray(y), right, other)
    return "equal"


def _compare(what: str, y: Array, right: Array, other: Array) -> None:
    if (y.shape, y.dtype) != (right.shape, right.dtype):
        raise Found(f"{what} is {y.dtype}{y.shape}, of ONNX Runtime {right.dtype}{right.shape}")
    if not y.size or right.dtype.kind != "f":
        return
    far, engines = (float(np.abs(each.astype(np.float64) - right).max()) for each in (y, other))
    allowed = 3 * engines + STEPS * float(np.abs(right).max()) + 1e-5
    if not far <= allowed:
        pair = f"{y.ravel()[:6]}, {right.ravel()[:6]}"
        raise Found(f"{what} is {far:.3g} from ONNX Runtime's, {allowed:.3g} allowed: {pair}")
