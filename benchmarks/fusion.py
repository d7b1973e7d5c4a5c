"""What fusion is worth: networks with elementwise layers in their producers' launches, and with a launch for each.

    python benchmarks/fusion.py [--nets resnet18,...] [--threads 2] [--rounds 9] [--sums [--dtype f16]] [--json FILE]

One row a network: kernels that run, MB that they read and write by the report's table (`fusions`: the groups alone),
and the least time, unfused and fused, measured in turns; the ratio of the times; the differences from torch relative to
the largest value.

--sums: instead, a sum of several values behind a producer, as `p + b + c` (plain) and as `p + 2 b + 3 c` (weighed),
beside torch and ONNX Runtime on the weighed one, all in turns. `weighed / plain` is what the coefficients cost. Of f16
and bf16 beside torch and hetnn with a launch for each node (`single`).
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import os
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "python")]

import torch  # noqa: E402
from timing import least_us  # noqa: E402

import hetnn  # noqa: E402
from models import nets  # noqa: E402

NETS = "resnet18,mobilenet_v3_large,efficientnet_b0,minilm"


def difference(got: Any, want: Any) -> float:
    return float((got - want).abs().max() / want.abs().max())


def measure(name: str, threads: int, rounds: int) -> dict[str, Any]:
    module, inputs = nets.NETS[name]()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = module(*inputs)
        program = torch.export.export(module, inputs, strict=False)
    made = {fusion: hetnn.compile(program, "cpu", threads=threads, fusion=fusion) for fusion in ("off", "on")}
    arrays = [x.numpy() for x in inputs]
    runs = {fusion: partial(executable.run, arrays) for fusion, executable in made.items()}
    least = least_us(runs, rounds, block_s=0.1)
    groups = made["on"].report(format="dict")["fusions"]
    return {
        "net": name,
        "kernels": {fusion: len(executable.profile(*arrays)) for fusion, executable in made.items()},
        "groups": len(groups),
        "group_mb": {when: sum(row[f"bytes_{when}"] for row in groups) / 1e6 for when in ("before", "after")},
        "us": least,
        "ratio": least["off"] / least["on"],
        "error": {fusion: difference(executable(*inputs), want) for fusion, executable in made.items()},
    }


class Mean(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(1)


class States(torch.nn.Module):
    """The states of a recurrent layer."""

    def __init__(self, layer: torch.nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states: torch.Tensor = self.layer(x)[0]
        return states


# Producers with the shape of their input.
PRODUCERS: dict[str, tuple[torch.nn.Module, tuple[int, ...]]] = {
    "conv2d 3x3": (torch.nn.Conv2d(64, 64, 3, padding=1), (1, 64, 56, 56)),
    "conv2d 1x1": (torch.nn.Conv2d(64, 256, 1), (1, 64, 56, 56)),
    "depthwise 3x3": (torch.nn.Conv2d(128, 128, 3, padding=1, groups=128), (1, 128, 56, 56)),
    "linear": (torch.nn.Linear(512, 512), (256, 512)),
    "max_pool 3x3": (torch.nn.MaxPool2d(3, 1, 1), (1, 128, 56, 56)),
    "layer_norm": (torch.nn.LayerNorm(512), (512, 512)),
    "group_norm": (torch.nn.GroupNorm(8, 128), (1, 128, 56, 56)),
    "softmax": (torch.nn.Softmax(-1), (512, 512)),
    "softmax channels": (torch.nn.Softmax(1), (1, 64, 56, 56)),
    "nearest x2": (torch.nn.UpsamplingNearest2d(scale_factor=2), (1, 64, 56, 56)),
    "bilinear x2": (torch.nn.UpsamplingBilinear2d(scale_factor=2), (1, 64, 56, 56)),
    "mean": (Mean(), (64, 8, 4096)),
    "lstm": (States(torch.nn.LSTM(128, 256)), (64, 4, 128)),
}


class Sum(torch.nn.Module):
    """A producer's result and multiples of further operands, added up."""

    def __init__(self, producer: torch.nn.Module, coefficients: tuple[float, ...]) -> None:
        super().__init__()
        self.producer, self.coefficients = producer, coefficients

    def forward(self, x: torch.Tensor, *operands: torch.Tensor) -> torch.Tensor:
        total: torch.Tensor = self.producer(x)
        for c, operand in zip(self.coefficients, operands, strict=True):
            total = total + (operand if c == 1 else c * operand)
        return total


def onnx_session(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], threads: int) -> Any:
    import onnxruntime

    model = io.BytesIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(module, inputs, model, dynamo=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model.getvalue(), options, providers=["CPUExecutionProvider"])


DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def measure_sum(name: str, dtype: torch.dtype, threads: int, rounds: int) -> dict[str, Any]:
    producer, shape = PRODUCERS[name]
    with torch.no_grad():
        made = producer.eval()(torch.randn(shape))
    producer = copy.deepcopy(producer).to(dtype)
    inputs = tuple(x.to(dtype) for x in (torch.randn(shape), torch.randn_like(made), torch.randn_like(made)))
    runs: dict[str, Any] = {}
    kernels = {}
    weighed = Sum(producer.eval(), (2.0, 3.0))
    for label, module in (("plain", Sum(producer.eval(), (1.0, 1.0))), ("weighed", weighed)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            executable = hetnn.compile(torch.export.export(module, inputs, strict=False), "cpu", threads=threads)
        kernels[label] = [row["kernel"] for row in executable.profile(*inputs)]
        runs[label] = partial(executable.run, inputs)
    torch.set_num_threads(threads)

    def eager() -> None:
        with torch.inference_mode():
            weighed(*inputs)

    runs["torch"] = eager
    if dtype == torch.float32:
        session = onnx_session(weighed, inputs, threads)
        feed = dict(zip((each.name for each in session.get_inputs()), (x.numpy() for x in inputs), strict=True))
        runs["onnxruntime"] = partial(session.run, None, feed)
    else:
        program = torch.export.export(weighed, inputs, strict=False)
        runs["single"] = partial(hetnn.compile(program, "cpu", threads=threads, fusion="off").run, inputs)
    return {"producer": name, "kernels": kernels, "us": least_us(runs, rounds, block_s=0.1)}


def print_sum(row: dict[str, Any]) -> None:
    us = row["us"]
    others = "".join(f"   {name} x{us[name] / us['weighed']:.2f}" for name in us if name not in ("plain", "weighed"))
    print(
        f"{row['producer']:16} {'+'.join(row['kernels']['weighed']):24} plain {us['plain']:8.0f} us   "
        f"weighed {us['weighed']:8.0f} us   weighed / plain {us['weighed'] / us['plain']:.3f}{others}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default=NETS)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--sums", action="store_true")
    parser.add_argument("--dtype", choices=DTYPES, default="f32", help="of --sums")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    rows = []
    for name in PRODUCERS if args.sums else ():
        rows.append(measure_sum(name, DTYPES[args.dtype], args.threads, args.rounds))
        print_sum(rows[-1])
    for name in () if args.sums else args.nets.split(","):
        row = measure(name, args.threads, args.rounds)
        rows.append(row)
        print(
            f"{name:20} kernels {row['kernels']['off']:4} -> {row['kernels']['on']:4}   "
            f"{row['groups']:3} groups {row['group_mb']['before']:8.2f} -> {row['group_mb']['after']:8.2f} MB   "
            f"{row['us']['off']:9.0f} -> {row['us']['on']:9.0f} us  x{row['ratio']:.2f}   "
            f"error {row['error']['off']:.1e}, {row['error']['on']:.1e}",
            flush=True,
        )
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
