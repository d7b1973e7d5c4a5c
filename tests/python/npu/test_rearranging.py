"""Transpositions that the scratchpad does not hold twice are cut along whichever axis serves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hetnn.targets import load_spec
from npu.programs import build

I8 = "i8{0.05}"


def transposed(shape: list[int], perm: list[int], around: bool) -> str:
    """A transposition as IR text, by itself or between two layers."""

    def sizes(of: list[int]) -> str:
        return "[" + ",".join(map(str, of)) + "]"

    out = [shape[axis] for axis in perm]
    lines = [f"%y = permute(%{'a' if around else 'x'}) {{perm = {sizes(perm)}, q_scale = [0.05]}} : {I8}{sizes(out)}"]
    if around:
        lines.insert(0, f"%a = relu(%x) {{q_scale = [0.05]}} : {I8}{sizes(shape)}")
        lines.append(f"%z = relu(%y) {{q_scale = [0.05]}} : {I8}{sizes(out)}")
    body = "\n  ".join(lines)
    return f"graph @g {{stage = imported}} (%x: {I8}{sizes(shape)}) -> (%{'z' if around else 'y'}) {{\n  {body}\n}}"


@pytest.mark.parametrize("around", [False, True])
@pytest.mark.parametrize(
    ("shape", "perm"),
    [
        ([96, 64], [1, 0]),
        ([1, 20, 16, 24], [0, 2, 3, 1]),
        ([1, 20, 16, 24], [0, 3, 1, 2]),
        ([1, 48, 12, 16], [0, 1, 3, 2]),
        ([13, 20, 14, 16], [1, 2, 3, 0]),
        ([20, 24, 18], [2, 0, 1]),
        ([6, 32, 32], [0, 2, 1]),
    ],
)
def test_a_transposition_is_cut(shape: list[int], perm: list[int], around: bool, tmp_path: Path) -> None:
    spec: dict[str, Any] = load_spec("relu-only")
    size = int(np.prod(shape))
    spec["sram"][0]["bytes"] = max(size // 2, 4096)
    program = build(transposed(shape, perm, around), spec, tmp_path)
    x = np.random.default_rng(size).integers(-128, 128, shape, dtype=np.int8)
    np.testing.assert_array_equal(program.executable(x), (np.maximum(x, 0) if around else x).transpose(perm))
