"""`hetnn plan`: the placement of a model without compiling it, or of an abstract planning problem."""

from __future__ import annotations

import argparse
import json
from typing import Any

import hetnn
from hetnn.cli.answer import Answer, BadUse
from hetnn.cli.model import add_plan_arguments, load_model, parse_pairs, plan_options
from hetnn.report.text import table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", nargs="?", help=".pt2, .onnx or IR text")
    parser.add_argument("--problem", metavar="FILE", help="a planning problem as JSON, instead of a model")
    add_plan_arguments(parser)


def run(args: argparse.Namespace) -> Answer:
    if (args.model is None) == (args.problem is None):
        raise BadUse("give either a model or --problem FILE")
    if args.problem is not None:
        return _plan_problem(args.problem, args.strategy or "cost", parse_pairs("--option", args.option or []))
    plan = hetnn.plan(load_model(args.model), args.target or "cpu", **plan_options(args))
    return Answer(plan.report(format="dict"), str(plan.report()))


def _plan_problem(path: str, strategy: str, options: dict[str, Any]) -> Answer:
    with open(path, encoding="utf-8") as file:
        try:
            problem = json.load(file)
        except ValueError as error:
            raise hetnn.InvalidModel(f"'{path}' is no JSON: {error}. Expected a planning problem.") from error
    answer = hetnn.plan_problem(problem, strategy, **options)
    rows = [[part["device"], str(len(part["nodes"])), _some(part["nodes"])] for part in answer["subgraphs"]]
    placement = table(["device", "nodes", "which"], rows)
    bounds = ", ".join(f"{device} {count}" for device, count in answer["lower_bound_subgraphs"].items())
    return Answer(answer, f"{placement}\ncost {answer['cost_us']:g} us, fewest subgraphs possible: {bounds}")


def _some(names: list[str]) -> str:
    return ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
