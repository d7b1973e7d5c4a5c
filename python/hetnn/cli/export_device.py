"""`hetnn export-device`: what firmware of an Ethos-U needs of a .hetnn file, as a folder of C and binary files."""

from __future__ import annotations

import argparse
from pathlib import Path

from hetnn.cli.answer import Answer
from hetnn.files import open_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file, and the folder to write."""
    parser.add_argument("file", metavar="FILE.hetnn")
    parser.add_argument("folder", metavar="FOLDER", help="made where there is none; its README.md shows the build")


def run(args: argparse.Namespace) -> Answer:
    """Writes the folder: `files` with their bytes, `steps` in order, `scratch_bytes`, `fast_bytes`, and `cycles` as
    Vela predicts them. InvalidModel for a file with no part for an Ethos-U."""
    from hetnn.backends.ethos_u import firmware

    with open_file(args.file) as file:
        told = firmware.write(file.read(), f"'{args.file}'", Path(args.folder))
    lines = [f"{args.folder}/{name}: {size:,} bytes" for name, size in told["files"].items()]
    return Answer(told, "\n".join([*lines, f"{told['cycles']:,} cycles by Vela's prediction"]))
