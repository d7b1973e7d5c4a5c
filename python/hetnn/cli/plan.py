"""`hetnn plan`: the placement of a model without compiling it, or of an abstract planning problem."""

from __future__ import annotations

import argparse
import json
from typing import Any

import hetnn
from hetnn.cli.answer import Answer, BadUse, table
from hetnn.cli.model import load_model, parse_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", nargs="?", help=".pt2, .onnx or IR text")
    parser.add_argument("--problem", metavar="FILE", help="a planning problem as JSON, instead of a model")
    parser.add_argument("--target", default="cpu", help="cpu, a preset's name, a JSON path, or cpu+NAME (default: cpu)")
    parser.add_argument("--strategy", default="cost", help="topological, depth, merge, cost, take-all or cpu-only")
    parser.add_argument("--option", metavar="KEY=VALUE", action="append", default=[], help="an option of the strategy")


def run(args: argparse.Namespace) -> Answer:
    if (args.model is None) == (args.problem is None):
        raise BadUse("give either a model or --problem FILE")
    options = parse_options(args.option)
    if args.problem is not None:
        return _plan_problem(args, options)
    plan = hetnn.plan(load_model(args.model), args.target, strategy=args.strategy, **options)
    return Answer(plan.report(format="dict"), str(plan.report()))


def _plan_problem(args: argparse.Namespace, options: dict[str, Any]) -> Answer:
    with open(args.problem, encoding="utf-8") as file:
        try:
            problem = json.load(file)
        except ValueError as error:
            raise hetnn.InvalidModel(f"'{args.problem}' is not JSON: {error}. Expected a planning problem.") from error
    answer = hetnn.plan_problem(problem, args.strategy, **options)
    rows = [
        [subgraph["device"], str(len(subgraph["nodes"])), ", ".join(subgraph["nodes"][:8])]
        for subgraph in answer["subgraphs"]
    ]
    bounds = ", ".join(f"{device} {n}" for device, n in answer["lower_bound_subgraphs"].items())
    placement = table(["device", "nodes", "first nodes"], rows)
    return Answer(answer, f"{placement}\ncost {answer['cost_us']:g} us, fewest subgraphs possible: {bounds}")
