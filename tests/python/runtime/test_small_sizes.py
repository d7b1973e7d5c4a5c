"""Operators whose sizes turn out to be 0 or 1 when they run: devices give what they mean, or refuse alike."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hetnn
from hetnn import _core

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
