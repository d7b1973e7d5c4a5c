"""Planning time of every strategy from 1,000 to 1,000,000 nodes, and torch's own partitioner on the same graphs.

    python benchmarks/partition.py [--sizes 1000,10000,100000,1000000] [--kinds chain,layered,...] [--torch 1000,2000]
                                   [--optimality GRAPHS] [--in-order] [--instructions] [--json FILE]

Times are the least of five plans, in milliseconds, the check of the plan included. `/nlogn` is how much faster than
n log n the time grew from the smallest size to the largest, and `last` between the two largest: at most 1 is no worse.
Nodes are listed in any order, so that a graph that caches no longer hold costs far reads, which shows as more than 1
between the last two; `--in-order` lists them in topological order, as networks are. `--instructions` counts those that
one plan executes, in millions, in place of its time: how the work grows, whatever memory does. It needs valgrind, which
is some fifty times slower. `--optimality` compares `cost` with all colourings of small problems. A whole run takes
about five minutes.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import Any

import hetnn
from hetnn import _core

STRATEGIES: list[tuple[str, dict[str, Any]]] = [
    ("topological", {}),
    ("topological", {"order": "index"}),
    ("depth", {}),
    ("merge", {}),
    ("merge", {"settle": "trim", "policy": "balance"}),
    ("take-all", {}),
    ("cpu-only", {}),
    ("cost", {"local_search": False}),
    ("cost", {}),
]
KINDS = ["chain", "layered", "series-parallel", "fan", "random"]


def plan_ms(problem: _core.PlanProblem, strategy: str, options: dict[str, Any]) -> float:
    repeats = 5
    return min(problem.plan(strategy, json.dumps(options)).plan_us for _ in range(repeats)) / 1e3


# The module by itself: numpy and the rest take valgrind longer than a plan.
PLAN = """
import importlib.util, sys
path, kind, size, shuffle, strategy, options, times = sys.argv[1:]
spec = importlib.util.spec_from_file_location("hetnn._core", path)
core = importlib.util.module_from_spec(spec)
spec.loader.exec_module(core)
problem = core.PlanProblem.generate(kind, int(size), 7, 2, 0.2, 0.0, True, shuffle == "True")
for _ in range(int(times)):
    problem.plan(strategy, options)
"""


def plan_minstr(kind: str, size: int, shuffle: bool, strategy: str, options: dict[str, Any]) -> float:
    """Millions of instructions of one plan: what a process that plans executes more than one that does not."""
    arguments = [str(_core.__file__), kind, str(size), str(shuffle), strategy, json.dumps(options)]
    # Without a plan the strategy does not matter: counted once for all.
    without = [*arguments[:4], "cost", "{}", "0"]
    return _minstr((*arguments, "1")) - _minstr(tuple(without))


@functools.cache
def _minstr(arguments: tuple[str, ...]) -> float:
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    done = subprocess.run(
        [*tool, sys.executable, "-c", PLAN, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    counted = re.search(r"Collected : (\d+)", done.stderr)
    if counted is None:
        raise RuntimeError(f"valgrind counted nothing:\n{done.stderr}")
    return int(counted[1]) / 1e6


def growth_table(sizes: list[int], kinds: list[str], shuffle: bool, count: bool) -> list[dict[str, Any]]:
    rows = []
    print(f"{'graph':16} {'strategy':34} " + " ".join(f"{size:>10,}" for size in sizes) + "   /nlogn    last")
    for kind in kinds:
        problems = [
            _core.PlanProblem.generate(kind, size, 7, 2, 0.2, 0.0, launch=True, shuffle=shuffle)
            for size in ([] if count else sizes)
        ]
        for strategy, options in STRATEGIES:
            name = " ".join([strategy, *(f"{key}={value}" for key, value in options.items())])
            if count:
                times = [plan_minstr(kind, size, shuffle, strategy, options) for size in sizes]
            else:
                times = [plan_ms(problem, strategy, options) for problem in problems]
            whole, last = _growth(sizes, times), _growth(sizes[-2:], times[-2:])
            print(
                f"{kind:16} {name:34} " + " ".join(f"{t:10.2f}" for t in times) + f"   {whole:6.2f}  {last:6.2f}",
                flush=True,
            )
            rows.append(
                {
                    "graph": kind,
                    "strategy": name,
                    "sizes": sizes,
                    "minstr" if count else "ms": times,
                    "over_n_log_n": whole,
                    "over_n_log_n_last": last,
                }
            )
    return rows


def _growth(sizes: list[int], times: list[float]) -> float:
    """The growth of the time from the first size to the last over that of n log n."""
    expected = sizes[-1] * math.log(sizes[-1]) / (sizes[0] * math.log(sizes[0]))
    return times[-1] / times[0] / expected


def torch_partitioner(size: int) -> dict[str, Any]:
    """torch's partitioner on a layered graph of additions, a fifth of which it is told not to support."""
    import torch
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    from torch.fx.passes.operator_support import OperatorSupportBase

    problem = hetnn.generate_problem("layered", size, 7, unsupported=0.2, shuffle=False)
    graph = torch.fx.Graph()
    nodes: dict[str, torch.fx.Node] = {}
    source = graph.placeholder("x")
    supported = set()
    for node in problem["nodes"]:
        value = source
        inputs = [nodes[name] for name in node["inputs"]] or [source]
        value = graph.call_function(torch.cat, (inputs,))
        nodes[node["id"]] = value
        if "npu" in node["time_us"]:
            supported.add(value.name)
    read = {name for node in problem["nodes"] for name in node["inputs"]}
    graph.output(tuple(value for name, value in nodes.items() if name not in read))

    class Support(OperatorSupportBase):
        def is_node_supported(self, submodules: Any, node: torch.fx.Node) -> bool:
            return node.name in supported

    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    begin = time.perf_counter()
    partitions = CapabilityBasedPartitioner(module, Support(), allows_single_node_partition=True).propose_partitions()
    theirs_ms = (time.perf_counter() - begin) * 1e3
    begin = time.perf_counter()
    ours = hetnn.plan_problem(problem, "topological")
    ours_ms = (time.perf_counter() - begin) * 1e3
    row = {
        "nodes": size,
        "torch_ms": theirs_ms,
        "torch_subgraphs": len(partitions),
        "hetnn_ms": ours["plan_us"] / 1e3,
        "hetnn_ms_from_dict": ours_ms,
        "hetnn_subgraphs": ours["subgraphs_on"]["npu"],
        "bound": ours["lower_bound_subgraphs"]["npu"],
    }
    print(
        f"{size:>8,} nodes: torch {theirs_ms:10.1f} ms, {len(partitions)} subgraphs; hetnn {row['hetnn_ms']:.2f} ms "
        f"({ours_ms:.1f} from a dict), {row['hetnn_subgraphs']} subgraphs; fewest possible {row['bound']}"
    )
    return row


def brute_force(problem: dict[str, Any]) -> float:
    """The least cost of any colouring of two devices, each drawn as the cheapest alternating runs."""
    nodes = {node["id"]: node for node in problem["nodes"]}
    order: list[dict[str, Any]] = []
    done: set[str] = set()
    while len(order) < len(nodes):
        ready = [n for n in problem["nodes"] if n["id"] not in done and all(i in done for i in n["inputs"])]
        order += ready
        done.update(n["id"] for n in ready)
    launch = {device["name"]: device["launch_us"] for device in problem["devices"]}
    link = problem["links"]
    best = math.inf
    for choice in itertools.product(*(node["time_us"] for node in order)):
        at = {node["id"]: device for node, device in zip(order, choice, strict=True)}
        cost = sum(node["time_us"][at[node["id"]]] for node in order)
        moved = {(i, at[node["id"]]) for node in order for i in node["inputs"] if at[i] != at[node["id"]]}
        cost += sum(link["latency_us"] + nodes[i]["output_bytes"] / link["bytes_per_us"] for i, _ in moved)
        if cost >= best:
            continue
        best = min(best, cost + min(_launches(order, at, launch, first) for first in launch))
    return best


def _launches(order: list[dict[str, Any]], at: dict[str, str], launch: dict[str, float], first: str) -> float:
    run: dict[str, int] = {}
    for node in order:
        mine = at[node["id"]]
        run[node["id"]] = max([int(mine != first)] + [run[i] + (at[i] != mine) for i in node["inputs"]])
    return sum({run[n]: launch[at[n]] for n in run}.values())


def optimality(graphs: int) -> dict[str, float]:
    gaps: dict[str, list[float]] = {"without launches": [], "with launches": []}
    for seed in range(graphs):
        kind = ["layered", "series-parallel", "random", "chain"][seed % 4]
        for name, launch in (("without launches", False), ("with launches", True)):
            problem = hetnn.generate_problem(kind, 2 + seed % 11, seed, unsupported=0.25, launch=launch)
            gaps[name].append(hetnn.plan_problem(problem)["cost_us"] / brute_force(problem) - 1)
    for name, values in gaps.items():
        print(
            f"gap of cost to the optimum {name}: {len(values)} graphs of 2 to 12 nodes, mean "
            f"{100 * sum(values) / len(values):.4f} %, worst {100 * max(values):.2f} %"
        )
    return {name: max(values) for name, values in gaps.items()}


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def main(argv: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=_numbers, default=[1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--torch", type=_numbers, default=[1000, 2000], help="sizes for torch's; '' for none")
    parser.add_argument("--optimality", type=int, default=0, metavar="GRAPHS")
    parser.add_argument("--in-order", action="store_true")
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args(None if argv is None else list(argv))
    document: dict[str, Any] = {}
    if args.optimality:
        document["worst_gap"] = optimality(args.optimality)
    if args.sizes:
        document["growth"] = growth_table(args.sizes, args.kinds.split(","), not args.in_order, args.instructions)
    document["torch"] = [torch_partitioner(size) for size in args.torch]
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)


if __name__ == "__main__":
    main()
