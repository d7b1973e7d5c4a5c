"""Bits are equal over numbers of threads, over runs and over processes, for the models of the tests."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hetnn
from models import nets

# The same in this process and in others: the arrays' bits.
OF_A_FILE = """
import sys
import numpy as np
import hetnn
exe = hetnn.load(sys.argv[1], threads=int(sys.argv[3]))
inputs = np.load(sys.argv[2])
np.savez(sys.argv[4], *exe.run([inputs[key] for key in inputs.files]))
"""


def digest(arrays: Any) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-mul"])
@pytest.mark.parametrize("name", nets.NETS)
def test_bits_are_equal(name: str, target: str, tmp_path: Path) -> None:
    module, inputs = nets.NETS[name]()
    if target != "cpu" and sum(p.numel() for p in module.parameters()) > 5_000_000:
        pytest.skip("takes minutes on a simulator")
    exe = hetnn.compile(torch.export.export(module, inputs, strict=False), target, tune=False)
    exe.save(tmp_path / "m.hetnn")
    arrays = [x.numpy() for x in inputs]
    first = digest(exe.run(arrays))
    for threads in (1, 2, 3, 4, 8):
        one = hetnn.load(tmp_path / "m.hetnn", threads=threads)
        assert [digest(one.run(arrays)) for _ in range(2)] == [first] * 2, f"{threads} threads"
    np.savez(tmp_path / "x.npz", *arrays)
    for threads in ("1", "2"):
        files = [str(tmp_path / "m.hetnn"), str(tmp_path / "x.npz"), threads, str(tmp_path / "y.npz")]
        subprocess.run([sys.executable, "-c", OF_A_FILE, *files], check=True, timeout=300)
        got = np.load(tmp_path / "y.npz")
        assert digest(got[key] for key in got.files) == first
