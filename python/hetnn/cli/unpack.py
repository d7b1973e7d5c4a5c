"""`hetnn unpack`: a .hetnn file as files that people can look at and alter."""

from __future__ import annotations

import argparse
from pathlib import Path

from hetnn import _runtime
from hetnn.cli.answer import Answer
from hetnn.files import open_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file, and the folder to write."""
    parser.add_argument("file", metavar="FILE.hetnn")
    parser.add_argument("folder", metavar="FOLDER", help="made where there is none")


def run(args: argparse.Namespace) -> Answer:
    """Writes program.json, report.json, target.json, weights.bin, and graph.ir where a graph was kept: `folder`, and
    `bytes` of each.
    """
    with open_file(args.file) as file:
        pieces = _runtime.take_apart(file.read(), f"'{args.file}'")
    folder = Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = {f"{name}.json": pieces[name].encode() for name in ("program", "report", "target")}
    files["weights.bin"] = pieces["weights"]
    if pieces["graph"] is not None:
        files["graph.ir"] = pieces["graph"].encode()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    sizes = {name: len(content) for name, content in files.items()}
    return Answer({"folder": str(folder), "bytes": sizes}, "\n".join(f"{folder / name}" for name in sizes))
