"""Every network of the CPU's bench on OpenVINO's CPU: `make test-long`. Three of them are in `test_vendors.py`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import hetnn

BENCH = Path(__file__).resolve().parents[3] / "benchmarks" / "cpu" / "networks.py"


def bench() -> Any:
    spec = importlib.util.spec_from_file_location("bench_networks", BENCH)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NETWORKS = bench()


@pytest.mark.long
@pytest.mark.parametrize("name", NETWORKS.MAIN)
def test_networks_of_the_bench_equal_eager(name: str) -> None:
    module, args = NETWORKS.build(name)
    target = "cpu+openvino-cpu"
    exe = hetnn.compile(torch.export.export(module, args, strict=False), target, strategy="take-all")
    on = exe.report("dict")["macs_on"]
    assert on["openvino-cpu"] > 0.99 * sum(on.values()), exe.report()
    for given in (args, NETWORKS.others(args)):
        with torch.no_grad():
            expected, found = module(*given), exe(*given)
        expected, found = ([y] if isinstance(y, torch.Tensor) else list(y) for y in (expected, found))
        for want, got in zip(expected, found, strict=True):
            assert torch.allclose(got, want, rtol=0, atol=1e-4 * float(want.abs().max()))
