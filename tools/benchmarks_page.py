"""The page of benchmarks: tables of what the benches wrote as JSON, with date and machine."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from export_page import NOTICE

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "benchmarks"
NEAR = 1e-4  # as in benchmarks/cpu/bench.py


def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def _when(run: dict[str, Any]) -> str:
    """Date and machine of a run."""
    machine = run.get("machine")
    if machine is None:
        return f"{run['date']}; cycles are counted, so no machine matters."
    flags = ", ".join(machine["flags"])
    return f"{run['date']}; {machine['model']} ({flags}), {machine['threads']} threads."


def cpu_table(run: dict[str, Any]) -> str:
    """Milliseconds of each network, a column an engine; "!" behind an answer that is not near enough to count."""
    engines = list(dict.fromkeys(engine for row in run["rows"] for engine in row["us"] if engine != "hetnn-onnx"))
    lines = [f"| network | {' | '.join(engines)} | best other / hetnn |", "|---" * (len(engines) + 2) + "|"]
    for row in run["rows"]:
        far = {engine for engine, error in row["error"].items() if error is None or error > NEAR}
        found = {engine: f"{us / 1e3:.2f}{'!' * (engine in far)}" for engine, us in row["us"].items()}
        times = [found.get(engine, "–") for engine in engines]
        lines.append(f"| {row['net']} | {' | '.join(times)} | {row['ratio']:.2f} |")
    return "\n".join(lines)


def cpu_sum(run: dict[str, Any]) -> str:
    """The mean over the networks, and the lowest one."""
    least = min(run["rows"], key=lambda row: row["ratio"])
    if least["ratio"] <= 0:
        return f"{least['net']} does not run right."
    mean = math.exp(sum(math.log(row["ratio"]) for row in run["rows"]) / len(run["rows"]))
    return f"Geometric mean **{mean:.2f}**, lowest **{least['ratio']:.2f}** ({least['net']})."


def npu_table(run: dict[str, Any]) -> str:
    """Cycles of quantized networks on simulated NPUs, beside what no schedule is below."""
    lines = ["| network | data sheet | cycles | bound | cycles / bound | subgraphs |", "|---|---|---|---|---|---|"]
    for row in run["rows"]:
        cycles = f"{row['cycles']:,} | {row['bound']:,} | {row['ratio']:.3f}"
        lines.append(f"| {row['network']} | {row['sheet']} | {cycles} | {row['subgraphs']} |")
    return "\n".join(lines)


def benchmarks_page() -> str:
    """The page: what was measured, where, and by which command."""
    cpu, npu = _read("cpu"), _read("npu")
    return f"""# Benchmarks

{NOTICE} The figures are those of `docs/benchmarks/*.json`, which the benches write by `--json`.

## Networks on the CPU

f32, batch 1, milliseconds: the median over the rounds of several processes of each engine, in turns. {_when(cpu)}

{cpu_table(cpu)}

{cpu_sum(cpu)} `!`: further from torch than 1e-4 of the largest element, and not counted; `–`: the engine does not take
the network. Measured by `python benchmarks/cpu/bench.py run FOLDER --json docs/benchmarks/cpu.json`; `make bench-cpu`
sets up its networks and peers. Rows are to be compared along the row: the machine is a virtual one. Where time goes
stands on [the page of the CPU](cpu.md).

## int8 on simulated NPUs

Networks with random weights, quantized here. `bound` is the larger of what each engine computes, every layer at its
best tile, and of what the memory hands over once. {_when(npu)}

{npu_table(npu)}

Measured by `python benchmarks/npu.py --json docs/benchmarks/npu.json`.

## What else is measured

`make help` lists the benches: planning, compiling, single operators, quantized networks beside ONNX Runtime and
OpenVINO, labels, training, serving, devices elsewhere. [Quantizing](quantize.md), [training](training.md) and
[serving](serving.md) tell what was found.
"""


def readme() -> str:
    """The README, with the table of networks on the CPU."""
    begin, end = "<!-- benchmarks: made by `make docs` -->\n", "<!-- end of benchmarks -->"
    before, rest = (ROOT / "README.md").read_text(encoding="utf-8").split(begin)
    run = _read("cpu")
    words = f"Networks on the CPU: f32, batch 1, milliseconds. {_when(run)}"
    return f"{before}{begin}{words}\n\n{cpu_table(run)}\n\n{cpu_sum(run)}\n\n{end}{rest.split(end)[1]}"
