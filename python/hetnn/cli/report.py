"""`hetnn report`: where everything runs, why, and what it costs; as text, JSON, or one HTML page."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from hetnn.cli.answer import Answer, BadUse
from hetnn.cli.inputs import add_input_arguments, inputs_of
from hetnn.cli.model import add_compile_arguments, load_or_compile
from hetnn.cli.progress import Progress
from hetnn.inside.page import page_report
from hetnn.progress import counted
from hetnn.report.page import as_html
from hetnn.report.picture import as_svg
from hetnn.report.text import as_text

_FORMATS = (".html", ".svg", ".json", ".txt")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model or .hetnn file, the file to write, and the options of compiling."""
    parser.add_argument("model", help=".hetnn, .pt2, .onnx, .tflite or IR text")
    parser.add_argument("-o", "--output", metavar="FILE", help=f"write {', '.join(_FORMATS)} instead of printing")
    parser.add_argument("--run", action="store_true", help="run once: the page shows what each device took")
    add_input_arguments(parser)
    add_compile_arguments(parser)


def run(args: argparse.Namespace) -> Answer:
    """The report (docs/report-schema.json).

    With `--output` it is written too, as a page, a picture, JSON or text by the file's ending, and `output` names it.
    With `--run` the page's times, and `measured_us` of the nodes, are those of a run.
    """
    suffix = "" if args.output is None else Path(args.output).suffix
    if args.output is not None and suffix not in _FORMATS:
        raise BadUse(f"--output ends in one of {', '.join(_FORMATS)}; got '{args.output}'")
    with Progress("report", args.quiet) as progress:
        executable = load_or_compile(args, progress)
        inputs = inputs_of(executable, args, "report") if args.run else []
        paged = suffix == ".html" or args.run
        with counted(progress, "run" if args.run else "report"):
            report: dict[str, Any] = (
                page_report(executable, inputs, None) if paged else executable.report(format="dict")
            )
    if args.output is None:
        return Answer(report, as_text(report))
    written = {
        ".html": lambda: as_html(report, Path(args.model).name),
        ".svg": lambda: as_svg(report, Path(args.model).name),
        ".json": lambda: json.dumps(report, indent=1) + "\n",
        ".txt": lambda: as_text(report) + "\n",
    }[suffix]()
    Path(args.output).write_text(written, encoding="utf-8")
    return Answer({**report, "output": args.output}, f"wrote {args.output}")
