"""Schedules altered in their figures, names, lines and groups: each is refused by name, or computes the same.

    python tests/python/fuzz/fuzz_schedules.py [--models 2000 | --seconds 60] [--seed 0] [--only SEED:INDEX]

Each text has its own random numbers, so that one can be tried again alone. What compiles must pass the verifier, which
a run asks for, and give the values of the schedule that was not altered: integers bit for bit.
"""

from __future__ import annotations

import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]
import hetnn  # noqa: E402
from fuzz.workers import Finding, Found, command_line, in_a_process, tell, try_each  # noqa: E402
from hetnn import _core  # noqa: E402
from npu.networks import NAMES, compile_for, network  # noqa: E402

BUFFERS = r"^  (?:parameters|ring|input|output|sums|moved) .*\n"


@dataclass(frozen=True)
class Base:
    """A network with what its own schedule is and gives."""

    name: str
    graph: str
    spec: dict[str, Any]
    schedule: str
    layers: tuple[str, ...]
    inputs: list[np.ndarray]
    outputs: list[np.ndarray]


def make_bases() -> list[Base]:
    out = []
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            one = network(name)
            for kib in (one.kib, 4 * one.kib):
                spec = one.sheet(kib)
                executable = compile_for(one.graph, spec)
                path = str(Path(folder) / "model.hetnn")
                executable.save(path)
                rows = [row for subgraph in _core.simulate_model(path)["subgraphs"] for row in subgraph["layers"]]
                schedule, layers = _core.schedules(path), tuple(row["name"] for row in rows)
                outputs = executable.run(one.inputs)
                out.append(Base(f"{name} {kib}", one.graph, spec, schedule, layers, one.inputs, outputs))
    return out


def _figure(rng: random.Random, text: str) -> str:
    figures = list(re.finditer(r"=(\d+)", text))
    if not figures:
        return text
    at = rng.choice(figures)
    value = int(at[1])
    near = [0, 1, value - 1, value + 1, value * 2, value // 2, value - 64, value + 64]
    new = rng.choice([*near, *near, rng.randrange(1 << 16), int(rng.choice(figures)[1]), 1 << 40, -1, 10**20])
    return text[: at.start(1)] + str(new) + text[at.end(1) :]


def _name(rng: random.Random, text: str) -> str:
    names = list(re.finditer(r'"([^"]*)"', text))
    if not names:
        return text
    at = rng.choice(names)
    return text[: at.start(1)] + rng.choice([*(name[1] for name in names), "nobody", ""]) + text[at.end(1) :]


def _line(rng: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[at])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case _:
            lines.insert(other, lines.pop(at))
    return "".join(lines)


def _join(rng: random.Random, text: str) -> str:
    """A group joins the one before; what buffers it needs is found anew."""
    heads = list(re.finditer(r"^(?:cascade|tiled) .*\n", text, re.MULTILINE))
    if len(heads) < 2:
        return text
    at = rng.choice(heads[1:])
    joined = text[: at.start()] + text[at.end() :]
    return re.sub(BUFFERS, "", joined, flags=re.MULTILINE) if rng.random() < 0.8 else joined


def _head(rng: random.Random) -> str:
    def size() -> int:
        return rng.choice([1, 1, 2, 3, 4, 5, 8, 16, rng.randrange(1, 100)])

    if rng.random() < 0.7:
        return f"cascade rows={size()} ahead={rng.randrange(4)}\n"
    tile = " ".join(f"{key}={size()}" for key in ("rows", "columns", "filters", "channels"))
    return f"tiled {tile} filters_inside={rng.randrange(2)} overlaps={rng.randrange(2)}\n"


def _cut(rng: random.Random, text: str) -> str:
    """A group begins before a layer, or begins otherwise."""
    layers = list(re.finditer(r'^  layer ".*"\n', text, re.MULTILINE))
    heads = list(re.finditer(r"^(?:cascade|tiled) .*\n", text, re.MULTILINE))
    if rng.random() < 0.5 and heads:
        at = rng.choice(heads)
        out = text[: at.start()] + _head(rng) + text[at.end() :]
    elif layers:
        begin = rng.choice(layers).start()
        out = text[:begin] + _head(rng) + text[begin:]
    else:
        return text
    return re.sub(BUFFERS, "", out, flags=re.MULTILINE) if rng.random() < 0.8 else out


def _home(rng: random.Random, text: str) -> str:
    """A value moves into the scratchpad, or out of it."""
    values = list(re.finditer(r"^value .*\n", text, re.MULTILINE))
    if values and rng.random() < 0.5:
        at = rng.choice(values)
        return text[: at.start()] + text[at.end() :]
    names = re.findall(r'"([^"]*)"', text)
    line = f'value "{rng.choice(names)}" {rng.choice(["scratchpad", "scratchpad", "dram", "sky"])}\n'
    heads = list(re.finditer(r"^subgraph .*\n", text, re.MULTILINE))
    return text[: heads[-1].end()] + line + text[heads[-1].end() :] if heads else text


def _depth(rng: random.Random, text: str) -> str:
    depths = list(re.finditer(r" at=\d+( bytes=\d+ depth=)(\d+)", text))
    if not depths:
        return text
    at = rng.choice(depths)
    new = max(int(at[2]) + rng.choice([-2, -1, 1, 1, 2, 3, 5]), 0)
    changed = text[: at.start()] + at[1] + str(new) + text[at.end() :]
    return _anew(rng, changed)


def _anew(rng: random.Random, text: str) -> str:
    """Without places, so that all are found anew."""
    del rng
    return re.sub(r" at=\d+", "", text)


def _bare(rng: random.Random, text: str) -> str:
    """Groups and layers alone."""
    del rng
    return re.sub(BUFFERS, "", text, flags=re.MULTILINE)


ALTERATIONS: list[Callable[[random.Random, str], str]] = [
    *[_figure] * 4, _name, _line, _line, *[_join] * 3, *[_cut] * 3, *[_home] * 2, *[_depth] * 2, _anew, _bare,
]  # fmt: skip


def altered(seed: int, index: int, bases: list[Base]) -> tuple[Base, str]:
    rng = random.Random(f"{seed} {index}")
    base = rng.choice(bases)
    text = base.schedule
    for _ in range(rng.choice([1, 1, 2, 3, 6])):
        text = rng.choice(ALTERATIONS)(rng, text) or "\n"
    return base, text


def check(base: Base, schedule: str) -> str:
    """refused, or the same; raises what is wrong."""
    try:
        executable = compile_for(base.graph, base.spec, schedule)
    except (hetnn.InvalidModel, hetnn.DoesNotFit) as error:
        told = str(error)
        if "schedule" not in told and not any(f"'{name}'" in told for name in base.layers):
            raise Found(f"the refusal names neither the schedule nor a layer: {told}") from error
        return "refused"
    try:
        outputs = executable.run(base.inputs)
    except hetnn.Error as error:
        raise Found(f"what was compiled does not run: {error}") from error
    for got, want in zip(outputs, base.outputs, strict=True):
        # Sums of floats may be split elsewhere.
        exact = want.dtype.kind in "iu" or "int8" in base.name
        same = np.array_equal(got, want) if exact else np.allclose(got, want, rtol=1e-5, atol=1e-5)
        if not same:
            raise Found(f"{np.count_nonzero(got != want)} of {want.size} values differ")
    return "the-same" if schedule != base.schedule else "not-altered"


def fuzz(
    models: int, seed: int = 0, first: int = 0, seconds: float = float("inf")
) -> tuple[Counter[str], list[Finding]]:
    bases: list[Base] = in_a_process(make_bases)

    def attempt(index: int) -> str:
        return check(*altered(seed, index, bases))

    def describe(index: int) -> str:
        base, text = altered(seed, index, bases)
        return f"--only {seed}:{index}, {base.name}\n{text}"

    return try_each(attempt, first, models, seconds=seconds, describe=describe)


def main() -> int:
    args = command_line(__doc__).parse_args()
    if args.only:
        seed, index = map(int, args.only.split(":"))
        base, text = altered(seed, index, in_a_process(make_bases))
        print(base.name, text, sep="\n")
        print(check(base, text))
        return 0
    return tell("altered schedules", *fuzz(args.models, args.seed, seconds=args.seconds))


if __name__ == "__main__":
    sys.exit(main())
