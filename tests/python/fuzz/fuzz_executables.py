"""Executables altered inside, with fitting hashes: they are refused by hetnn's own errors, or load and run.

    python tests/python/fuzz/fuzz_executables.py [--files 1000 | --seconds 60] [--seed 0] [--only SEED:INDEX]

Each file has its own random numbers, so that one can be tried again alone. Batches run in forked workers with a limit
on memory and on the time of each file; a worker that dies or hangs is a finding like any other error.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import re
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import hetnn
from hetnn import _core, _runtime

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]
from fuzz.workers import Finding, in_a_process, try_each  # noqa: E402

CONVOLUTION = """graph @net {stage = imported} (%x: f32[1,3,8,8]) -> (%y) {
  %w = constant() {value = f32[4,3,3,3] {WEIGHTS}} : f32[4,3,3,3]
  %b = constant() {value = f32[4] {1, 2, 3, 4}} : f32[4]
  %c = conv2d(%x, %w, %b) {stride = [2,2], padding = [1,1]} : f32[1,4,4,4]
  %r = relu(%c) : f32[1,4,4,4]
  %p = max_pool2d(%r) {kernel = [2,2], stride = [2,2]} : f32[1,4,2,2]
  %f = reshape(%p) {shape = [1,16]} : f32[1,16]
  %y = softmax(%f) {axis = 1} : f32[1,16]
}
"""
DYNAMIC = """graph @net {stage = imported, symbols = [n: 1..64 = 4]} (%x: f32[n,6,8], %z: f32[n,8]) -> (%y, %s) {
  %m = mean(%x) {axes = [1], keepdim = false} : f32[n,8]
  %a = add(%m, %z) : f32[n,8]
  %w = constant() {value = f32[5,8] {MATRIX}} : f32[5,8]
  %l = linear(%a, %w, _) : f32[n,5]
  %t = permute(%l) {perm = [1,0]} : f32[5,n]
  %s = slice(%t) {axis = 0, start = 1, end = 4} : f32[3,n]
  %e = exp(%x) : f32[n,6,8]
  %y = concat(%e, %x) {axis = 1} : f32[n,12,8]
}
"""
QUANTIZED = """graph @net {stage = imported} (%x: i8{0.05:-3}[1,4,6,6]) -> (%y) {
  %w = constant() {value = i8[4,4,1,1] {BYTES}, q_scale = [0.02]} : i8{0.02}[4,4,1,1]
  %c = conv2d(%x, %w, _) {q_scale = [0.1], q_zero = 2} : i8{0.1:2}[1,4,6,6]
  %y = relu(%c) {q_scale = [0.1], q_zero = 2} : i8{0.1:2}[1,4,6,6]
}
"""
ROWS = """graph @net {stage = imported} (%x: i8{0.05:-3}[6,8]) -> (%y) {
  %s = softmax(%x) {q_scale = [0.00390625], q_zero = -128} : i8{0.00390625:-128}[6,8]
  %y = layer_norm(%s, _, _) {q_scale = [0.03]} : i8{0.03}[6,8]
}
"""
SIZES = "symbols = [n: 1..64 = 4, rounds: 0..9 = 3, m: 0..64 = 4]"
BODY = "conv2d 2 3 _ {} | relu 5 {} | expand 4 {shape=[2,outer0]} | give 1 6 7"
FOUND = "count = rounds, sizes = [2,m], outer = [n]"
LOOP = f"""graph @net {{stage = imported, {SIZES}}} (%x: f32[1,3,4,4], %t: f32[n]) -> (%y, %s) {{
  %k = constant() {{value = i64[] {{3}}}} : i64[]
  %w = constant() {{value = f32[3,3,1,1] {{WEIGHTS}}}} : f32[3,3,1,1]
  %y, %s = loop(%k, _, %x, %w, %t) {{body = "{BODY}", carried = 1, {FOUND}}} : f32[1,3,4,4], f32[rounds,2,m]
}}
"""
STATE = """graph @net {stage = imported} (%x: f32[1,8], %s: f32[1,8]) -> (%y, %t) {
  %w = constant() {value = f32[8,8] {SQUARE}} : f32[8,8]
  %a = add(%x, %s) : f32[1,8]
  %y = linear(%a, %w, _) : f32[1,8]
  %t = relu(%a) : f32[1,8]
}
"""


def _listed(count: int) -> str:
    return ", ".join(str(k % 7 - 3) for k in range(count))


def image_of(source: str, target: str = "cpu", **options: Any) -> bytes:
    return hetnn.compile(source, target=target, **options)._engine.image()


def make_bases() -> dict[str, bytes]:
    """Small executables of every kind, compiled in a process of their own: workers are forked before threads exist."""
    return in_a_process(_bases)


def _bases() -> dict[str, bytes]:
    convolution = CONVOLUTION.replace("WEIGHTS", _listed(108))
    dynamic = DYNAMIC.replace("MATRIX", _listed(40))
    quantized = QUANTIZED.replace("BYTES", _listed(16))
    return {
        "cpu": image_of(convolution),
        "npu": image_of(convolution, target="cpu+relu-mul"),
        "systolic": image_of(convolution, target="cpu+systolic-8x8"),
        "reference": image_of(convolution, target="reference"),
        "dynamic": image_of(dynamic),
        "dynamic npu": image_of(dynamic, target="cpu+relu-mul", shapes=[{"n": 3}, {"n": 4}]),
        "int8": image_of(quantized),
        "int8 npu": image_of(quantized, target="cpu+relu-only"),
        "rows npu": image_of(ROWS, target="cpu+relu-rows"),
        "loop": image_of(LOOP.replace("WEIGHTS", _listed(9))),
        "loop npu": image_of(LOOP.replace("WEIGHTS", _listed(9)), target="cpu+relu-mul"),
        "states": _with_a_state(image_of(STATE.replace("SQUARE", _listed(64)))),
        "signature": _with_a_signature(image_of(STATE.replace("SQUARE", _listed(64)))),
    }


def _with_a_state(image: bytes) -> bytes:
    """The second input and output as a state that begins as the first bytes of the weights."""
    pieces = _runtime.take_apart(image)
    program = json.loads(pieces["program"])
    before, after = program["inputs"].pop(), program["outputs"].pop()
    program["states"] = [
        {"name": "s", "input": before["buffer"], "output": after["buffer"], "offset_bytes": 0, "size_bytes": 32}
    ]
    pieces["program"] = json.dumps(program)
    return _runtime.put_together(**pieces)


def _with_a_signature(image: bytes) -> bytes:
    """Called with a list and by name, answered with a dict."""
    pieces = _runtime.take_apart(image)
    outputs = [["y", {"value": 0}], [3, {"record": "a:b", "fields": [["t", {"value": 1}], ["n", {"fixed": 2.5}]]}]]
    signature = {"args": [{"list": [{"value": 0}]}], "names": ["x"], "kwargs": [["s", {"value": 1}]]}
    program = {**json.loads(pieces["program"]), "signature": {**signature, "outputs": {"dict": outputs}}}
    return _runtime.put_together(**{**pieces, "program": json.dumps(program)})


NUMPY = {"f32": "f4", "f64": "f8", "f16": "f2", "bf16": "u2", "i8": "i1", "u8": "u1", "i16": "i2", "i32": "i4"}
NUMPY |= {"i64": "i8", "bool": "?"}
NUMBERS = [0, 1, -1, 2, 3, 7, 8, 64, 127, 128, 255, 1000, 4096, 1 << 16, (1 << 31) - 1, 1 << 31, 1 << 32, 1 << 40]
NUMBERS += [1 << 47, 1 << 50, 1 << 60, 1 << 62, (1 << 63) - 1, -(1 << 31), -(1 << 62), -(1 << 63), 1 << 64]
TEXTS = ["", "n", "x", "n*n", "n + 1", "n*4611686018427387904", "floordiv(n, 0)", "mod(n, -1)", "max(n, 3)", "cpu"]
TEXTS += ["floordiv(-9223372036854775807 - 1, -1)", "nan", "inf", "-inf", "f32", "i8", "i64", "bool", "f16", "nhwc"]
TEXTS += ["plain", "arena", "input", "output", "constant", "npu", "null", "conv2d", "relu", "winograd", "\u0000", "é"]


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _paths(inner, (*path, key))
    elif isinstance(value, list):
        for k, inner in enumerate(value):
            yield from _paths(inner, (*path, k))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _other(rng: random.Random, old: Any, document: Any, path: tuple[Any, ...], paths: list[tuple[Any, ...]]) -> Any:
    """Something to stand in the place of `old`: mostly of its kind, or what stands at such a place elsewhere."""
    kind = rng.random()
    alike = [each for each in paths if each and path and each[-1] == path[-1]]
    if kind < 0.3 and not isinstance(path[-1], int) and len(alike) > 1:
        return copy.deepcopy(_at(document, rng.choice(alike)))
    if kind < 0.35:
        return copy.deepcopy(_at(document, rng.choice(paths)))
    if kind < 0.38:
        return rng.choice([None, True, False, [], {}, "", 0, 1.5, -1])
    if kind < 0.385:
        deep: Any = 0
        for _ in range(rng.choice([10, 500])):
            deep = [deep] if rng.random() < 0.5 else {"a": deep}
        return deep
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return rng.choice([*NUMBERS, old + 1, old - 1, old * 2, old + 64, -old, rng.choice(TEXTS)])
    if isinstance(old, float):
        return rng.choice([0.0, -1.0, 1e308, 1e-308, old * 2, "nan", "inf"])
    if isinstance(old, str):
        return rng.choice([*TEXTS, old + "x", old[1:], rng.choice(NUMBERS)])
    if isinstance(old, list):
        new = copy.deepcopy(old)
        what = rng.randrange(5)
        if what == 0 and new:
            del new[rng.randrange(len(new))]
        elif what == 1 and new:
            new.insert(rng.randrange(len(new) + 1), copy.deepcopy(rng.choice(new)))
        elif what == 2:
            rng.shuffle(new)
        elif what == 3:
            new = new * rng.choice([2, 3, 40])
        else:
            new.append(rng.choice(NUMBERS))
        return new
    if isinstance(old, dict):
        new = copy.deepcopy(old)
        if new and rng.random() < 0.7:
            del new[rng.choice(list(new))]
        else:
            new[rng.choice([*TEXTS, *new])] = rng.choice(NUMBERS)
        return new
    return rng.choice(NUMBERS)


def _alter_json(rng: random.Random, document: Any) -> Any:
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        paths = list(_paths(document))
        # Short ways are few, so that whole parts are touched less often than what is inside them.
        path = rng.choice(paths)
        if not path:
            continue
        parent = _at(document, path[:-1])
        old = parent[path[-1]]
        # A sheet stands as a text within the code.
        if isinstance(old, str) and old.startswith("{") and rng.random() < 0.9:
            parent[path[-1]] = json.dumps(_alter_json(rng, json.loads(old)))
        else:
            parent[path[-1]] = _other(rng, old, document, path, paths)
    return document


def _word_ranges(program: Any) -> list[tuple[int, int]]:
    """Where command streams stand in the weights."""
    ranges = []
    for subprogram in program["subprograms"]:
        code = subprogram.get("code")
        for variant in code.get("variants", []) if isinstance(code, dict) else []:
            ranges.append((variant["words_offset_bytes"], 8 * variant["word_count"]))
    return ranges


def _alter_stream(rng: random.Random, words: bytes) -> bytes:
    """A field or two of some instructions, or any bits."""
    if rng.random() < 0.2:
        changed = bytearray(words)
        changed[rng.randrange(len(words))] ^= 1 << rng.randrange(8)
        return bytes(changed)
    lines = _core.disassemble(list(struct.unpack(f"<{len(words) // 8}Q", words))).splitlines()
    for _ in range(rng.choice([1, 1, 2])):
        at = rng.randrange(len(lines))
        parts = lines[at].partition(";")[0].split()
        fields = [k for k, part in enumerate(parts) if "=" in part]
        if not fields or rng.random() < 0.1:
            lines[at] = rng.choice(lines)
            continue
        which = rng.choice(fields)
        name, _, value = parts[which].partition("=")
        other = rng.choice([0, 1, int(value) + 1, int(value) - 1, int(value) * 2, *NUMBERS])
        parts[which] = f"{name}={other}"
        lines[at] = " ".join(parts)
    try:
        changed_words = _core.assemble("\n".join(lines))
        return struct.pack(f"<{len(changed_words)}Q", *changed_words)
    except hetnn.Error:  # wider than the field
        return words


@contextmanager
def _depth() -> Iterator[None]:
    """What is put into one another several times over is deeper than Python lets its functions call each other."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(20000)
    try:
        yield
    finally:
        sys.setrecursionlimit(usual)


@_depth()
def alter(rng: random.Random, image: bytes) -> bytes:
    """An executable like `image`, but for a few places; its hashes fit."""
    pieces = _runtime.take_apart(image)
    program = json.loads(pieces["program"])
    ranges = _word_ranges(program)
    weights = bytearray(pieces["weights"])
    if ranges and rng.random() < 0.5:
        begin, size = rng.choice(ranges)
        stream = _alter_stream(rng, bytes(weights[begin : begin + size]))
        if len(stream) == size:
            weights[begin : begin + size] = stream
    else:
        which = rng.random()
        if which < 0.05:
            pieces["report"] = json.dumps(_alter_json(rng, [json.loads(pieces["report"])])[0])
        elif which < 0.1:
            pieces["target"] = json.dumps(_alter_json(rng, [json.loads(pieces["target"])])[0])
        elif which < 0.12 and weights:
            weights[rng.randrange(len(weights))] = rng.randrange(256)
        elif which < 0.14:
            weights = weights[: rng.randrange(len(weights) + 1)]
        else:
            program = _alter_json(rng, program)
    pieces["program"] = json.dumps(program)
    pieces["weights"] = bytes(weights)
    return _runtime.put_together(**pieces)


def _with_cycles(image: bytes, error: str) -> bytes | None:
    """The executable with the cycles that the error says its stream takes, so that the stream is tried after all."""
    stream = r"(?:bodies\[(\d+)\]: )?subprograms\[(\d+)\].*variants\[(\d+)\]: its stream takes (\d+) cycles"
    found = re.search(stream, error)
    if not found:
        return None
    pieces = _runtime.take_apart(image)
    program = json.loads(pieces["program"])
    body, *numbers = found.groups()
    subprogram, variant, cycles = map(int, numbers)
    part = program if body is None else program["bodies"][int(body)]
    part["subprograms"][subprogram]["code"]["variants"][variant]["cycles"] = cycles
    return _runtime.put_together(**{**pieces, "program": json.dumps(program)})


def use(image: bytes, rng: random.Random, folder: Path, tries: int = 16) -> str:
    """Loads, runs and reports; how far it came. Wrong cycles are put right, in so many variants."""
    try:
        path = folder / "altered.hetnn"
        path.write_bytes(image)
        executable = hetnn.load(path, threads=2)
    except (hetnn.InvalidModel, hetnn.Unsupported, hetnn.DoesNotFit) as error:
        again = _with_cycles(image, str(error)) if tries else None
        return "refused" if again is None else use(again, rng, folder, tries - 1)
    try:
        executable.report(format="dict")
        executable.report()
        _core.command_streams(str(path))
        _core.simulate_model(str(path))
        sizes = executable._engine.example_shapes()
        dtypes = {port.name: port.dtype for port in executable.inputs}
        values = {}
        for name, shape in sizes.items():
            dtype = np.dtype(NUMPY[dtypes[name]])
            if any(size < 0 or size > 1 << 16 for size in shape) or np.prod(shape, dtype=float) > 1e7:
                return "large"
            values[name] = np.full(shape, rng.randrange(3), dtype)
        arrays = [values[port.name] for port in executable.inputs]
        executable.run(arrays)
        executable._arguments.returned(arrays, executable.run(arrays))
    except (hetnn.InvalidModel, hetnn.Unsupported, hetnn.DoesNotFit):
        return "refused when run"
    return "ran"


def _file(seed: int, index: int, bases: dict[str, bytes]) -> tuple[str, bytes, random.Random]:
    rng = random.Random(f"{seed}:{index}")
    base = rng.choice(sorted(bases))
    return base, bases[base], rng


def fuzz(files: int, seconds: float, seed: int, bases: dict[str, bytes]) -> tuple[Counter[str], list[Finding]]:
    """Tries altered files until there were enough or the time is over; how they ended, and what was found."""
    with tempfile.TemporaryDirectory() as folder:

        def attempt(index: int) -> str:
            _, image, rng = _file(seed, index, bases)
            return use(alter(rng, image), rng, Path(folder))

        def describe(index: int) -> str:
            return f"{seed}:{index} ({_file(seed, index, bases)[0]})"

        return try_each(attempt, 0, files, seconds=seconds, describe=describe)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1 << 40)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="SEED:INDEX of one file to try here, without a worker")
    parser.add_argument("--keep", help="with --only: where to write the file")
    args = parser.parse_args()
    bases = make_bases()
    if args.only:
        seed, index = map(int, args.only.split(":"))
        base, image, rng = _file(seed, index, bases)
        altered = alter(rng, image)
        if args.keep:
            Path(args.keep).write_bytes(altered)
        with tempfile.TemporaryDirectory() as folder:
            print(base, use(altered, rng, Path(folder)))
        return 0
    counts, findings = fuzz(args.files, args.seconds, args.seed, bases)
    print(f"{sum(counts.values())} altered executables: {counts}; {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
