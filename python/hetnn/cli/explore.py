"""`hetnn explore`: a model in Model Explorer, or the files that it reads."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from hetnn.cli.answer import Answer
from hetnn.cli.inputs import add_input_arguments, inputs_of
from hetnn.cli.model import add_compile_arguments, load_or_compile
from hetnn.cli.progress import Progress
from hetnn.errors import Unsupported
from hetnn.explore.graphs import graphs_of, node_data_of
from hetnn.inside.page import page_report
from hetnn.progress import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, whether to run it, the folder to write instead of opening, where to serve, and compiling's options."""
    parser.add_argument("model", help=".hetnn, .pt2, .onnx, .tflite or IR text")
    parser.add_argument("--run", action="store_true", help="run once: nodes have measured times, too")
    add_input_arguments(parser)
    parser.add_argument("-o", "--output", metavar="FOLDER", help="write graph and figures of nodes there, open nothing")
    parser.add_argument("--port", type=int, default=8080, help="of the server on this machine (default: 8080)")
    parser.add_argument("--no-browser", action="store_true", help="say the address and open no browser")
    add_compile_arguments(parser)


def run(args: argparse.Namespace) -> Answer:
    """Serves Model Explorer until it is interrupted; with `--output` writes `graph`, the file of the graphs, and
    `node_data`, one file a figure (predicted and measured us, cycles, stalls, MACs, bytes), which it can be given.

    Unsupported without the package ai-edge-model-explorer, which files alone do not need.
    """
    if args.output is None:
        _explorer()
    with Progress("explore", args.quiet) as progress:
        executable = load_or_compile(args, progress)
        inputs = inputs_of(executable, args, "explore") if args.run else []
        with counted(progress, "run" if args.run else "report"):
            report = page_report(executable, inputs, None)
        if args.output is not None:
            return _written(report, Path(args.output), Path(args.model).stem)
    with tempfile.TemporaryDirectory() as folder:
        answer = _written(report, Path(folder), Path(args.model).stem)
        _serve(answer.document or {}, args.port, not args.no_browser)
    return Answer(None, "")  # the server said its address


def _written(report: dict[str, Any], folder: Path, name: str) -> Answer:
    folder.mkdir(parents=True, exist_ok=True)
    graph = folder / f"{name}.json"
    graph.write_text(json.dumps({"label": name, "graphs": graphs_of(report)}), encoding="utf-8")
    written = []
    for figure, data in node_data_of(report).items():
        path = folder / f"{name}.{figure.replace(' ', '_')}.json"
        path.write_text(json.dumps(data), encoding="utf-8")
        written.append(str(path))
    return Answer({"graph": str(graph), "node_data": written}, "\n".join(f"wrote {one}" for one in [graph, *written]))


def _explorer() -> Any:
    try:
        import model_explorer
    except ImportError as error:
        raise Unsupported(
            "exploring needs ai-edge-model-explorer; `pip install 'hetnn[explore]'`, or write its files with -o."
        ) from error
    return model_explorer


def _serve(files: Any, port: int, browser: bool) -> None:
    explorer = _explorer()
    config = explorer.config().add_model_from_path(files["graph"])
    for path in files["node_data"]:
        config.add_node_data_from_path(path)
    sys.stdout.flush()
    explorer.visualize_from_config(config, port=port, no_open_in_browser=not browser)
