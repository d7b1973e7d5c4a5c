"""What compiling adds to a process: at its peak and when the executable stands, by the size of the weights."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

MEASURED = """
import gc, json, sys, tempfile
from pathlib import Path
import torch
from torch import nn
import hetnn

def bytes_of(row):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(row))

def stack(layers, width):
    parts = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU())]
    model = nn.Sequential(*parts).eval()
    for part in parts:
        if isinstance(part, nn.BatchNorm1d):
            part.running_var.uniform_(0.5, 2)
    return torch.export.export(model, (torch.zeros(4, width),), strict=False)

def written(layers, width):
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper
    rng, ports = np.random.default_rng(0), [helper.make_tensor_value_info(name, 1, [4, width]) for name in ("v0", "y")]
    nodes = [helper.make_node("Gemm", [f"v{k}", f"w{k}"], [f"v{k + 1}"], transB=1) for k in range(layers)]
    nodes.append(helper.make_node("Relu", [f"v{layers}"], ["y"]))
    weights = [numpy_helper.from_array(rng.random((width, width), np.float32), f"w{k}") for k in range(layers)]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], weights)
    path = Path(tempfile.mkdtemp()) / "model.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString())
    return path

made = {"torch": stack, "onnx": written}[sys.argv[1]]
hetnn.compile(made(1, 8))
program = made(6, 2048)
gc.collect()
before = bytes_of("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
executable = hetnn.compile(program)
peak, kept = bytes_of("VmHWM") - before, bytes_of("VmRSS") - before
print(json.dumps([peak, kept, 6 * 4 * 2048 * 2048]))
"""


def measured(source: str) -> tuple[float, float]:
    """The peak of compiling and what is kept, as multiples of the weights."""
    done = subprocess.run([sys.executable, "-c", MEASURED, source], check=True, capture_output=True, text=True)
    peak, kept, weights = json.loads(done.stdout)
    return peak / weights, kept / weights


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the system does not tell peaks")
def test_compiling_holds_folded_weights_and_packed_ones_at_most() -> None:
    """Norms are folded, so that no weight is the model's own any more."""
    peak, kept = measured("torch")
    assert peak < 2.2
    assert kept < 1.2


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the system does not tell peaks")
def test_weights_of_a_file_are_there_as_they_are_or_packed() -> None:
    peak, kept = measured("onnx")
    assert peak < 1.5
    assert kept < 1.2
