"""Every operator gives in the body of a loop what it gives outside of one: attributes, kernels and meanings alike."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hetnn
from hetnn import _core
from hetnn.element_types import numpy_type
from hetnn.importers.lowering.loop_body import Body, BodyInput

sys.path.append(str(Path(__file__).parents[3] / "tools"))
from samples import INPUT, SAMPLE, attributes, random_array

OPERATORS = {op["name"]: op for op in _core.operators()}
# Bodies do not hold a body; what is drawn differs; constants are no calls.
LEFT_OUT = {"constant", "loop"}


def given(sample: str) -> list[Any]:
    """The inputs of a sample; symbols are 3."""
    numbers = np.random.default_rng(len(sample))
    out: list[Any] = []
    match = SAMPLE.match(sample)
    assert match
    for each in INPUT.finditer(match[1]):
        if each[1] is None:
            out.append(None)
            continue
        shape = [int(size) if size.strip().isdigit() else 3 for size in each[2].split(",") if size.strip()]
        if each[3]:
            values = np.array([float(part) for part in each[3].split(",")]).astype(numpy_type(each[1]))
            out.append((values.reshape(shape), each[1]))
        else:
            out.append((random_array(numbers, each[1], shape), each[1]))
    return out


def both(op: dict[str, Any], sample: str) -> Any:
    """A graph with the call and a loop of one round around it; None where the sample finds sizes or is quantized."""
    match = SAMPLE.match(sample)
    assert match
    if "q_scale" in sample or re.search(r"\w\{[^}]*\}\[|\w\*\w", sample):
        return None
    known = set(re.findall(r"[a-z]+", " ".join(each[2] or "" for each in INPUT.finditer(match[1]))))
    attrs, found = attributes(op, match[2] or "", {}, lambda word: 3 if word in known else None)
    tensors = any(attr["kind"] == "tensor" and attr["name"] in attrs for attr in op["attrs"])
    if found or tensors:
        return None
    builder = _core.GraphBuilder("both")
    values, feeds = [], []
    for k, each in enumerate(given(sample)):
        if each is None:
            values.append(None)
            continue
        array, dtype = each
        values.append(builder.add_input(f"x{k}", dtype, list(array.shape)))
        feeds.append(array)
    outside = list(builder.create(op["name"], values, attrs))
    body = Body([BodyInput("i64", []), BodyInput("bool", [])])
    inside = body.create(op["name"], [body.take(value, None) for value in values], attrs, [])
    sizes = [size for value in inside for size in value.shape]
    told = {"body": body.text([body.inputs[1], *inside]), "count": 1, "sizes": sizes, "outer": list(body.outer)}
    try:
        looped = builder.create("loop", [builder.constant(np.array(1)), None, *body.captured], told)
    except hetnn.InvalidModel:
        return None
    for k, value in enumerate([*outside, *looped]):
        builder.output(value, f"y{k}")
    return builder.finish(), feeds


CASES = {
    name: made
    for name in sorted(OPERATORS.keys() - LEFT_OUT)
    if (made := [(sample, *pair) for sample in OPERATORS[name]["samples"] if (pair := both(OPERATORS[name], sample))])
}


def test_nearly_every_operator_is_tried() -> None:
    assert {"arange", "conv2d", "gather", "sort"} <= CASES.keys()
    assert len(CASES) >= 0.9 * len(OPERATORS)


@pytest.mark.parametrize("name", CASES)
def test_a_call_means_the_same_inside(name: str) -> None:
    for sample, graph, feeds in CASES[name]:
        for target in ("cpu", "reference"):
            exe = hetnn.compile(graph.print(), target, denormals="keep", progress=False)
            outputs = exe.run(feeds)
            for outside, inside in zip(outputs[: len(outputs) // 2], outputs[len(outputs) // 2 :], strict=True):
                assert inside.shape == (1, *outside.shape)
                assert inside.dtype == outside.dtype
                if outside.dtype.kind == "f":
                    scale = float(np.max(np.abs(outside[np.isfinite(outside)]), initial=1e-30))
                    np.testing.assert_allclose(inside[0], outside, rtol=1e-4, atol=2e-5 * scale, err_msg=sample)
                else:
                    np.testing.assert_array_equal(inside[0], outside, err_msg=sample)
