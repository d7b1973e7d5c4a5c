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
    if head[8:9] == b"{" or path.endswith(".hetnn"):
        return "hetnn"
    if path.endswith(".onnx"):
        return "onnx"
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


def add_compile_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of every command that may compile."""
    parser.add_argument("--target", default=None, help="cpu, a preset's name, a JSON path, or cpu+NAME (default: cpu)")
    parser.add_argument("--strategy", default=None, help="how nodes are placed (default: cost)")
    parser.add_argument("--threads", type=int, default=None, metavar="N", help="CPU threads (default: all cores)")
    parser.add_argument("--option", metavar="KEY=VALUE", action="append", default=[], help="an option of hetnn.compile")


def parse_options(pairs: list[str]) -> dict[str, Any]:
    """`["threshold=2", "order=min"]` → `{"threshold": 2, "order": "min"}`."""
    options: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise BadUse(f"--option takes KEY=VALUE; got '{pair}'")
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    return options


def compile_model(args: argparse.Namespace, progress: Progress) -> Executable:
    """Compiles `args.model` as the arguments say."""
    progress("read the model")
    model = load_model(args.model)
    progress("compile")
    options = parse_options(args.option)
    options.update({key: getattr(args, key) for key in ("strategy", "threads") if getattr(args, key) is not None})
    try:
        return hetnn.compile(model, args.target or "cpu", **options)
    except TypeError as error:
        if "unexpected keyword argument" in str(error):
            raise BadUse(f"--option: {error}") from error
        raise


def load_or_compile(args: argparse.Namespace, progress: Progress) -> Executable:
    """The executable in a .hetnn file, or the model compiled now."""
    if sniff(args.model) != "hetnn":
        return compile_model(args, progress)
    given = [name for name in ("target", "strategy", "threads") if getattr(args, name) is not None]
    if given == ["threads"]:
        progress("load")
        return hetnn.load(args.model, threads=args.threads)
    if given or args.option:
        named = ", ".join(f"--{name}" for name in given or ["option"])
        raise BadUse(f"'{args.model}' is compiled already; {named} can no longer change it")
    progress("load")
    return hetnn.load(args.model)
