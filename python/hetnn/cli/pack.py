"""`hetnn pack`: a folder of `hetnn unpack` as a .hetnn file with fitting hashes; nothing else is checked."""

from __future__ import annotations

import argparse
from pathlib import Path

from hetnn import _runtime
from hetnn.cli.answer import Answer
from hetnn.errors import InvalidModel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="with program.json, report.json, target.json and weights.bin")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.hetnn")


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise InvalidModel(f"'{path}' is no UTF-8 at byte {error.start}. Write it as UTF-8.") from None


def run(args: argparse.Namespace) -> Answer:
    folder = Path(args.folder)
    texts = {name: _text(folder / f"{name}.json") for name in ("program", "report", "target")}
    image = _runtime.put_together(**texts, weights=(folder / "weights.bin").read_bytes())
    Path(args.output).write_bytes(image)
    return Answer({"file": args.output, "bytes": len(image)}, f"{args.output}: {len(image)} bytes")
