"""What compiling adds to a process: at its peak and when the executable stands, by the size of the weights."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

MEASURED = """
import gc, json
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

hetnn.compile(stack(1, 8))
program = stack(6, 2048)
gc.collect()
before = bytes_of("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
executable = hetnn.compile(program)
peak, kept = bytes_of("VmHWM") - before, bytes_of("VmRSS") - before
print(json.dumps([peak, kept, 6 * 4 * 2048 * 2048]))
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the system does not tell peaks")
def test_compiling_holds_packed_weights_and_the_image_at_most() -> None:
    """Norms are folded, so that no weight is the model's own any more."""
    done = subprocess.run([sys.executable, "-c", MEASURED], check=True, capture_output=True, text=True)
    peak, kept, weights = json.loads(done.stdout)
    assert peak < 2.2 * weights
    assert kept < 1.2 * weights
