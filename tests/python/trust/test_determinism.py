"""Bits are equal over numbers of threads, over runs and over processes, for the models of the tests."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hetnn
from models import nets

# Runs of a file by each number of threads, twice: the arrays' bits.
RUNS = """
import sys
import numpy as np
import hetnn
file, inputs, outputs, *threads = sys.argv[1:]
arrays = list(np.load(inputs).values())
for number in threads:
    exe = hetnn.load(file, threads=int(number))
    for again in range(2):
        np.savez(f"{outputs}/{number}-{again}.npz", *exe.run(arrays))
"""


def digest(arrays: Any) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()


# Those that take minutes on a simulator.
LARGE = ("resnet18", "mobilenet_v3_large", "efficientnet_b0", "minilm", "minilm_real")


@pytest.mark.parametrize(
    ("name", "target"),
    [
        *((name, "cpu") for name in nets.NETS),
        *(
            pytest.param(name, "cpu+relu-mul", marks=[pytest.mark.slow, pytest.mark.long] if name in LARGE else [])
            for name in nets.NETS
        ),
    ],
)
def test_bits_are_equal(name: str, target: str, tmp_path: Path) -> None:
    module, inputs = nets.NETS[name]()
    exe = hetnn.compile(torch.export.export(module, inputs, strict=False), target, tune=False)
    exe.save(tmp_path / "m.hetnn")
    arrays = [x.numpy() for x in inputs]
    first = digest(exe.run(arrays))
    np.savez(tmp_path / "x.npz", *arrays)
    # More threads than this machine may have CPUs.
    subprocess.run(
        [sys.executable, "-c", RUNS, *(str(tmp_path / part) for part in ("m.hetnn", "x.npz", "")), *"12348"],
        check=True,
        timeout=3600,
        env={**os.environ, "HETNN_CPUS": "8"},
    )
    files = sorted(tmp_path.glob("*-*.npz"))
    assert len(files) == 10
    for file in files:
        assert digest(np.load(file).values()) == first, file.stem


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("channels", [16, 64])
def test_what_is_not_finite_stays_with_what_reads_it(channels: int, deterministic: bool) -> None:
    """Winograd's sums would spread it. What is added in place of what was there is added once."""

    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Conv2d(channels, channels, 3, padding=1)
            self.second = torch.nn.Conv2d(channels, channels, 3, padding=1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x * 2
            return torch.relu(self.second(self.first(y)) + y)

    model, x = Block().eval(), torch.randn(2, channels, 21, 26)
    exe = hetnn.compile(model, args=(x,), deterministic=deterministic)
    for value in (torch.inf, -torch.inf, torch.nan, 3e38):
        x[1, 3, 10, 11] = x[0, 1, 0, 25] = value
        expected, found = model(x).detach(), exe(x)
        for alike in (torch.isnan, torch.isposinf, torch.isneginf):
            assert torch.equal(alike(found), alike(expected)), value
        finite = expected.isfinite()
        assert torch.allclose(found[finite], expected[finite], atol=1e-4)
