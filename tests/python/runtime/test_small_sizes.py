"""Operators whose sizes turn out to be 0 or 1 when they run: devices give what they mean, or refuse alike."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hetnn
from hetnn import _core
from hetnn.element_types import numpy_type

sys.path[:0] = [str(Path(__file__).resolve().parents[3] / "tools")]
from samples import INPUT, as_input, call_of, graph_of, random_array  # noqa: E402

OPERATORS = [op for op in _core.operators() if op["name"] not in ("constant", "draw", "image_decode")]
SIZE = 2  # of samples' symbols
TOGETHER = 3  # sizes that are replaced at once, at most


def replaced(sample: str) -> Iterator[tuple[str, ...]]:
    """Sizes of inputs that are no constants, as the sample writes them: some at a time."""
    match = call_of(sample)
    given = [part[2] for part in INPUT.finditer(match[1]) if part[1] and not part[3]] if match else []
    sizes = sorted({size for text in given for size in text.replace(" ", "").split(",") if size})
    for count in range(1, min(len(sizes), TOGETHER) + 1):
        yield from combinations(sizes, count)


def made(op: dict[str, Any], sample: str, sizes: Mapping[str, int | str]) -> tuple[Any, list[Any]] | None:
    """The sample's graph with other sizes, texts being symbols, and its inputs where those are numbers."""
    feeds: list[Any] = []
    numbers = np.random.default_rng(1)

    def given(builder: Any, number: int, dtype: str, shape: Any) -> Any:
        feeds.append(None if any(isinstance(n, str) for n in shape) else random_array(numbers, dtype, shape))
        return as_input(builder, number, dtype, shape)

    found = graph_of(op, sample, lambda size: sizes.get(size, int(size) if size.isdigit() else SIZE), given=given)
    if found is None:
        return None
    for value in found[1]:
        found[0].output(value)
    return found[0].finish(), feeds


def typed(call: Callable[[], Any]) -> Any:
    """What a call gives, or None where hetnn refuses it."""
    try:
        return call()
    except (hetnn.InvalidModel, hetnn.Unsupported, hetnn.DoesNotFit):
        return None


def compare(got: Any, want: Any, where: str) -> None:
    assert (got is None) == (want is None), where
    if got is None:
        return
    for mine, theirs in zip(got if isinstance(got, list | tuple) else [got], want, strict=True):
        assert np.shape(mine) == theirs.shape, where
        wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
        near = np.isclose(np.asarray(mine).astype(wide), theirs.astype(wide), 1e-4, 1e-4, equal_nan=True)
        assert near.all(), where


def outcome(graph: Any, target: str, feeds: list[Any]) -> Any:
    """What a run gives; None where hetnn refuses it, and a text where an NPU cannot make something of nothing."""
    try:
        return hetnn.compile(str(graph.print()), target)(*feeds)
    except (hetnn.InvalidModel, hetnn.Unsupported, hetnn.DoesNotFit) as error:
        return "of nothing" if "the NPU's instructions compute one element at least" in str(error) else None


def try_sample(op: dict[str, Any], sample: str, size: int, target: str) -> Iterator[str]:
    for chosen in replaced(sample):
        known = typed(lambda chosen=chosen: made(op, sample, dict.fromkeys(chosen, size)))
        if known is None:
            continue
        graph, feeds = known
        want = typed(lambda graph=graph, feeds=feeds: _core.interpret(graph, feeds))
        symbols = {text: f"s{k}" for k, text in enumerate(chosen)}
        for kind, tried in (("known", known), ("open", typed(lambda symbols=symbols: made(op, sample, symbols)))):
            if tried is None:
                continue
            got = outcome(tried[0], target, feeds)
            if isinstance(got, str):
                assert target != "cpu", sample
                yield got
                continue
            compare(got, want, f"{sample} with {chosen} of {size}, {kind}")
            yield kind if got is not None else "refused"


PARTS = 8
# On an NPU a sample of both sizes; `make test-long` has the rest.
CASES = [(part, size, "cpu") for part in range(PARTS) for size in (0, 1)] + [
    pytest.param(part, size, "cpu+relu-only", marks=[] if part == size else pytest.mark.long)
    for part in range(PARTS)
    for size in (0, 1)
]


@pytest.mark.parametrize(("part", "size", "target"), CASES)
def test_every_sample(part: int, size: int, target: str) -> None:
    counts = Counter[str]()
    for op in OPERATORS[part::PARTS]:
        for sample in op["samples"]:
            counts.update(try_sample(op, sample, size, target))
    assert counts["known"] > 100
    assert counts["open"] > 75
    assert counts["of nothing"] < 10


def numbers_along_an_axis() -> Iterator[tuple[Any, list[Any], str]]:
    """Every operator with an axis, of numbers of rank 0 along axis 0 or -1, where it takes them."""
    axes = [(op, attr) for op in OPERATORS for attr in op["attrs"] if attr["name"] in ("axis", "axes")]
    for op, attr in axes:
        for axis, count in product((0, -1), range(1, len(op["inputs"]) + 1)):
            for dtypes in product(*[("f32", "i64")] * min(count, 2), *[("i64",)] * (count - 2)):
                builder = _core.GraphBuilder("number")
                given = [builder.add_input(f"x{k}", dtype, []) for k, dtype in enumerate(dtypes)]
                attrs = {attr["name"]: axis if attr["kind"] == "integer" else [axis]}
                made = typed(lambda b=builder, n=op["name"], g=given, a=attrs: b.create(n, g, a))
                if made is None:
                    continue
                for value in made:
                    builder.output(value)
                feeds = [np.asarray(1.5 if dtype == "f32" else 0, numpy_type(dtype)) for dtype in dtypes]
                yield builder.finish(), feeds, f"{op['name']}{dtypes} {attrs}"


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only", "cpu+relu-mul", "cpu+relu-rows"])
def test_a_number_along_an_axis(target: str) -> None:
    tried = 0
    for graph, feeds, where in numbers_along_an_axis():
        want = typed(lambda graph=graph, feeds=feeds: _core.interpret(graph, feeds))
        options: dict[str, Any] = {} if target == "cpu" else {"strategy": "take-all", "rewrite": "always"}
        got = typed(lambda graph=graph, feeds=feeds, o=options: hetnn.compile(graph.print(), target, **o)(*feeds))
        compare(list(got) if isinstance(got, tuple) else got, want, where)
        tried += 1
    assert tried > 60


@pytest.mark.parametrize("rounding", ["", ", q_rounding = double"])
def test_softmax_of_an_integer(rounding: str) -> None:
    text = f"""graph @one {{stage = imported}} (%x: f32[]) -> (%y) {{
  %q = quantize(%x) {{q_scale = [0.03], q_zero = -4}} : i8{{0.03:-4}}[]
  %s = softmax(%q) {{axis = 0, q_scale = [0.00390625], q_zero = -128{rounding}}} : i8{{0.00390625:-128}}[]
  %y = dequantize(%s) : f32[]
}}
"""
    for target in ("reference", "cpu", "cpu+relu-rows"):
        assert hetnn.compile(text, target)(np.float32(1.5)) == 255 / 256
