"""What a MODEL argument may name: a .pt2 of torch.export, an .onnx, a .hetnn, or a text of the IR."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hetnn
from hetnn.cli.answer import BadUse
from hetnn.cli.progress import Progress

if TYPE_CHECKING:
    from hetnn import Executable

_KINDS = "a .pt2 (torch.export.save), an .onnx, a .hetnn or a text of hetnn's IR"


def sniff(path: str) -> str:
    """`pt2`, `onnx`, `hetnn` or `ir`, by the first bytes; the suffix only decides for .onnx, which has no mark."""
    with open(path, "rb") as file:
        head = file.read(64)
    if not head:
        raise hetnn.InvalidModel(f"'{path}' is empty; expected {_KINDS}.")
    if head.startswith(b"PK\x03\x04"):
        return "pt2"
    if path.endswith(".onnx"):
        return "onnx"
    if head[8:9] == b"{" or path.endswith(".hetnn"):
        return "hetnn"
    if head.lstrip().startswith((b"graph ", b"//", b"#")):
        return "ir"
    raise hetnn.InvalidModel(f"'{path}' begins with {head[:8]!r}, which is no model; expected {_KINDS}.")


def load_model(path: str) -> Any:
    """What `hetnn.compile` takes, from a file: an exported program, the path of an ONNX file, or the text of the IR."""
    kind = sniff(path)
    if kind == "hetnn":
        raise BadUse(f"'{path}' is compiled already; this needs a model ({_KINDS.replace(' a .hetnn', '')})")
    if kind == "onnx":
        return path
    if kind == "ir":
        return Path(path).read_text(encoding="utf-8")
    try:
        import torch
    except ImportError as error:
        raise hetnn.Unsupported(
            f"reading '{path}' needs torch; install it with `pip install 'hetnn[torch]'`"
        ) from error
    try:
        return torch.export.load(path)
    except Exception as error:  # torch raises many kinds for a file that is not what it expects
        raise hetnn.InvalidModel(
            f"torch could not read '{path}' as an exported program: {error}. Write it with torch.export.save."
        ) from error


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of every command that places the nodes of a model. Defaults are those of the Python functions."""
    parser.add_argument("--target", help="cpu, an NPU preset, a JSON path, or cpu+NAME (default: cpu)")
    parser.add_argument("--strategy", help="how nodes are placed: cost, topological, depth, merge, take-all, cpu-only")
    parser.add_argument("--option", metavar="KEY=VALUE", action="append", help="an option of the strategy")
    parser.add_argument("--pin", metavar="NODE=DEVICE", action="append", help="where a node must run")
    parser.add_argument("--strict", metavar="DEVICE", help="fail where a node does not run on that device")
    parser.add_argument(
        "--memory-budget", metavar="DEVICE=BYTES", action="append", help="most bytes of constants on that device"
    )
    parser.add_argument(
        "--overlap", action="store_true", default=None, help="shorten the schedule of devices working at the same time"
    )
    parser.add_argument(
        "--calibration",
        metavar="FILE",
        help="speeds of the CPU, as `hetnn calibrate` wrote them; off for the built-in ones (default: the cache's)",
    )
    parser.add_argument(
        "--calibrate", action="store_true", default=None, help="measure the model's nodes on the CPU and plan with that"
    )
    parser.add_argument("--rewrite", choices=["auto", "always", "off"], help="rewrite activations the device lacks")
    parser.add_argument("--disable-rule", metavar="RULE", action="append", help="a rewriting rule not to use")
    parser.add_argument(
        "--shape",
        metavar="SYMBOL=SIZE,…",
        action="append",
        help="sizes of a dynamic model to compile accelerators for",
    )


def add_compile_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of every command that may compile."""
    add_plan_arguments(parser)
    parser.add_argument("--threads", type=int, metavar="N", help="CPU threads of a run (default: all)")
    parser.add_argument("--no-fusion", action="store_true", default=None, help="one kernel for each node")
    parser.add_argument("--deterministic", action="store_true", default=None, help="fused sums keep every rounding")
    parser.add_argument("--no-tune", action="store_true", default=None, help="do not measure kernels on this machine")


def parse_pairs(option: str, pairs: list[str]) -> dict[str, Any]:
    """`["threshold=2", "order=min"]` → `{"threshold": 2, "order": "min"}`."""
    values: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise BadUse(f"{option} takes KEY=VALUE; got '{pair}'")
        try:
            values[key] = json.loads(value)
        except ValueError:
            values[key] = value
    return values


def plan_options(args: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of `hetnn.plan` that were given."""
    given: dict[str, Any] = {
        "strategy": args.strategy,
        "strict": args.strict,
        "rewrite": args.rewrite,
        "overlap": args.overlap,
        "calibration": args.calibration,
        "calibrate": args.calibrate,
        "disabled_rules": args.disable_rule,
        "options": None if args.option is None else parse_pairs("--option", args.option),
        "memory_budget": None if args.memory_budget is None else parse_pairs("--memory-budget", args.memory_budget),
        "shapes": None if args.shape is None else [parse_pairs("--shape", sizes.split(",")) for sizes in args.shape],
        "pin": None if args.pin is None else parse_pairs("--pin", args.pin),
    }
    return {name: value for name, value in given.items() if value is not None}


def compile_options(args: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of `hetnn.compile` that were given."""
    options = plan_options(args)
    if args.threads is not None:
        options["threads"] = args.threads
    if args.no_fusion:
        options["fusion"] = False
    if args.deterministic:
        options["deterministic"] = True
    if args.no_tune:
        options["tune"] = False
    return options


def compile_model(args: argparse.Namespace, progress: Progress) -> Executable:
    """Compiles `args.model` as the arguments say."""
    options = compile_options(args)
    progress("read the model")
    model = load_model(args.model)
    return hetnn.compile(model, args.target or "cpu", progress=progress, **options)


def load_or_compile(args: argparse.Namespace, progress: Progress) -> Executable:
    """The executable in a .hetnn file, or the model compiled now."""
    if sniff(args.model) != "hetnn":
        return compile_model(args, progress)
    options = compile_options(args)
    threads = options.pop("threads", None)
    if options or args.target is not None:
        raise BadUse(f"'{args.model}' is compiled already; only --threads can still be given")
    progress("load")
    return hetnn.load(args.model, threads=threads)
