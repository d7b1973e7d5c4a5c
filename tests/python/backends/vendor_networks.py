"""The networks of the CPU's bench on other people's compilers, beside eager torch."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import torch

import hetnn


def _bench() -> Any:
    path = Path(__file__).resolve().parents[3] / "benchmarks" / "cpu" / "networks.py"
    spec = importlib.util.spec_from_file_location("bench_networks", path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BENCH = _bench()


def assert_equals_eager(name: str, target: str) -> None:
    """A network, all that counts of it on the target's second device, on two inputs."""
    module, args = BENCH.build(name)
    exe = hetnn.compile(torch.export.export(module, args, strict=False), target, strategy="take-all")
    on = exe.report("dict")["macs_on"]
    assert on[target.removeprefix("cpu+")] > 0.99 * sum(on.values()), exe.report()
    for given in (args, BENCH.others(args)):
        with torch.no_grad():
            expected, found = module(*given), exe(*given)
        expected, found = ([y] if isinstance(y, torch.Tensor) else list(y) for y in (expected, found))
        for want, got in zip(expected, found, strict=True):
            assert torch.allclose(got, want, rtol=0, atol=1e-4 * float(want.abs().max()))
