"""Twelve int8 networks on Arm's Ethos-U by hetnn, beside Vela alone on the same TFLite files.

Cycles are Vela's predictions of both; a share is that of multiplications on the accelerator. `python
benchmarks/devices/ethos.py [--accelerator u55-256] [--network NAME] [--check] [--json FILE]`. With --check, values of
every network are compared with the CPU's and with TOSA's reference model (in build/apart). With --between, small
networks that have one operator between convolutions: how often each leaves the accelerator, and for how many elements.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import hetnn

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))
from backends.between import STEPS, between  # noqa: E402
from backends.integer_networks import NETWORKS  # noqa: E402
from hetnn.backends.ethos_u import reports, vela  # noqa: E402
from hetnn.exporters.tosa import FORMS, export  # noqa: E402
from hetnn.importers.tflite.model import read_model  # noqa: E402


def shares(report: dict[str, Any]) -> tuple[float, float]:
    """Of nodes and of multiplications, in percent."""
    nodes, macs = report["nodes_on"], report["macs_on"]
    on_cpu = [counts["cpu"] / max(1, sum(counts.values())) for counts in (nodes, macs)]
    return 100 * (1 - on_cpu[0]), 100 * (1 - on_cpu[1])


def check(model: bytes, target: str, executable: hetnn.Executable, chains: bool) -> int:
    """Values that differ: from hetnn's CPU, and each subgraph from TOSA's reference model."""
    rng = np.random.default_rng(0)
    feed = [rng.integers(-128, 128, port.shape).astype(np.int8) for port in executable.inputs]
    plain = hetnn.compile(model, "cpu").run(feed)
    apart = sum(int(np.count_nonzero(a != b)) for a, b in zip(executable.run(feed), plain, strict=True))
    (packages,) = (ROOT / "build" / "apart").glob("lib/python*/site-packages")
    sys.path.append(str(packages))
    import tosa_reference_model

    sys.path.remove(str(packages))
    for part in hetnn.plan(model, target, strategy="take-all")._plan.subgraphs():
        if part["device"] == "cpu":
            continue
        graph = part["graph"]
        given = [rng.integers(-128, 128, shape).astype(np.int8) for _, _, shape in graph.inputs]
        wanted = hetnn.compile(graph.print().replace("stage = cut", "stage = imported"), "cpu").run(given)
        for data in {export(graph, chains, form) for form in FORMS}:  # of which Vela's cycles choose
            found, _ = tosa_reference_model.run(data, given)
            for got, want in zip(found, wanted, strict=True):
                apart += int(np.count_nonzero(np.asarray(got).reshape(want.shape) != want))
    return apart


def compare(name: str, variant: str, checked: bool) -> dict[str, Any]:
    model, target = NETWORKS[name](), f"cpu+ethos-{variant}"
    accelerator = vela.Accelerator.of("vela", {"variant": variant})
    own = vela.compile_network(model, accelerator, tflite=True).report
    executable = hetnn.compile(model, target, strategy="take-all")
    told, report = reports(executable), executable.report("dict")
    cycles = sum(each["cycles"] for each in told.values())
    nodes, macs = shares(report)
    row = {
        "network": name,
        "vela_cycles": own["cycles"],
        "vela_cpu_operators": own["cpu_operators"],
        "cycles": cycles,
        "ratio": cycles / own["cycles"],
        "subgraphs": len(told),
        "nodes_percent": nodes,
        "macs_percent": macs,
    }
    return {**row, "values_apart": check(model, target, executable, accelerator.chains)} if checked else row


def compare_between(name: str, variant: str) -> dict[str, Any]:
    """Cycles on the accelerator, visits to the CPU between its parts, and elements that are made there."""
    model = between(name)
    own = vela.compile_network(model, vela.Accelerator.of("vela", {"variant": variant}), tflite=True)
    (graph,) = read_model(own.data).subgraphs
    on_cpu = [op for op in graph.operators if not op.name.startswith("CUSTOM")]
    executable = hetnn.compile(model, f"cpu+ethos-{variant}", strategy="take-all")
    report = executable.report("dict")
    ours = [row for row in report["graph"] if row["device"] == "cpu"]
    return {
        "operator": name,
        "vela_cycles": own.report["cycles"],
        "vela_visits": len(on_cpu),
        "vela_cpu_elements": sum(int(np.prod(graph.tensors[op.outputs[0]].shape)) for op in on_cpu),
        "cycles": sum(each["cycles"] for each in reports(executable).values()),
        "visits": sum(part["device"] == "cpu" for part in report["subgraphs"]),
        "cpu_elements": sum(int(np.prod(row["shape"])) for row in ours),
    }


def print_between(variant: str) -> list[dict[str, Any]]:
    rows = [compare_between(name, variant) for name in STEPS]
    for row in rows:
        whole = [row[f"{who}cycles"] + row[f"{who}cpu_elements"] for who in ("", "vela_")]
        print(
            f"{row['operator']:>17}: Vela {row['vela_cycles']:>9,} cycles, {row['vela_visits']} visits to the CPU for "
            f"{row['vela_cpu_elements']:>7,} elements; hetnn {row['cycles']:>9,}, {row['visits']} for "
            f"{row['cpu_elements']:>7,}; {row['cycles'] / row['vela_cycles']:.3f}, with a cycle an element on the CPU "
            f"{whole[0] / whole[1]:.3f}",
            flush=True,
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--accelerator", default="u55-256", choices=vela.accelerators())
    parser.add_argument("--network", action="append", choices=NETWORKS)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--between", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    rows = print_between(args.accelerator) if args.between else []
    for name in () if args.between else args.network or NETWORKS:
        row = compare(name, args.accelerator, args.check)
        rows.append(row)
        apart = f", {row['values_apart']} values apart" if args.check else ""
        print(
            f"{name:>17}: Vela {row['vela_cycles']:>10,} ({row['vela_cpu_operators']} operators on the CPU), hetnn "
            f"{row['cycles']:>10,}, {row['ratio']:.3f}; {row['subgraphs']} subgraphs, {row['nodes_percent']:.0f} % of "
            f"nodes, {row['macs_percent']:.0f} % of products{apart}",
            flush=True,
        )
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
