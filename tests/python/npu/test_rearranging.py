"""What moves values only: transpositions and enlarged images, also where the scratchpad does not hold them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hetnn
from hetnn.targets import load_spec
from npu.programs import build

I8 = "i8{0.05}"


def sizes_of(shape: Sequence[int]) -> str:
    return "[" + ",".join(map(str, shape)) + "]"


def transposed(shape: list[int], perm: list[int], around: bool) -> str:
    """A transposition as IR text, by itself or between two layers."""

    out = [shape[axis] for axis in perm]
    lines = [
        f"%y = permute(%{'a' if around else 'x'}) {{perm = {sizes_of(perm)}, q_scale = [0.05]}} : {I8}{sizes_of(out)}"
    ]
    if around:
        lines.insert(0, f"%a = relu(%x) {{q_scale = [0.05]}} : {I8}{sizes_of(shape)}")
        lines.append(f"%z = relu(%y) {{q_scale = [0.05]}} : {I8}{sizes_of(out)}")
    body = "\n  ".join(lines)
    return f"graph @g {{stage = imported}} (%x: {I8}{sizes_of(shape)}) -> (%{'z' if around else 'y'}) {{\n  {body}\n}}"


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


@pytest.mark.parametrize("scratchpad", [4096, 1 << 20])
@pytest.mark.parametrize(
    ("shape", "factors"),
    [((1, 8, 6, 5), (2, 3)), ((2, 19, 9, 4), (1, 2)), ((3, 4, 12, 7), (3, 1)), ((1, 1, 1, 1), (4, 4))],
)
def test_an_image_is_enlarged(
    shape: tuple[int, ...], factors: tuple[int, int], scratchpad: int, tmp_path: Path
) -> None:
    spec: dict[str, Any] = load_spec("relu-only")
    spec["sram"][0]["bytes"] = scratchpad
    goal = [shape[2] * factors[0], shape[3] * factors[1]]
    graph = f"""graph @g {{stage = imported}} (%x: {I8}{sizes_of(shape)}) -> (%z) {{
  %a = relu(%x) {{q_scale = [0.05]}} : {I8}{sizes_of(shape)}
  %y = upsample_nearest2d(%a) {{size = {sizes_of(goal)}, q_scale = [0.05]}} : {I8}{sizes_of([*shape[:2], *goal])}
  %z = relu(%y) {{q_scale = [0.05]}} : {I8}{sizes_of([*shape[:2], *goal])}
}}"""
    program = build(graph, spec, tmp_path)
    x = np.random.default_rng(8).integers(-128, 128, shape, dtype=np.int8)
    want = np.maximum(x, 0).repeat(factors[0], 2).repeat(factors[1], 3)
    np.testing.assert_array_equal(program.executable(x), want)


def test_a_size_that_is_no_multiple_has_a_reason() -> None:
    graph = f"""graph @g {{stage = imported}} (%x: {I8}[1,4,6,6]) -> (%y) {{
  %y = upsample_nearest2d(%x) {{size = [9,12], q_scale = [0.05]}} : {I8}[1,4,9,12]
}}"""
    target = {"name": "t", "devices": [{"name": "npu", "kind": "npu", "spec": load_spec("relu-only")}]}
    with pytest.raises(hetnn.Error, match=r"the NPU repeats every pixel equally often; got \[1,4,6,6\]"):
        hetnn.compile(graph, target)
