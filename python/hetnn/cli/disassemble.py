"""`hetnn disassemble`: the NPU command streams of a .hetnn file, as text that assembles back to the same words."""

from __future__ import annotations

import argparse

from hetnn import _core
from hetnn.cli.answer import Answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The .hetnn file."""
    parser.add_argument("model", metavar="MODEL.hetnn")


def run(args: argparse.Namespace) -> Answer:
    """The command streams as text: `streams`, `name`, `bindings` and `text` for each accelerator subgraph and sizes."""
    streams = _core.command_streams(args.model)
    texts = []
    for stream in streams:
        sizes = ", ".join(f"{name} = {value}" for name, value in stream["bindings"].items())
        texts.append(f"; {stream['name']}{' for ' + sizes if sizes else ''}\n{stream['text']}")
    return Answer({"streams": streams}, "\n".join(texts) if texts else "; no accelerator subgraphs")
