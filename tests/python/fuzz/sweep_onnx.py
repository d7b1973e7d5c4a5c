"""Every size and number of the standard's ONNX models, each alone replaced by extreme ones: refused, or run.

    python tests/python/fuzz/sweep_onnx.py [--part 0/1] [--seed 0] [--only SEED:PLACE]

Where `fuzz_onnx.py` draws, this has no chance to miss: sizes of inputs, outputs and values, attributes, and inputs of a
few numbers, which become constants. The seed chooses devices and inputs. Of `--part 2/5` it is every fifth from the
third on.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]
from fuzz.fuzz_inputs import ONNX_MODELS  # noqa: E402
from fuzz.fuzz_onnx import graphs_of, make_folder, use, written  # noqa: E402
from fuzz.workers import Finding, command_line, tell, try_each  # noqa: E402

SIZES = [0, 7, 100_000, 2**31, 2**40, 2**62, 2**63 - 1]
INTEGERS = [-(2**63), -7, *SIZES]
REALS = [float("nan"), float("inf"), float("-inf"), 1e30, 0.0]
MOST_BYTES = 20_000  # of a model that is tried
MOST_NUMBERS = 8  # of an input that becomes a constant; its first two are replaced
FIRST = 3  # of an attribute's numbers are replaced
# What becomes of a model.
Change = Callable[[Any], None]


def _sizes(graph: int, values: str, value: int, count: int) -> Iterator[Change]:
    for axis in range(count):
        for size in SIZES:

            def change(model: Any, axis: int = axis, size: int = size) -> None:
                given = getattr(list(graphs_of(model))[graph], values)[value]
                given.type.tensor_type.shape.dim[axis].dim_value = size

            yield change


def _attributes(graph: int, node: int, place: int, attr: AttributeProto) -> Iterator[Change]:
    one = {AttributeProto.INT: ("i", INTEGERS), AttributeProto.FLOAT: ("f", REALS)}.get(attr.type)
    many = {AttributeProto.INTS: ("ints", INTEGERS), AttributeProto.FLOATS: ("floats", REALS)}.get(attr.type)
    if one is not None:
        for number in one[1]:

            def set_it(model: Any, number: Any = number) -> None:
                setattr(list(graphs_of(model))[graph].node[node].attribute[place], one[0], number)

            yield set_it
    if many is not None:
        for at in range(min(len(getattr(attr, many[0])), FIRST)):
            for number in many[1]:

                def set_one(model: Any, at: int = at, number: Any = number) -> None:
                    getattr(list(graphs_of(model))[graph].node[node].attribute[place], many[0])[at] = number

                yield set_one


def _constants(index: int, given: onnx.ValueInfoProto) -> Iterator[Change]:
    tensor = given.type.tensor_type
    dims = [dim.dim_value for dim in tensor.shape.dim]
    if tensor.elem_type not in (TensorProto.INT64, TensorProto.INT32, TensorProto.FLOAT, TensorProto.DOUBLE):
        return
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    numbers = REALS if dtype.kind == "f" else [n for n in INTEGERS if abs(n) < 2 ** (8 * dtype.itemsize - 1)]
    count = int(np.prod(dims, dtype=np.int64))
    for at in range(min(count, 2) if count <= MOST_NUMBERS else 0):
        for number in numbers:

            def change(model: Any, at: int = at, number: Any = number) -> None:
                array = np.ones(dims, dtype)
                array.reshape(-1)[at] = number
                model.graph.initializer.append(numpy_helper.from_array(array, model.graph.input[index].name))

            yield change


def changes(data: bytes) -> Iterator[Change]:
    model = onnx.ModelProto.FromString(data)
    for g, graph in enumerate(graphs_of(model)):
        for values in ("input", "output", "value_info") if hasattr(graph, "initializer") else ():
            for k, value in enumerate(getattr(graph, values)):
                if value.type.WhichOneof("value") == "tensor_type":
                    yield from _sizes(g, values, k, len(value.type.tensor_type.shape.dim))
        for n, node in enumerate(graph.node):
            for k, attr in enumerate(node.attribute):
                yield from _attributes(g, n, k, attr)
    for k, value in enumerate(model.graph.input):
        yield from _constants(k, value)


def places() -> list[tuple[bytes, int]]:
    """Each model with the number of one of its changes."""
    sound = sorted({data for path in ONNX_MODELS if len(data := path.read_bytes()) <= MOST_BYTES})
    models = [*sound, *(model.SerializeToString() for model in written())]
    return [(data, k) for data in models for k, _ in enumerate(changes(data))]


def _changed(data: bytes, change: int) -> Any:
    model = onnx.ModelProto.FromString(data)
    list(changes(data))[change](model)
    return model


def sweep(part: tuple[int, int] = (0, 1), seed: int = 0) -> tuple[Counter[str], list[Finding]]:
    """Tries `part[0]`, and every `part[1]`-th behind it; how they ended, and what was found."""
    chosen: Sequence[tuple[int, tuple[bytes, int]]] = list(enumerate(places()))[part[0] :: part[1]]
    with tempfile.TemporaryDirectory() as folder:
        inside = make_folder(Path(folder))

        def attempt(index: int) -> str:
            place, (data, change) = chosen[index]
            return use(_changed(data, change), random.Random(f"{seed}:{place}"), inside)

        def describe(index: int) -> str:
            place, (data, _) = chosen[index]
            return f"{seed}:{place} in {onnx.ModelProto.FromString(data).graph.name}"

        return try_each(attempt, 0, len(chosen), describe=describe, batch=200)


def main() -> int:
    arguments = command_line(__doc__)
    arguments.add_argument("--part", default="0/1")
    args = arguments.parse_args()
    if args.only:
        seed, place = map(int, args.only.split(":"))
        model = _changed(*places()[place])
        print(onnx.printer.to_text(model))
        with tempfile.TemporaryDirectory() as folder:
            print(use(model, random.Random(f"{seed}:{place}"), make_folder(Path(folder))))
        return 0
    first, step = map(int, args.part.split("/"))
    return tell("places of ONNX models", *sweep((first, step), args.seed))


if __name__ == "__main__":
    sys.exit(main())
