"""Every operator's samples as ONNX models: sound, equal to their meaning in ONNX Runtime and imported again."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import hetnn
from exporters.exported import OPERATORS, again, assert_equal, by_runtime, checked, made
from hetnn import _core
from hetnn.exporters.onnx import refusal

# What onnx has and ONNX Runtime's CPU provider has no kernel for, in the newest form.
WITHOUT_A_KERNEL = {"image_decode(u8", "unique(i32", "fold(i64"}


@pytest.mark.parametrize("name", sorted(OPERATORS.keys() - {"constant"}))
def test_samples_equal_their_meaning(name: str) -> None:
    for sample in OPERATORS[name]["samples"]:
        for is_open in (False, True):
            case = made(name, sample, is_open)
            if case is None or refusal(case[0]):
                continue
            graph, feeds = case
            model = checked(graph)
            try:
                wanted, tolerance = _core.interpret(graph, feeds), OPERATORS[name]["tolerance"]
            except hetnn.InvalidModel:  # where integers are sizes
                feeds = [np.abs(feed) for feed in feeds]
                wanted, tolerance = _core.interpret(graph, feeds), OPERATORS[name]["tolerance"]
            told = f"{sample}, {'open' if is_open else 'fixed'}"
            theirs = by_runtime(model, feeds)
            assert isinstance(theirs, str) == (sample.partition("[")[0] in WITHOUT_A_KERNEL), theirs
            if isinstance(theirs, list):
                assert_equal(theirs, wanted, tolerance, f"ONNX Runtime: {told}")
            assert_equal(again(model, feeds), wanted, tolerance, f"imported again: {told}")


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "u32", "bool"])
def test_element_types(dtype: str) -> None:
    """What is written is sound and means the same, of whatever type; what ONNX lacks is refused."""
    told: Counter[str] = Counter()
    for name, op in OPERATORS.items():
        for sample in op["samples"]:
            try:
                case = made(name, sample, False, {"f32": dtype, "i64": dtype} if dtype[0] in "iu" else {"f32": dtype})
            except hetnn.InvalidModel:
                continue
            if case is None or (dtype.startswith("u") and "{-" in sample):
                continue
            graph, feeds = case
            if refusal(graph):
                told["refused"] += 1
                continue
            try:
                wanted = _core.interpret(graph, feeds)
            except hetnn.InvalidModel:  # a division by 0
                continue
            model = checked(graph)
            assert_equal(again(model, feeds), wanted, 1e-6, f"{name}: {sample} of {dtype}")
            told["equal"] += 1
    assert told["equal"] > 40, told
