"""`hetnn report`: where everything runs, why, and what it costs; as text, JSON, or one HTML page."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import hetnn
from hetnn.cli.answer import Answer, BadUse
from hetnn.cli.model import add_compile_arguments, load_model, load_or_compile, plan_options, sniff
from hetnn.cli.progress import Progress
from hetnn.report import as_text, draw_plan, nodes_of, report_page

_FORMATS = (".html", ".svg", ".json", ".txt")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help=".hetnn, .pt2, .onnx or IR text")
    parser.add_argument("-o", "--output", metavar="FILE", help=f"write {', '.join(_FORMATS)} instead of printing")
    add_compile_arguments(parser)


def run(args: argparse.Namespace) -> Answer:
    suffix = "" if args.output is None else Path(args.output).suffix
    if args.output is not None and suffix not in _FORMATS:
        raise BadUse(f"--output ends in one of {', '.join(_FORMATS)}; got '{args.output}'")
    picture = ""
    with Progress("report", args.quiet) as progress:
        if suffix in (".html", ".svg") and sniff(args.model) != "hetnn":
            progress("draw")
            picture = _picture(args)
        elif suffix == ".svg":
            raise BadUse("a .hetnn file holds no graph to draw; give the model it was compiled from")
        report: dict[str, Any] = load_or_compile(args, progress).report(format="dict")
    if args.output is None:
        return Answer(report, as_text(report))
    written = {
        ".html": lambda: report_page(report, picture, Path(args.model).name),
        ".svg": lambda: picture,
        ".json": lambda: json.dumps(report, indent=1) + "\n",
        ".txt": lambda: as_text(report) + "\n",
    }[suffix]()
    Path(args.output).write_text(written, encoding="utf-8")
    return Answer({**report, "output": args.output}, f"wrote {args.output}")


def _picture(args: argparse.Namespace) -> str:
    plan = hetnn.plan(load_model(args.model), args.target or "cpu", **plan_options(args))
    return draw_plan(nodes_of(plan.graph_text()), list(plan.report(format="dict")["nodes_on"]), Path(args.model).name)
