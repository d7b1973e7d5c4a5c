"""Damaged executables, graph texts and ONNX models: hetnn raises its own errors and nothing else.

    python tests/python/fuzz/fuzz_inputs.py [--seconds 60] [--seed 0]

The tests run a short, seeded part of it.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import onnx

import hetnn
from hetnn.importers import import_model

# Small models of every operator, from the standard's own tests.
ONNX_MODELS = sorted(Path(onnx.__file__).parent.glob("backend/test/data/node/*/model.onnx"))

GRAPH = """graph @net {stage = imported, symbols = [n: 1..64 = 4]} (%x: f32[n,3,8,8]) -> (%y) {
  %w = constant() {value = f32[2,3,1,1] {1, 2, 3, 4, 5, 6}} : f32[2,3,1,1]
  %c = conv2d(%x, %w, _) {stride = [2,2], padding = [1,1]} : f32[n,2,5,5]
  %r = relu(%c) : f32[n,2,5,5]
  %y = softmax(%r) {axis = 1} : f32[n,2,5,5]
}
"""
# What a byte may turn into, besides any other byte: the characters that the grammar lives by.
TOKENS = [*'%@(){}[]=:,."0123456789-_ \n', "9999999999999999999", "n/0", "f32", "inf", "nan", "constant"]


def damage_text(rng: random.Random, text: str) -> str:
    for _ in range(rng.randint(1, 4)):
        at, kind = rng.randrange(len(text) + 1), rng.randrange(4)
        if kind == 0:
            text = text[:at] + rng.choice(TOKENS) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + rng.randint(1, 12) :]
        elif kind == 2:
            begin = rng.randrange(len(text) + 1)
            text = text[:at] + text[begin : begin + rng.randint(1, 30)] + text[at:]
        else:
            text = text[:at] + rng.choice(TOKENS) + text[at + 1 :]
    return text


def damage_bytes(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        kind, at = rng.randrange(3), rng.randrange(max(1, len(changed)))
        if kind == 0 and changed:
            changed[at % len(changed)] = rng.randrange(256)
        elif kind == 1:
            del changed[at : at + rng.randint(1, 64)]
        else:
            changed[at:at] = rng.randbytes(rng.randint(1, 16))
    return bytes(changed)


def survives(call: Callable[[], object]) -> bool:
    """Whether `call` went through; an error of hetnn that blames the input is as good."""
    try:
        call()
    except (hetnn.InvalidModel, hetnn.Unsupported, hetnn.DoesNotFit):
        return False
    return True


def fuzz(seconds: float, seed: int) -> tuple[int, int]:
    """Tries damaged inputs until the time is over; returns how many it tried and how many were accepted."""
    rng = random.Random(seed)
    tried = accepted = 0
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.hetnn"
        hetnn.compile(GRAPH).save(path)
        image = path.read_bytes()
        while time.monotonic() < end:
            text = damage_text(rng, GRAPH)
            try:
                accepted += survives(lambda text=text: hetnn.compile(text))  # type: ignore[misc]
            except Exception:
                print(f"seed {seed}, try {tried}:\n{text}", file=sys.stderr)
                raise
            path.write_bytes(damage_bytes(rng, image))
            survives(lambda: hetnn.load(path))
            source = rng.choice(ONNX_MODELS)
            model = damage_bytes(rng, source.read_bytes())
            try:
                accepted += survives(lambda model=model: import_model(model))  # type: ignore[misc]
            except Exception:
                print(f"seed {seed}, try {tried}: {source.parent.name} as {model!r}", file=sys.stderr)
                raise
            tried += 3
    return tried, accepted


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    tried, accepted = fuzz(args.seconds, args.seed)
    print(f"{tried} damaged inputs, {accepted} of them still sound, no crash")
    return 0


if __name__ == "__main__":
    sys.exit(main())
