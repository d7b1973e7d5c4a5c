"""`hetnn calibrate`: measures this machine's kernels, so that plans predict its own times."""

from __future__ import annotations

import argparse
import json

from hetnn.calibration import calibrate
from hetnn.cli.answer import Answer
from hetnn.cli.progress import Progress
from hetnn.report.text import table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the file goes, and the threads to measure with."""
    parser.add_argument("-o", "--output", metavar="FILE", help="the file to write (default: in the user's cache)")
    parser.add_argument("--threads", type=int, metavar="N", help="CPU threads of a run (default: all)")


def run(args: argparse.Namespace) -> Answer:
    """Measures this machine's kernels: `output`, the file's path, and what it holds (`cpu`, `threads`, `families`)."""
    with Progress("calibrate", args.quiet) as progress:
        progress("measure the kernels")
        path = calibrate(args.output, args.threads)
    sheet = json.loads(path.read_text(encoding="utf-8"))
    rows = [
        [family, figure.removesuffix("_per_us"), f"{speed:,.0f}"]
        for family, figures in sheet["families"].items()
        for figure, speed in figures.items()
    ]
    text = f"{sheet['cpu']}, {sheet['threads']} threads: {path}\n{table(['family', 'of', 'in a us'], rows)}"
    return Answer({"output": str(path), **sheet}, text)
