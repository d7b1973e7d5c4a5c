"""Networks on other people's compilers as devices, beside those tools by themselves and beside hetnn's own CPU.

Engines take turns, round by round; all results are compared with eager torch. `python benchmarks/devices/networks.py
[--target cpu+openvino-cpu] [--network NAME] [--threads 2] [--json FILE]`, NAME minilm or a torchvision classifier. A
target whose device is not on this machine says so.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import hetnn
from hetnn import _core
from hetnn.exporters.onnx import export
from hetnn.importers import import_model

NETWORKS = ["resnet50", "mobilenet_v2", "minilm"]
# Short turns, since a machine's speed changes from second to second; the first run of a turn is not counted.
ROUNDS, RUNS = 25, 4


def openvino_alone(model: bytes, variant: str, threads: int) -> Callable[[Any], Any]:
    import openvino

    config: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    if variant == "cpu":
        config["INFERENCE_NUM_THREADS"] = threads
    core = openvino.Core()
    request = core.compile_model(core.read_model(model, b""), variant.upper(), config).create_infer_request()
    return lambda given: request.infer(dict(enumerate(given)), share_inputs=True, share_outputs=True)[0]


def onnxruntime_alone(model: bytes, variant: str, threads: int) -> Callable[[Any], Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    (provider,) = [p for p in onnxruntime.get_available_providers() if p.lower() == f"{variant}executionprovider"]
    # In the model's type, as hetnn asks for; the provider's default are products of 10 bits.
    exact = {"use_tf32": "0"} if variant == "cuda" else {}
    session = onnxruntime.InferenceSession(model, options, providers=[(provider, exact)])
    names = [port.name for port in session.get_inputs()]
    return lambda given: session.run(None, dict(zip(names, given, strict=True)))[0]


ALONE = {"openvino": openvino_alone, "onnxruntime": onnxruntime_alone}


def taken_ms(run: Callable[[], Any]) -> list[float]:
    times = []
    for _ in range(1 + RUNS):
        began = time.perf_counter()
        run()
        times.append((time.perf_counter() - began) * 1e3)
    return times[1:]


def compare(name: str, target: str, threads: int) -> dict[str, Any]:
    sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "python"))
    from models import nets

    module, inputs = nets.minilm(128) if name == "minilm" else nets.vision(name)
    with torch.no_grad():
        wanted = module(*inputs).numpy()
    exported = torch.export.export(module, inputs, strict=False)
    model = io.BytesIO(export(_core.canonicalize(import_model(exported).graph)).SerializeToString()).getvalue()
    kind, _, variant = target.removeprefix("cpu+").partition("-")
    runs: dict[str, Callable[[Any], Any]] = {"tool alone": ALONE[kind](model, variant, threads)}
    shares = {}
    for called, compiled_for, strategy in (
        ("hetnn cpu", "cpu", "cost"),
        ("all on the device", target, "take-all"),
        ("by cost", target, "cost"),
    ):
        exe = hetnn.compile(exported, compiled_for, strategy=strategy, threads=threads)
        runs[called] = lambda given, exe=exe: exe.run(given)[0]  # type: ignore[misc]
        parts = exe.report("dict")
        shares[called] = [f"{len(row['nodes'])} on {row['device']}" for row in parts["subgraphs"]]
    given = [value.numpy() for value in inputs]
    for called, run in runs.items():
        error = float(np.abs(run(given) - wanted).max() / np.abs(wanted).max())
        assert error < 1e-4, f"{name}, {called}: {error} from eager torch"
    times: dict[str, list[float]] = {called: [] for called in runs}
    for _ in range(ROUNDS):
        for called, run in runs.items():
            times[called] += taken_ms(lambda run=run: run(given))
    row = {called: statistics.median(figures) for called, figures in times.items()}
    return {"network": name, "target": target, **row, "parts": shares}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", action="append")
    parser.add_argument("--network", action="append", metavar="NAME")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    rows = []
    for target in args.target or ["cpu+openvino-cpu", "cpu+onnxruntime-cpu"]:
        for name in args.network or NETWORKS:
            row = compare(name, target, args.threads)
            rows.append(row)
            figures = ", ".join(f"{key} {value:.2f}" for key, value in row.items() if isinstance(value, float))
            over = row["all on the device"] / row["tool alone"]
            best = min(row["tool alone"], row["hetnn cpu"])
            print(
                f"{name} on {target}: {figures} ms; all on the device / tool alone {over:.3f}, by cost / the better of "
                f"the two {row['by cost'] / best:.3f}; {', '.join(row['parts']['by cost'])}",
                flush=True,
            )
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
