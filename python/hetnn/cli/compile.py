"""`hetnn compile`: a model into one .hetnn file."""

from __future__ import annotations

import argparse
import os
import time

import hetnn
from hetnn.cli.answer import Answer, BadUse
from hetnn.cli.model import add_compile_arguments, compile_model, compile_options, load_model
from hetnn.cli.progress import Progress
from hetnn.report.text import costs, devices_table

_QUANTIZING = (
    ("--quantize", "SCHEME", "compute in fewer bits: int8, int16x8, int4, f16 or bf16; needs --samples"),
    ("--samples", "FILE.npz|FOLDER", "inputs that the model will see, to learn from"),
    ("--calibrator", "NAME", "minmax, percentile, mse or entropy: how ranges come from samples (default: mse)"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, the file to write, and the options of compiling."""
    parser.add_argument("model", help=".pt2, .onnx, .tflite or IR text")
    parser.add_argument("-o", "--output", required=True, metavar="OUT.hetnn", help="the file to write")
    for flag, takes, what in _QUANTIZING:
        parser.add_argument(flag, metavar=takes, help=what)
    parser.add_argument(
        "--keep-float",
        action="append",
        metavar="NAME",
        help="a node or module that stays float, again for more; or auto",
    )
    add_compile_arguments(parser)


def run(args: argparse.Namespace) -> Answer:
    """Compiles and saves: `output`, `bytes` of the file, `compile_s`, the `report`; `quantization` where asked for."""
    if not args.quantize and (args.samples, args.calibrator, args.keep_float) != (None, None, None):
        raise BadUse("--samples, --calibrator and --keep-float go with --quantize SCHEME")
    began = time.perf_counter()
    with Progress("compile", args.quiet) as progress:
        executable = _quantized(args, progress) if args.quantize else compile_model(args, progress)
        progress("write")
        executable.save(args.output)
    report = executable.report(format="dict")
    size_bytes = os.path.getsize(args.output)
    compile_s = time.perf_counter() - began
    document = {"output": args.output, "bytes": size_bytes, "compile_s": compile_s, "report": report}
    text = f"{args.output}: {size_bytes:,} bytes\n{devices_table(report)}\n{costs(report)}"
    if executable.quantization is not None:
        document["quantization"] = executable.quantization.as_dict()
        text = f"{executable.quantization}\n{text}"
    return Answer(document, text)


def _quantized(args: argparse.Namespace, progress: Progress) -> hetnn.Executable:
    if args.samples is None:
        raise BadUse("--quantize learns from inputs that the model will see; give them with --samples FILE.npz|FOLDER")
    given = {"calibrator": args.calibrator, "keep_float": "auto" if args.keep_float == ["auto"] else args.keep_float}
    options = {**compile_options(args), **{name: value for name, value in given.items() if value is not None}}
    progress("read the model")
    executable: hetnn.Executable = hetnn.quantize(
        load_model(args.model), args.samples, args.quantize, target=args.target or "cpu", progress=progress, **options
    )
    return executable
