"""`hetnn plan`: the placement of a model without compiling it, or of an abstract planning problem."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import hetnn
import hetnn.planning
from hetnn.cli.answer import Answer, BadUse
from hetnn.cli.model import add_compile_arguments, compile_options, load_model, parse_pairs
from hetnn.cli.progress import Progress
from hetnn.files import read_text
from hetnn.json_text import load_json
from hetnn.report.text import count, place, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The model or the problem, what to ask of its plan, and the options of compiling."""
    parser.add_argument("model", nargs="?", help=".pt2, .onnx, .tflite or IR text")
    parser.add_argument("--problem", metavar="FILE", help="a planning problem as JSON, instead of a model")
    parser.add_argument("--svg", metavar="FILE", help="also draw the plan: the graph by device, and the schedule")
    parser.add_argument("--why", metavar="NODE", help="instead of the plan: why this node is where it is")
    parser.add_argument(
        "--what-if",
        metavar="OP",
        nargs="*",
        help="instead of the plan: the gain of each operator (or of these) that a device lacks, greatest first",
    )
    add_compile_arguments(parser)


def run(args: argparse.Namespace) -> Answer:
    """Plans a model or a problem and compiles nothing: the plan, or the answer to `--why` or `--what-if`.

    Plans are as docs/report-schema.json and docs/plan-schema.json say. BadUse for both a model and a problem, for
    neither, and for two questions at once.
    """
    if (args.model is None) == (args.problem is None):
        raise BadUse("give either a model or --problem FILE")
    if args.why is not None and args.what_if is not None:
        raise BadUse("--why and --what-if are two questions; ask one at a time")
    plan: hetnn.Plan | hetnn.planning.ProblemPlan
    if args.problem is not None:
        plan = _plan_problem(args.problem, args.strategy or "cost", parse_pairs("--option", args.options or []))
    else:
        with Progress("plan", args.quiet) as progress:
            model = load_model(args.model)
            plan = hetnn.plan(model, args.target or "cpu", progress=progress, **compile_options(args))
    if args.svg is not None:
        Path(args.svg).write_text(plan.svg(), encoding="utf-8")
    if args.why is not None:
        why = plan.why(args.why)
        return Answer(why, str(why))
    if args.what_if is not None:
        rows = plan.what_if(args.what_if)
        return Answer({"what_if": rows}, _what_if_text(rows))
    if isinstance(plan, hetnn.Plan):
        return Answer(json.loads(plan.to_json()), plan.explain(format="text"))
    return Answer(plan, _problem_text(plan))


def _plan_problem(path: str, strategy: str, options: dict[str, Any]) -> hetnn.planning.ProblemPlan:
    problem = load_json(read_text(path), f"'{path}'")
    return hetnn.plan_problem(problem, strategy, **options)


def _problem_text(plan: Mapping[str, Any]) -> str:
    rows = [[part["device"], str(len(part["nodes"])), _some(part["nodes"])] for part in plan["subgraphs"]]
    placement = table(["device", "nodes", "which"], rows)
    bounds = ", ".join(f"{device} {count}" for device, count in plan["lower_bound_subgraphs"].items())
    return f"{placement}\ncost {plan['cost_us']:g} us, fewest subgraphs possible: {bounds}"


def _what_if_text(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return "no accelerator lacks anything that was asked for"
    lines = []
    for row in rows:
        lines.append(
            f"{row['support']} on {row['device']}: {row['gain_us']:,.1f} us gained, {count(len(row['nodes']), 'node')}"
        )
        for node in row["nodes"]:
            if isinstance(node, Mapping):
                lines.append(f"  {node['node']}  {place(node)}".rstrip())
    return "\n".join(lines)


def _some(names: list[str]) -> str:
    return ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
