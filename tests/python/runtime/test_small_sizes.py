"""Operators whose sizes turn out to be 0 or 1 when they run: the CPU gives what they mean, or refuses alike."""

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
from hetnn.element_types import numpy_type

sys.path[:0] = [str(Path(__file__).resolve().parents[3] / "tools")]
from samples import INPUT, SAMPLE, attributes, random_array  # noqa: E402

OPERATORS = [op for op in _core.operators() if op["name"] not in ("constant", "draw", "image_decode")]
SIZE = 2  # of samples' symbols
TOGETHER = 3  # sizes that are replaced at once, at most


def sizes_of(sample: str) -> list[str]:
    """As a sample writes them, of all inputs that are no constants."""
    given = [part[2] for part in INPUT.finditer(SAMPLE.match(sample)[1]) if part[1] and not part[3]]  # type: ignore[index]
    return sorted({size for text in given for size in text.replace(" ", "").split(",") if size})


def graph_of(
    op: dict[str, Any], sample: str, sizes: Mapping[str, int | str]
) -> tuple[Any, list[tuple[str, list[Any]]]]:
    """The sample with other sizes, texts being symbols; its inputs' types and shapes."""
    match = SAMPLE.match(sample)
    assert match is not None
    builder, declared = _core.GraphBuilder("sample"), set()

    def size(text: str) -> int | str:
        out = sizes.get(text, int(text) if text.isdigit() else SIZE)
        if isinstance(out, str) and out not in declared:
            declared.add(out)
            builder.add_symbol(out, 0, 64, SIZE)
        return out

    inputs: list[Any] = []
    shapes = []
    for part in INPUT.finditer(match[1]):
        if part[1] is None:
            inputs.append(None)
            continue
        dims = [text for text in part[2].replace(" ", "").split(",") if text]
        if part[3]:
            values = np.array([float(number) for number in part[3].split(",")]).astype(numpy_type(part[1]))
            inputs.append(builder.constant(values.reshape([int(n) if n.isdigit() else SIZE for n in dims])))
        else:
            shapes.append((part[1], [size(text) for text in dims]))
            inputs.append(builder.add_input(f"x{len(inputs)}", *shapes[-1]))
    told, found = attributes(op, match[2] or "", {}, lambda name: size(name) if len(name) == 1 else None)
    for symbol in found:
        builder.add_symbol(symbol, 0, 1 << 20, 8)
    for value in builder.create(op["name"], inputs, told):
        builder.output(value)
    return builder.finish(), shapes


def typed(call: Callable[[], Any]) -> Any:
    """What a call gives, or None where hetnn refuses it."""
    try:
        return call()
    except (hetnn.InvalidModel, hetnn.Unsupported, hetnn.DoesNotFit):
        return None


def cases(sample: str) -> Iterator[tuple[str, ...]]:
    sizes = sizes_of(sample)
    for count in range(1, min(len(sizes), TOGETHER) + 1):
        yield from combinations(sizes, count)


def try_sample(op: dict[str, Any], sample: str, size: int) -> Iterator[str]:
    for chosen in cases(sample):
        made = typed(lambda chosen=chosen: graph_of(op, sample, dict.fromkeys(chosen, size)))
        if made is None:
            continue
        graph, shapes = made
        feeds = [random_array(np.random.default_rng(1), *shape) for shape in shapes]
        want = typed(lambda graph=graph, feeds=feeds: _core.interpret(graph, feeds))
        symbols = {text: f"s{k}" for k, text in enumerate(chosen)}
        left_open = typed(lambda symbols=symbols: graph_of(op, sample, symbols)[0])
        for kind, tried in (("known", graph), ("open", left_open)):
            if tried is None:
                continue
            exe = typed(lambda tried=tried: hetnn.compile(str(tried.print())))
            got = None if exe is None else typed(lambda exe=exe, feeds=feeds: exe(*feeds))
            where = f"{sample} with {chosen} of {size}, {kind}"
            assert (got is None) == (want is None), where
            if got is not None:
                for mine, theirs in zip(got if isinstance(got, list | tuple) else [got], want, strict=True):
                    assert np.shape(mine) == theirs.shape, where
                    wide = np.result_type(theirs.dtype, np.float64) if theirs.dtype.kind in "fciu" else np.float64
                    near = np.isclose(np.asarray(mine).astype(wide), theirs.astype(wide), 1e-4, 1e-4, equal_nan=True)
                    assert near.all(), where
            yield kind if got is not None else "refused"


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize("part", range(4))
def test_every_sample(part: int, size: int) -> None:
    counts = Counter[str]()
    for op in OPERATORS[part::4]:
        for sample in filter(SAMPLE.match, op["samples"]):
            if "q_scale" not in sample:
                counts.update(try_sample(op, sample, size))
    assert counts["known"] > 200
    assert counts["open"] > 150
