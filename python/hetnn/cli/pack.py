"""`hetnn pack`: a folder of `hetnn unpack` as a .hetnn file with fitting hashes; nothing else is checked."""

from __future__ import annotations

import argparse
from pathlib import Path

from hetnn import _runtime
from hetnn.cli.answer import Answer
from hetnn.files import read_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The folder that `unpack` wrote, and the file to write."""
    parser.add_argument(
        "folder", metavar="FOLDER", help="with program.json, report.json, target.json, weights.bin, perhaps graph.ir"
    )
    parser.add_argument("-o", "--output", required=True, metavar="FILE.hetnn")


def run(args: argparse.Namespace) -> Answer:
    """Writes the file from its pieces, with fitting hashes and no other check: `file`, `bytes`."""
    folder = Path(args.folder)
    texts = {name: read_text(folder / f"{name}.json") for name in ("program", "report", "target")}
    graph = read_text(folder / "graph.ir") if (folder / "graph.ir").exists() else None
    image = _runtime.put_together(**texts, weights=(folder / "weights.bin").read_bytes(), graph=graph)
    Path(args.output).write_bytes(image)
    return Answer({"file": args.output, "bytes": len(image)}, f"{args.output}: {len(image)} bytes")
