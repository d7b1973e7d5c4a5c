"""What a MODEL argument may name: a .pt2 of torch.export, an .onnx, a .hetnn, or a text of the IR."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

import hetnn
from hetnn.cli.answer import BadUse
from hetnn.cli.progress import Progress
from hetnn.options import add_option_arguments, given_options
from hetnn.text_file import read_text

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
        return read_text(path)
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


def add_target_argument(parser: argparse.ArgumentParser) -> None:
    """The flag for what to compile for."""
    parser.add_argument("--target", help="cpu, an NPU preset, a JSON path, or cpu+NAME (default: cpu)")


def add_compile_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of every command that may plan or compile. Defaults are those of the Python functions."""
    add_target_argument(parser)
    add_option_arguments(parser)


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


def compile_options(args: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments of `hetnn.compile` that were given."""
    return given_options(args, parse_pairs)


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
