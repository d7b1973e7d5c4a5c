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
    """Writes program.json, report.json, target.json and weights.bin: `folder`, and `bytes` of each."""
    with open_file(args.file) as file:
        pieces = _runtime.take_apart(file.read(), f"'{args.file}'")
    folder = Path(args.folder)
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {}
    for name in ("program", "report", "target"):
        content = pieces[name].encode()
        (folder / f"{name}.json").write_bytes(content)
        sizes[f"{name}.json"] = len(content)
    (folder / "weights.bin").write_bytes(pieces["weights"])
    sizes["weights.bin"] = len(pieces["weights"])
    return Answer({"folder": str(folder), "bytes": sizes}, "\n".join(f"{folder / name}" for name in sizes))
