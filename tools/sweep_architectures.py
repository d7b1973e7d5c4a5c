"""Runs the networks of timm and transformers beside eager torch: a table, then what hetnn does not do as torch does.

    python tools/sweep_architectures.py [--only PATTERN] [--sample N --seed S] [--targets cpu,cpu+relu-only] [--dynamo]

The two smallest models of every module of timm, and the base model of every kind of transformers that its configuration
makes small, with random weights, through torch.export, on `cpu`; the smallest of a timm module on `cpu+relu-only` too.
Each has a process of its own, one thread, a limit of memory and one of time. Outputs must be of torch's shapes and
types and as near as f32 is, on two inputs. What torch itself does not build small, run or export, or not the same way
twice, is counted apart with its reason. With --dynamo it is torch.compile by which a network comes to hetnn, and a
graph that stays in eager mode is a refusal. Exit code 1 where hetnn refuses a network or has one wrong.
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import re
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from forked import Result, run_forked

# What an output may be away: from its own value, and from the largest.
NEAR, NEAR_LARGEST = 1e-3, 1e-4
# How often the distance of eager torch from itself in f64 hetnn may be away from it where that is beyond the tolerance.
UNSTEADY = 4
SHOWN = 160


def leaves(out: Any) -> list[Any]:
    """The tensors of an output, in torch's order."""
    import torch
    from torch.utils._pytree import tree_leaves

    return [leaf for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]


def difference(mine: list[Any], wanted: list[Any], with_types: bool = True) -> tuple[float, str]:
    """How far outputs are away by what they may be, 1 at the limit, and what is wrong beyond it."""
    import torch

    if len(mine) != len(wanted):
        return float("inf"), f"{len(mine)} outputs, not {len(wanted)}"
    worst, why = 0.0, ""
    for k, (got, want) in enumerate(zip(mine, wanted, strict=True)):
        if got.shape != want.shape or (with_types and got.dtype != want.dtype):
            return float("inf"), f"output {k} is {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
        if not want.numel():
            continue
        got, want = (torch.view_as_real(v) if v.is_complex() else v for v in (got, want))
        got, want = got.double(), want.double()
        finite = torch.isfinite(want)
        if not torch.equal(torch.isfinite(got), finite) or not torch.equal(got.isnan(), want.isnan()):
            return float("inf"), f"output {k} is not finite in other places"
        got, want = got[finite], want[finite]
        if want.numel():
            allowed = NEAR * want.abs() + NEAR_LARGEST * want.abs().max()
            share = float(torch.where(got == want, 0.0, (got - want).abs() / allowed).max())
            if share > max(1, worst):
                why = f"output {k} {list(mine[k].shape)} is {share:.3g} times the tolerance away"
            worst = max(worst, share)
    return worst, why


def _line(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"


def _own_error(module: Any, inputs: dict[str, Any], wanted: list[Any]) -> float:
    """How far eager torch in f32 is from itself in f64, by what an output may be; 0 where it does not run in f64."""
    import torch

    try:
        module = module.double()
        wide = {name: value.double() if value.is_floating_point() else value for name, value in inputs.items()}
        return difference(leaves(module(**wide)), wanted, with_types=False)[0]
    except Exception:
        return 0.0
    finally:
        module.to(torch.float32)


def beside(unit: str, targets: list[str], memory_bytes: int, phase: Path, dynamo: bool = False) -> Result:
    """What came of a unit: ok, a finding (wrong, refused, error), or what is counted apart; a row as JSON."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    warnings.simplefilter("ignore")
    import torch

    import architectures

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    row: dict[str, Any] = {}

    def ended(state: str, why: str) -> Result:
        return state, json.dumps(row | {"why": why[:2000]})

    phase.write_text("build")
    try:
        network = architectures.built(unit)
    except architectures.NotBuilt as error:
        return ended("not built", str(error))
    given = [network.inputs(seed) for seed in (1, 2)]
    row["called"], row["parameters"] = network.called, network.parameters
    row["sizes"] = " ".join("x".join(map(str, value.shape)) for value in given[0].values())
    phase.write_text("run")
    wanted = []
    for inputs in given:
        try:
            once, again = (leaves(network.module(**inputs)) for _ in range(2))
        except Exception as error:
            return ended("not run", _line(error))
        if difference(again, once)[0] > 0.1:
            return ended("random", "eager torch gives other outputs a second time")
        if not once:
            return ended("not run", "no output is a tensor")
        wanted.append(once)
    phase.write_text("export")
    if dynamo:
        make = partial(_by_dynamo, network.module)
        captured = leaves(torch.compile(network.module, backend="eager")(**given[1]))
        if difference(captured, wanted[1])[0] > 1:
            return ended("not captured", "what torch.compile captured is not what eager torch gives")
    else:
        try:
            program = torch.export.export(network.module, (), given[0], strict=False)
            exported = leaves(program.module()(**given[1]))
        except Exception as error:
            return ended("not exported", _line(error))
        if difference(exported, wanted[1])[0] > 1:
            return ended("not exported", "what torch exported is not what eager torch gives for other inputs")
        make = partial(_by_export, program)

    worst = 0.0
    for target in targets:
        phase.write_text(f"{target}")
        state, why, away = _on(partial(make, target), given, wanted, row)
        if state == "wrong" and away < float("inf"):
            own = max(_own_error(network.module, *both) for both in zip(given, wanted, strict=True))
            if away < UNSTEADY * own:
                state, why = "unsteady", f"eager torch is {own:.3g} times the tolerance from itself in f64; {why}"
        if state != "ok":
            return ended(state, f"{target}: {why}")
        worst = max(worst, away)
    row["away"] = round(worst, 4)
    row["mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return ended("ok", "")


def _by_export(program: Any, target: str) -> Callable[..., Any]:
    import hetnn

    return hetnn.compile(program, target, threads=1)


def _by_dynamo(module: Any, target: str) -> Callable[..., Any]:
    import torch

    torch._dynamo.reset()
    compiled: Callable[..., Any] = torch.compile(module, backend="hetnn", options={"target": target, "threads": 1})
    return compiled


def _on(
    make: Callable[[], Callable[..., Any]],
    given: list[dict[str, Any]],
    wanted: list[list[Any]],
    row: dict[str, Any],
) -> tuple[str, str, float]:
    """What came of a network: a state, why, and how far the worst output is away."""
    import hetnn

    begin = time.perf_counter()
    try:
        executable = make()
        row["compile_s"] = round(row.get("compile_s", 0) + time.perf_counter() - begin, 2)
        worst = 0.0
        for inputs, outputs in zip(given, wanted, strict=True):
            away, why = difference(leaves(executable(**inputs)), outputs)
            if away > 1:
                return "wrong", why, away
            worst = max(worst, away)
    except hetnn.Error as error:
        return "refused", f"{type(error).__name__}: {error}", 0.0
    except Exception as error:  # an error of no kind of hetnn's
        return "error", _line(error), 0.0
    left = [graph for graph in hetnn.torch_report(clear=True) if not graph.compiled]
    if left:
        return "refused", f"{len(left)} graphs stay in eager mode: {left[0].why}", worst
    return "ok", "", worst


def chosen(units: list[str], only: str, sample: int | None, seed: int) -> list[str]:
    """The units in which an expression is found; of these a sample, drawn by a seed, in their order."""
    found = [unit for unit in units if re.search(only, unit)]
    return found if sample is None else sorted(random.Random(seed).sample(found, min(sample, len(found))))


FINDINGS = ("wrong", "refused", "error", "crash", "timeout")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--only", default="", metavar="PATTERN", help="take only units in which this expression is found"
    )
    parser.add_argument("--sample", type=int, metavar="N", help="take only N of them, drawn by the seed")
    parser.add_argument("--seed", type=int, default=0, help="what the sample is drawn by")
    parser.add_argument("--targets", help="by commas; by themselves cpu, and cpu+relu-only for the smallest of timm")
    parser.add_argument("--seconds", type=float, default=240, help="the time of one unit")
    parser.add_argument("--memory-gb", type=float, default=12, help="the address space of each process")
    parser.add_argument("--jobs", type=int, default=1, help="how many run at once")
    parser.add_argument("--dynamo", action="store_true", help="by torch.compile in place of torch.export")
    told = parser.parse_args()

    import transformers

    import architectures
    import hetnn  # noqa: F401, so that each process need not

    transformers.logging.set_verbosity(40)
    units = chosen(architectures.units(), told.only, told.sample, told.seed)
    memory = int(told.memory_gb * 2**30)
    findings: list[str] = []
    apart: dict[str, list[str]] = collections.defaultdict(list)
    width = max(map(len, units), default=0)
    print(f"{'':{width}}  state         million  compile s   away     MB  what, and its inputs")

    with tempfile.TemporaryDirectory() as folder:

        def phase(unit: str) -> Path:
            return Path(folder) / unit.replace("/", "_")

        def job(unit: str) -> Result:
            also = ["cpu+relu-only"] if unit.startswith("timm/") and unit.endswith("/1") else []
            targets = told.targets.split(",") if told.targets else ["cpu", *also]
            return beside(unit, targets, memory, phase(unit), told.dynamo)

        def tell(unit: str, result: Result) -> None:
            state, text = result
            row: dict[str, Any] = json.loads(text) if text.startswith("{") else {"why": text}
            reached = phase(unit).read_text() if phase(unit).exists() else "build"
            if state in ("crash", "timeout", "error") and "called" not in row:
                row["why"] = f"{state} {row['why']} at {reached}"
                named = {"build": "not built", "run": "not run", "export": "not exported"}
                state = named.get(reached, state)
            million = f"{row['parameters'] / 1e6:.2f}" if "parameters" in row else ""
            cells = f"{million:>7} {row.get('compile_s', ''):>10} {row.get('away', ''):>6} {row.get('mb', ''):>6}"
            print(f"{unit:{width}}  {state:12} {cells}  {row.get('called', '')} {row.get('sizes', '')}", flush=True)
            if state in FINDINGS:
                findings.append(f"{unit} {row.get('called', '')}: {state}: {row['why']}")
            elif state != "ok":
                apart[state].append(f"{unit}: {row['why']}")

        results = run_forked(job, units, told.jobs, told.seconds, tell)
    beside_torch = len(results) - sum(map(len, apart.values()))
    print(f"{beside_torch - len(findings)} of {beside_torch} are as torch has them")
    for state, lines in apart.items():
        print(f"{len(lines)} {state}")
        print(*(f"  {line[:SHOWN]}" for line in lines), sep="\n")
    print(f"{len(findings)} findings", *(f"  {line}" for line in findings), sep="\n")
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
