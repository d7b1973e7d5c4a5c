"""Programs compiled for targets, beside eager torch."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import hetnn
from fuzz.networks.program import Program, Wanted, apart, expected, largest
from fuzz.workers import Found

# What forms that an NPU computes instead of an activation may err by, beside the largest value, and other engines.
FORMS = 2e-3
THEIRS = 1e-4
STRAYS = 8
EPSILONS = 32


@dataclass(frozen=True)
class Target:
    name: str
    options: dict[str, Any]
    may_err: float = 0.0

    def __str__(self) -> str:
        return " ".join([self.name, *(f"{key}={value}" for key, value in self.options.items())])


CPU = Target("cpu", {})
OTHERS = [
    Target("cpu", {"deterministic": True}),
    Target("cpu", {"denormals": "keep", "fusion": False}),
    Target("cpu+relu-only", {}, FORMS),
    Target("cpu+relu-only", {"rewrite": "always", "strategy": "take-all"}, FORMS),
    Target("cpu+relu-mul", {"strategy": "take-all"}, FORMS),
    Target("cpu+relu-table", {"strategy": "take-all"}, FORMS),
    Target("reference", {}),
    Target("cpu+openvino-cpu", {"strategy": "take-all"}, THEIRS),
    Target("cpu+onnxruntime-cpu", {"strategy": "take-all"}, THEIRS),
]
# An NPU of integers, for networks that are quantized.
INTEGERS = Target("cpu+relu-rows", {"strategy": "take-all"}, FORMS)
REFUSALS = (hetnn.Unsupported, hetnn.DoesNotFit)


class Untaken(Exception):
    """Neither right nor wrong: torch does not export it, or hetnn refuses it by name."""


def exported(program: Program) -> Any:
    module, inputs = program.module(), tuple(x.clone() for x in program.runs[0].values())
    dynamic = tuple(program.dynamic.get(name) for name in program.runs[0]) if program.dynamic else None
    try:
        return torch.export.export(module, inputs, dynamic_shapes=dynamic, strict=False)
    except Exception as error:
        raise Untaken(f"unexported {type(error).__name__}: {str(error)[:200]}") from error


def compiled(graph: Any, target: Target) -> hetnn.Executable:
    try:
        return hetnn.compile(graph, target.name, tune=False, **target.options)
    except REFUSALS as error:
        raise Untaken(f"refused {target}: {str(error)[:300]}") from error


def _is_open(exe: hetnn.Executable, program: Program, run: dict[str, Tensor]) -> bool:
    """Whether sizes of that run are among those that the export left open."""
    for port, x in zip(exe.inputs, run.values(), strict=True):
        if len(port.shape) != x.ndim or any(
            isinstance(n, int) and n != m for n, m in zip(port.shape, x.shape, strict=True)
        ):
            return False
    return True


def check_run(program: Program, found: Sequence[Tensor], wanted: Wanted, what: str, may_err: float) -> None:
    if len(found) != len(wanted.outputs):
        raise Found(f"{what} gives {len(found)} results for {len(wanted.outputs)}")
    for name, y, right, strays in zip(program.outputs, found, wanted.outputs, wanted.strays, strict=True):
        if (y.shape, y.dtype) != (right.shape, right.dtype):
            raise Found(f"{what} gives {name} as {y.dtype}{list(y.shape)}, torch as {right.dtype}{list(right.shape)}")
        allowed = 0.0
        if right.is_floating_point():
            size = max(largest(right), 1e-2 if not program.exact else 0.0)
            allowed = STRAYS * strays + (EPSILONS * torch.finfo(right.dtype).eps + may_err) * size
        elif strays:
            continue
        if program.exact:
            unlike = _unlike(y, right)
            if unlike is not None:
                raise Found(f"{what} gives {name} {unlike}")
            continue
        far = apart(y, right)
        if not far <= allowed:
            pair = [each.ravel()[:6].tolist() for each in (y, right)]
            raise Found(f"{what} gives {name} {far:.3g} from torch's, {allowed:.3g} allowed: {pair[0]}, {pair[1]}")


def _unlike(y: Tensor, right: Tensor) -> str | None:
    """Of special values: the class of each element, and finite ones nearly."""
    if not right.is_floating_point():
        return None if torch.equal(y, right) else f"{y.ravel()[:8].tolist()}, torch {right.ravel()[:8].tolist()}"
    near = (y == right) | (y.isnan() & right.isnan()) | ((y - right).abs() <= 1e-3 * right.abs().clamp(min=1e-3))
    if near.all():
        return None
    at = (~near).nonzero()[0].tolist()
    return f"at {at} {y[tuple(at)].item() if at else y.item()}, torch {right[tuple(at)].item() if at else right.item()}"


def check(program: Program, graph: Any, wanted: Sequence[Wanted], target: Target) -> str:
    """Compiles and runs; raises Found. How many runs were compared."""
    exe = compiled(graph, target)
    may_err = 0.0
    if target.may_err:
        report = exe.report(format="dict")
        may_err = target.may_err if target.may_err == THEIRS or report["rewrites"] else 1e-5
    many = 0
    for k, (run, right) in enumerate(zip(program.runs, wanted, strict=True)):
        if not _is_open(exe, program, run):
            continue
        if k == 2 and program.states:
            with tempfile.TemporaryDirectory() as folder:
                exe.save(Path(folder) / "m.hetnn")
                exe = hetnn.load(Path(folder) / "m.hetnn")
        try:
            results = exe(*(x.clone() for x in run.values()))
        except hetnn.InvalidModel as error:
            if "the model is for sizes" in str(error) or "must be in [" in str(error):  # as torch's export says
                continue
            raise
        found = [torch.as_tensor(y) for y in (results if isinstance(results, (list, tuple)) else [results])]
        check_run(program, found, right, f"{target}, run {k},", may_err)
        many += 1
    return f"{many}"


def attempt(program: Program, targets: Sequence[Target]) -> str:
    """A word for how it ended; Found where a target gives something else than torch."""
    if not program.outputs:
        return "empty"
    try:
        wanted = expected(program)
    except Exception as error:
        return f"void {type(error).__name__}"
    try:
        graph = exported(program)
    except Untaken as error:
        return " ".join(str(error).split())
    told = "equal"
    if program.exact:  # engines differ
        targets = [target for target in targets if target.may_err != THEIRS]
    for target in targets:
        try:
            check(program, graph, wanted, target)
        except Untaken as refusal:
            if os.environ.get("FUZZ_REFUSALS"):
                print(refusal, flush=True)
            told = "equal-or-refused"
    return told
