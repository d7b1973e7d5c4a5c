"""TFLite files altered: in bytes and words, or inside. They are refused by hetnn's own errors, or compile and run.

    python tests/python/fuzz/fuzz_tflite.py [--models 1000 | --seconds 60] [--seed 0] [--only SEED:INDEX [--keep FILE]]

Each file has its own random numbers, so that one can be tried again alone. Batches run in forked workers with a limit
on memory and on the time of each.
"""

from __future__ import annotations

import copy
import random
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]
from fuzz.fuzz_inputs import damage_bytes  # noqa: E402
from fuzz.running import compile_and_run  # noqa: E402
from fuzz.workers import Finding, command_line, tell, try_each  # noqa: E402
from importers.test_tflite import chain  # noqa: E402
from importers.test_tflite_control import branch, loop, lstm, window  # noqa: E402
from importers.test_tflite_operators import ROWS  # noqa: E402
from importers.tflite_files import TYPES, Graph, Quant, Told, model_bytes, one_graph  # noqa: E402
from importers.tflite_integers import SAMPLES  # noqa: E402

SIZES = [-(2**31), -2, -1, 0, 0, 1, 1, 2, 3, 4, 5, 7, 9, 100, 65536, 2**31 - 1]
REALS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, float("inf"), float("-inf"), float("nan")]
WORDS = [0, 1, 2, 3, 4, 8, 16, 127, 128, 255, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE, 0x00010000]


@cache
def bases() -> list[list[Graph]]:
    """What is altered, by subgraphs: an operator each; as often a chain of several, and what has states or branches."""
    rows = [one_graph(name, operands, [Told([1])], how) for name, operands, how in ROWS]
    integers = [one_graph(*sample) for sample in SAMPLES]
    control = [
        window("f32"),
        branch(Told([1], "bool")),
        loop("count"),
        loop("value"),
        lstm(True, True),
        lstm(False, False),
    ]
    return [*([graph] for graph in [*rows, *integers * 3, *[chain()] * 40]), *control * 10]


# Ways to alter one; each may do nothing where there is no place for it.


def alter_tensor(rng: random.Random, graph: Graph) -> None:
    at = rng.randrange(len(graph.tensors))
    told, what = graph.tensors[at], rng.randrange(6)
    shape = list(told.shape)
    if what == 0 and shape:
        shape[rng.randrange(len(shape))] = rng.choice(SIZES)
    elif what == 1:
        shape = shape + [rng.choice(SIZES)] * rng.choice([1, 1, 9, 70]) if rng.random() < 0.5 else shape[1:]
    elif what == 2:
        told = replace(told, dtype=rng.choice(list(TYPES)))
    elif what == 3:
        many = rng.choice([0, 1, 1, 2, 3])
        scales = [rng.choice([*REALS, 0.1, 0.01]) for _ in range(many)]
        told = replace(
            told, quant=Quant(scales, [rng.choice([0, 3, 127, -128, 255, 300])] * many, rng.choice([0, 1, 3, 9, -1]))
        )
    elif what == 4:
        told = replace(told, data=rng.choice([None, b"", bytes(4), rng.randbytes(16), (told.data or b"")[:-1]]))
    else:
        told = replace(told, is_variable=not told.is_variable)
    graph.tensors[at] = replace(told, shape=[max(min(size, 2**31 - 1), -(2**31)) for size in shape])


def alter_numbers(rng: random.Random, graph: Graph) -> None:
    """A number in a constant."""
    held = [k for k, told in enumerate(graph.tensors) if told.data and len(told.data) >= 4]
    if held:
        at = rng.choice(held)
        data = bytearray(graph.tensors[at].data or b"")
        place = rng.randrange(len(data) // 4) * 4
        number = rng.choice(SIZES)
        data[place : place + 4] = (
            struct.pack("<i", number) if rng.random() < 0.8 else struct.pack("<f", rng.choice(REALS))
        )
        graph.tensors[at] = replace(graph.tensors[at], data=bytes(data))


def alter_options(rng: random.Random, graph: Graph) -> None:
    at = rng.randrange(len(graph.operators))
    name, inputs, outputs, told, inner = graph.operators[at]
    fields = [key for key in told if key]
    told = dict(told)
    if not fields or rng.random() < 0.2:
        told = {}
    else:
        key = rng.choice(fields)
        if isinstance(told[key], bool):
            told[key] = not told[key]
        elif isinstance(told[key], float):
            told[key] = rng.choice(REALS)
        elif isinstance(told[key], int):
            told[key] = rng.choice(SMALL.get(key, SIZES))
        elif isinstance(told[key], list):
            told[key] = [rng.choice(SIZES) for _ in range(rng.choice([0, 1, 2, 9]))]
    graph.operators[at] = (name, inputs, outputs, told, inner)


# Of fields of one byte.
SMALL = {
    key: [0, 1, 2, 3, 4, 5, 7, 127] for key in ("Padding", "FusedActivationFunction", "Mode", "OutType", "OutputType")
}
SMALL |= {key: [0, 1, 2, 9, 18] for key in ("InDataType", "OutDataType")}


def alter_edges(rng: random.Random, graph: Graph) -> None:
    at = rng.randrange(len(graph.operators))
    name, inputs, outputs, told, inner = graph.operators[at]
    inputs, outputs, what = list(inputs), list(outputs), rng.randrange(5)
    place = rng.choice([*range(len(graph.tensors)), -1, -1, 99])
    if what == 0 and inputs:
        inputs[rng.randrange(len(inputs))] = place
    elif what == 1:
        inputs.insert(rng.randrange(len(inputs) + 1), place)
    elif what == 2 and inputs:
        del inputs[rng.randrange(len(inputs))]
    elif what == 3:
        outputs.append(max(place, 0))
    else:
        graph.outputs = [rng.choice([*range(len(graph.tensors)), 99])]
    graph.operators[at] = (name, inputs, outputs, told, inner)


def alter_operators(rng: random.Random, graph: Graph) -> None:
    what = rng.randrange(3)
    at = rng.randrange(len(graph.operators))
    name, inputs, outputs, told, inner = graph.operators[at]
    if what == 0:
        name = rng.choice([operator[0] for graphs in bases() for base in graphs for operator in base.operators])
        graph.operators[at] = (name, inputs, outputs, told, inner)
    elif what == 1:
        graph.operators.insert(rng.randrange(len(graph.operators) + 1), graph.operators[at])
    else:
        other = rng.choice(rng.choice(bases())[0].operators)
        places = [rng.randrange(len(graph.tensors)) for _ in other[1]]
        made = [graph.tensor(Told([1])) for _ in other[2]]
        graph.operators.append((other[0], places, made, other[3], []))
        graph.outputs = made


WAYS: list[Callable[[random.Random, Graph], None]] = [
    alter_tensor,
    alter_tensor,
    alter_numbers,
    alter_numbers,
    alter_options,
    alter_options,
    alter_edges,
    alter_operators,
]


def damage_words(rng: random.Random, data: bytes) -> bytes:
    """Whole numbers of the file, which are offsets, lengths and values."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        place = rng.randrange(len(changed) // 4) * 4
        (number,) = struct.unpack_from("<I", changed, place)
        wanted = rng.choice([*WORDS, number + 1, number - 1, number * 2, number + 4, number - 4])
        struct.pack_into("<I", changed, place, wanted & 0xFFFFFFFF)
    return bytes(changed)


def alter(rng: random.Random, graphs: list[Graph]) -> bytes:
    """A file of these subgraphs, but for a few places."""
    what = rng.random()
    if what < 0.4:
        data = model_bytes(graphs)
        if what < 0.05:
            return data[: rng.randrange(len(data) + 1)]
        return damage_bytes(rng, data) if what < 0.1 else damage_words(rng, data)
    graphs = copy.deepcopy(graphs)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        rng.choice(WAYS)(rng, rng.choice(graphs))
    return model_bytes(graphs)


def use(data: bytes, rng: random.Random, folder: Path) -> str:
    """Imports, compiles and runs; how far it came."""
    source: Any = data if data[4:8] == b"TFL3" else None
    if source is None or rng.random() < 0.2:
        source = folder / "model.tflite"
        source.write_bytes(data)
    return compile_and_run(source, rng)


def _model(seed: int, index: int) -> tuple[bytes, random.Random]:
    rng = random.Random(f"{seed}:{index}")
    return alter(rng, rng.choice(bases())), rng


def fuzz(models: int, seconds: float, seed: int) -> tuple[Counter[str], list[Finding]]:
    """Tries altered files until there were enough or the time is over; how they ended, and what was found."""
    bases()
    with tempfile.TemporaryDirectory() as folder:

        def attempt(index: int) -> str:
            return use(*_model(seed, index), Path(folder))

        return try_each(attempt, 0, models, seconds=seconds, describe=lambda index: f"{seed}:{index}", batch=200)


def main() -> int:
    arguments = command_line(__doc__)
    arguments.add_argument("--keep", help="with --only: where to write the file")
    args = arguments.parse_args()
    if args.only:
        data, rng = _model(*map(int, args.only.split(":")))
        if args.keep:
            Path(args.keep).write_bytes(data)
        with tempfile.TemporaryDirectory() as folder:
            print(use(data, rng, Path(folder)))
        return 0
    return tell("altered files", *fuzz(args.models, args.seconds, args.seed))


if __name__ == "__main__":
    sys.exit(main())
