"""Random calls of every operator: refused by a typed error, or computed alike by the CPU's kernels and by the meaning.

    python tests/python/fuzz/fuzz_calls.py [--calls 20000] [--seed 0] [--op NAME]

Calls run in a forked worker, so that a crash or a hang is told like any other finding. The tests run a short part.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import hetnn
from hetnn import _core

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]
from fuzz.workers import Found, try_each  # noqa: E402

DTYPES = ["f32", "f32", "f32", "f64", "f16", "i64", "i32", "i16", "i8", "u8", "bool"]
NUMPY = {
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i16": np.int16,
    "i8": np.int8, "u8": np.uint8, "bool": np.bool_,
}  # fmt: skip
SIZES = [0, 1, 1, 2, 2, 3, 3, 4, 5, 8, 17]
INTEGERS = [-(2**63), -(2**31), -7, -2, -1, 0, 0, 1, 1, 2, 3, 4, 7, 100, 2**31, 2**40, 2**62, 2**63 - 1]
REALS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-5, 1e30, -1e30, float("inf"), float("-inf"), float("nan")]
TYPE = re.compile(r"_|(\w+)\[([\d,a-z]*)\]")
MOST_ELEMENTS = 1 << 16


def random_shape(rng: random.Random) -> list[int]:
    return [rng.choice(SIZES) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 9]))]


def changed_shape(rng: random.Random, shape: list[int]) -> list[int]:
    shape = list(shape)
    kind = rng.randrange(4)
    if kind == 0 and shape:
        shape[rng.randrange(len(shape))] = rng.choice(SIZES)
    elif kind == 1:
        shape.insert(rng.randint(0, len(shape)), rng.choice(SIZES))
    elif kind == 2 and shape:
        del shape[rng.randrange(len(shape))]
    elif kind == 3 and rng.random() < 0.5:
        shape = []
    return shape


def random_attr(rng: random.Random, kind: str, default: Any) -> Any:
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "integer":
        return rng.choice(INTEGERS)
    if kind == "real":
        return rng.choice(REALS)
    if kind == "integers":
        return [rng.choice(INTEGERS if rng.random() < 0.3 else SIZES) for _ in range(rng.randint(0, 5))]
    if kind == "reals":
        return [rng.choice(REALS) for _ in range(rng.randint(0, 4))]
    if kind == "dtype":
        return rng.choice(DTYPES)
    if kind == "string":
        return rng.choice([default or "none", "none", "tanh", "reflect", "constant", "sum", "mean", "max", ""])
    return np.zeros(random_shape(rng) or [1], NUMPY[rng.choice(DTYPES)])


def read_attrs(sample: str, kinds: dict[str, str]) -> dict[str, Any]:
    """What a sample says of its attributes, as far as they are numbers, lists of numbers, words or booleans."""
    found: dict[str, Any] = {}
    for name, value in re.findall(r"(\w+) = (\[[^\]]*\]|[\w.+-]+)", sample):
        kind = kinds.get(name)
        with contextlib.suppress(ValueError):
            if kind in ("integers", "reals"):
                found[name] = [(int if kind == "integers" else float)(part) for part in value[1:-1].split(",") if part]
            elif kind in ("integer", "real"):
                found[name] = int(value) if kind == "integer" else float(value)
            elif kind in ("string", "dtype"):
                found[name] = value
            elif kind == "bool":
                found[name] = value == "true"
    return found


def random_call(rng: random.Random, op: dict[str, Any]) -> tuple[list[tuple[str, list[int]] | None], dict[str, Any]]:
    """Types of inputs and attributes: a sample of the operator, changed in a few places, or anything."""
    kinds = {attr["name"]: attr["kind"] for attr in op["attrs"]}
    defaults = {attr["name"]: attr["default"] for attr in op["attrs"]}
    if op["samples"] and rng.random() < 0.9:
        sample = rng.choice(op["samples"])
        inside = sample[sample.index("(") + 1 : sample.index(")")]
        types: list[tuple[str, list[int]] | None] = []
        for match in TYPE.finditer(re.sub(r"\{[^}]*\}", "", inside)):
            dims = (match[2] or "").split(",")
            shape = [int(d) if d.isdigit() else rng.choice([1, 2, 3, 8]) for d in dims if d]
            types.append((match[1], shape) if match[0] != "_" else None)
        attrs = read_attrs(sample[sample.rindex(")") :], kinds)
        for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
            what = rng.randrange(4)
            if what == 0 and types:
                k = rng.randrange(len(types))
                known = types[k]
                types[k] = (known[0], changed_shape(rng, known[1])) if known else ("f32", random_shape(rng))
            elif what == 1 and types:
                k, dtype = rng.randrange(len(types)), rng.choice(DTYPES)
                types = [t and (dtype, t[1]) if j == k or rng.random() < 0.7 else t for j, t in enumerate(types)]
            elif what == 2 and kinds:
                name = rng.choice(list(kinds))
                attrs[name] = random_attr(rng, kinds[name], defaults[name])
            elif what == 3 and len(types) > 1 and rng.random() < 0.3:
                types.pop()
    else:
        types = [(rng.choice(DTYPES), random_shape(rng)) for _ in range(rng.randint(0, 4))]
        attrs = {name: random_attr(rng, kind, defaults[name]) for name, kind in kinds.items() if rng.random() < 0.6}
    return types, attrs


def random_array(rng: np.random.Generator, dtype: str, shape: list[int], infinities: bool) -> np.ndarray:
    """Values with the type's edges among them; small ones half of the time, so that indices often fit."""
    kind = np.dtype(NUMPY[dtype])
    if kind == np.bool_:
        return rng.random(shape) < 0.5
    if kind.kind in "iu":
        info = np.iinfo(kind)
        values = rng.integers(0 if kind.kind == "u" or rng.random() < 0.5 else -3, 4, shape).astype(kind)
        edges = np.array([info.min, info.max, 0, 1], kind)
    else:
        values = rng.standard_normal(shape).astype(kind)
        # The greatest values are left out: sums of them overflow in one order and not in another.
        edges = np.array([0.0, -0.0, np.finfo(kind).tiny / 2, 100, *([np.inf, -np.inf, np.nan] * infinities)], kind)
    if rng.random() < 0.3 and values.size:
        at = rng.integers(0, values.size, max(1, values.size // 8))
        values.reshape(-1)[at] = rng.choice(edges, at.shape)
    return values


def typed(call: Any) -> tuple[Any, str]:
    """What a call gives, or the kind of error that blames the input."""
    try:
        return call(), ""
    except (hetnn.InvalidModel, hetnn.Unsupported, hetnn.DoesNotFit) as error:
        return None, type(error).__name__


def try_call(seed: int, ops: list[dict[str, Any]]) -> Iterator[str]:
    """Yields what the call is before it is tried, then what is wrong with it, if anything is."""
    rng = random.Random(seed)
    op = rng.choice(ops)
    types, attrs = random_call(rng, op)
    if any(t and (t[0] not in NUMPY or np.prod(t[1], dtype=float) > MOST_ELEMENTS) for t in types):
        return
    yield f"seed {seed}: {op['name']} {types} {attrs}"
    builder = _core.GraphBuilder("call")
    arrays = np.random.default_rng(seed)
    constant = rng.random() < 0.2
    feeds, values = [], []
    for k, t in enumerate(types):
        # A kernel may multiply an infinity with a zero: of padding, of a probability, of what is normalized, of a root
        # of a transform, of a gate.
        products = "compute" in op["traits"] or "norm" in op["name"] or op["name"] in ("dft", "lstm", "gru")
        array = random_array(arrays, *t, infinities=not products) if t else None
        if t is None:
            values.append(None)
        elif constant or (k > 0 and rng.random() < 0.3):
            values.append(builder.constant(np.ascontiguousarray(array)))
        else:
            values.append(builder.add_input(f"i{k}", t[0], t[1]))
            feeds.append(array)
    made, refused = typed(lambda: builder.create(op["name"], values, attrs))
    if refused:
        return
    if any(np.prod([d for d in v.shape if isinstance(d, int)], dtype=float) > MOST_ELEMENTS for v in made):
        return
    for k, value in enumerate(made):
        builder.output(value, f"o{k}")
    graph, refused = typed(lambda: builder.finish().print())
    if refused:
        return
    results = {}
    for target in ("reference", "cpu"):
        exe, refused = typed(lambda target=target: hetnn.compile(graph, target, denormals="keep", progress=False))
        results[target] = typed(lambda exe=exe: exe(*feeds)) if exe else (None, refused)
    (meant, why), (got, also) = results["reference"], results["cpu"]
    if why != also:
        yield f"the meaning gives {why or 'a result'}, the CPU {also or 'a result'}"
    if why or also:
        return
    meant, got = (list(r) if isinstance(r, tuple) else [r] for r in (meant, got))
    for mine, right in zip(got, meant, strict=True):
        mine, right = np.asarray(mine), np.asarray(right)
        if (mine.dtype, mine.shape) != (right.dtype, right.shape):
            yield f"the CPU gives {mine.dtype}{mine.shape}, the meaning {right.dtype}{right.shape}"
        elif right.dtype.kind not in "fc" and right.dtype.name != "bfloat16":
            if mine.tobytes() != right.tobytes():  # by their bits, since a float of 8 bits may be NaN
                yield "the CPU and the meaning give other integers"
        elif "norm" in op["name"] and not right.any():
            continue  # what equals its mean: 0, but for rounding before the division by sqrt(eps)
        elif not close(mine, right, max(op["tolerance"], float(ml_dtypes.finfo(right.dtype).eps))):
            yield f"the CPU gives {mine.ravel()[:6]}, the meaning {right.ravel()[:6]}"


def close(mine: np.ndarray, right: np.ndarray, tolerance: float) -> bool:
    """Within the operator's tolerance of the largest finite value, or of 1; the same infinities and NaN."""
    if right.dtype.name == "bfloat16":
        mine, right = mine.astype(np.float32), right.astype(np.float32)
    finite = np.isfinite(right)
    largest = float(np.abs(right[finite]).max()) if finite.any() else 0.0
    if not np.array_equal(mine[~finite], right[~finite], equal_nan=True):
        return False
    return bool(np.all(np.abs(mine[finite] - right[finite]) <= 10 * tolerance * max(largest, 1.0)))


def fuzz(calls: int, first: int = 0, name: str = "") -> list[str]:
    """Tries that many calls; returns a line for each finding."""
    ops = [op for op in _core.operators() if name in ("", op["name"])]

    def attempt(seed: int) -> str:
        _, *wrong = list(try_call(seed, ops)) or [""]
        if wrong:
            raise Found("; ".join(wrong))
        return "tried"

    def describe(seed: int) -> str:
        return next(try_call(seed, ops), f"seed {seed}")

    _, findings = try_each(attempt, first, calls, describe=describe, batch=500)
    return [f"{describe(finding.index)}: {finding.what}" for finding in findings]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--op", default="")
    args = parser.parse_args()
    findings = fuzz(args.calls, args.seed, args.op)
    print(f"{args.calls} calls, {len(findings)} findings", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
