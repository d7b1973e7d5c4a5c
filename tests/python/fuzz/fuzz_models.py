"""Random models of the operator table: CPU, CPU and NPU, and the meaning agree; ONNX Runtime and torch where they can.

    python tests/python/fuzz/fuzz_models.py [--models 1000] [--seed 0] [--only SEED:INDEX]

A model grows node by node from samples of the operators, on inputs of every element type with sizes that may be
symbols. Every node is computed at once by its meaning, and again on twins whose reals are a little off: what jumps
there, or grows beyond bounds, says nothing and is left out, and how far the twins stray is how far a device may.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import torch

import hetnn
from hetnn import _core
from hetnn.element_types import NUMPY, numpy_type
from hetnn.exporters.onnx import export
from hetnn.importers.lowering.loop_body import SIZED, Body, BodyInput, Recording
from hetnn.importers.onnx.model import NUMBERS
from hetnn.importers.registry import Row

_TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_TESTS), str(_TESTS.parent.parent / "tools")]
from fuzz.fuzz_calls import typed  # noqa: E402
from fuzz.workers import Finding, Found, command_line, tell, try_each  # noqa: E402
from samples import INPUT, attributes, call_of, random_array  # noqa: E402

Array = np.ndarray[Any, Any]
OPERATORS = [op for op in _core.operators() if op["name"] not in ("constant", "draw", "image_decode")]
TARGETS = ["cpu", "cpu+relu-only", "reference"]
NAMES = {np.dtype(numpy_type(name)): name for name in NUMBERS}
DTYPES = ["f32"] * 6 + [*sorted(NUMPY.keys() & NUMBERS.keys()), *NUMBERS]
MOST_ELEMENTS = 1 << 14
LARGEST = 1e3
TWINS = 8  # so many that a result beside a jump is hardly ever on the same side in all
# How far, beside the largest value, a twin's reals are off: a hundred roundings.
OFF = {"f64": 1e-10, "f32": 1e-5, "f16": 1e-2, "bf16": 5e-2}
# How many roundings an operator's inputs may be off, where its result is as exact as can be.
ROUNDINGS = 4
# What forms that an NPU computes instead of an activation may err by, beside the largest value that it reads or gives:
# they add what cancels.
FORMS = 2e-3
# And what other engines may, some of which compute functions of f64 in f32, and ONNX, whose attributes are of f32.
THEIRS = 1e-6


@dataclass
class Value:
    """A value of the graph, what its meaning gives, and the same of the twins."""

    value: Any
    array: Array
    twins: list[Array]
    known: bool = False  # a constant

    @property
    def strays(self) -> float:
        return max(_apart(self.array, twin) for twin in self.twins)


@dataclass
class Node:
    op: dict[str, Any]
    inputs: list[Value | None]
    attrs: dict[str, Any]
    outputs: list[Value]
    found: list[str]  # symbols to which it gives values


@dataclass
class Model:
    builder: Any
    sizes: dict[str, int]  # of the symbols, in this run
    nodes: list[Node] = field(default_factory=list)
    pool: list[Value] = field(default_factory=list)
    fed: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    symbolic: bool = False
    spoiled: bool = False
    declared: set[str] = field(default_factory=set)  # symbols of inputs
    found: int = 0

    def size(self, name: str) -> int | str | None:
        """What a symbol of a sample is here; None for one that the sample's node defines."""
        return name if name in self.declared else self.sizes.get(name)


def is_real(array: Array) -> bool:
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


def _apart(a: Array, b: Array) -> float:
    if a.dtype.kind in "iub" or not a.size:
        return 0.0
    with np.errstate(all="ignore"):
        return float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max())


# Growing a model


def _dims(model: Model, text: str) -> list[int | str]:
    """The sizes of a sample's input: its symbols are those of the model, or numbers."""
    out: list[int | str] = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        if part.isdigit():
            out.append(int(part))
        else:
            name = part if part in model.sizes else "n"
            out.append(name if model.symbolic else model.sizes[name])
    return out


def _concrete(model: Model, dims: Sequence[int | str]) -> tuple[int, ...]:
    return tuple(size if isinstance(size, int) else model.sizes[size] for size in dims)


def _fresh(model: Model, rng: random.Random, numbers: np.random.Generator, dtype: str, dims: Sequence[Any]) -> Value:
    """An input, or a constant."""
    array = random_array(numbers, dtype, _concrete(model, dims))
    if rng.random() < 0.3 and all(isinstance(size, int) for size in dims):
        return Value(
            model.builder.constant(np.ascontiguousarray(array).reshape(array.shape)), array, [array] * TWINS, known=True
        )
    for name in dims:
        if isinstance(name, str) and name not in model.declared:
            model.builder.add_symbol(name, 1, 64, model.sizes[name])
            model.declared.add(name)
    made = Value(model.builder.add_input(f"x{len(model.fed)}", dtype, list(dims)), array, [array] * TWINS)
    model.fed.append(made)
    model.pool.append(made)
    return made


def _choose(model: Model, rng: random.Random, numbers: np.random.Generator, dtype: str, dims: Sequence[Any]) -> Value:
    """Something of that type and shape that is there, or new; now and then of any shape."""
    shape = _concrete(model, dims)
    there = [value for value in model.pool if value.value.dtype == dtype and value.array.shape == shape]
    if there and rng.random() < 0.8:
        return rng.choice(there)
    like = [value for value in model.pool if value.value.dtype == dtype and value.array.ndim == len(shape)]
    if like and rng.random() < 0.4:
        return rng.choice(like)
    return _fresh(model, rng, numbers, dtype, dims)


def _computed(
    op: str, inputs: Sequence[Value | None], attrs: dict[str, Any], found: list[str], arrays: Sequence[Array | None]
) -> Any:
    """What a node of these arrays gives by its meaning."""
    builder = _core.GraphBuilder("node")
    values, feeds = [], []
    for symbol in found:
        builder.add_symbol(symbol, 0, 1 << 20, 8)
    for k, (given, array) in enumerate(zip(inputs, arrays, strict=True)):
        if given is None:
            values.append(None)
            continue
        array = np.ascontiguousarray(array).reshape(given.array.shape)
        if given.known:
            values.append(builder.constant(array))
        else:
            values.append(builder.add_input(f"i{k}", given.value.dtype, list(array.shape)))
            feeds.append(array)
    for value in builder.create(op, values, attrs):
        builder.output(value)
    return _core.interpret(builder.finish(), feeds)


def _drawn(
    model: Model, rng: random.Random, operators: Sequence[dict[str, Any]]
) -> tuple[dict[str, Any], Value | None]:
    """An operator, and the value that it is to read: often what was computed last, which devices fuse with it."""
    drawn = rng.random()
    elementwise = [op for op in operators if "elementwise" in op["traits"]]
    if model.nodes and elementwise and drawn < 0.3:
        return rng.choice(elementwise), rng.choice(model.nodes[-1].outputs)
    heavy = [op for op in operators if "compute" in op["traits"]]
    op = rng.choice(heavy if heavy and drawn < 0.5 else operators)
    reads_any = model.pool and "elementwise" in op["traits"] and rng.random() < 0.7
    return op, rng.choice(model.pool) if reads_any else None


def grow(model: Model, rng: random.Random, numbers: np.random.Generator, operators: Sequence[dict[str, Any]]) -> None:
    """Adds a node, if what was drawn is one."""
    op, same = _drawn(model, rng, operators)
    match = call_of(rng.choice(op["samples"])) if op["samples"] else None
    if match is None:
        return
    like = {}
    if rng.random() < 0.5:
        like = {dtype: rng.choice(DTYPES) for dtype in ("f32", "i64")}
    inputs: list[Value | None] = []
    for given in INPUT.finditer(match[1]):
        if given[1] is None:
            inputs.append(None)
            continue
        if given[3]:
            values = [float(part) for part in given[3].split(",")]
            array = np.array(values).astype(numpy_type(given[1])).reshape(_concrete(model, _dims(model, given[2])))
            inputs.append(Value(model.builder.constant(array), array, [array] * TWINS, known=True))
            continue
        dtype, dims = like.get(given[1], given[1]), _dims(model, given[2])
        if same is not None and given[1] != "bool":
            dtype, dims = same.value.dtype, list(same.value.shape)
        if same is not None and not inputs and given[1] != "bool":
            inputs.append(same)
            continue
        if not all(isinstance(size, int) or size in model.sizes for size in dims):
            return
        if numpy_type(dtype) is None or np.prod(_concrete(model, dims), dtype=float) > MOST_ELEMENTS:
            return
        inputs.append(_choose(model, rng, numbers, dtype, dims))
    attrs, found = attributes(op, match[2] or "", like, model.size, model.found)
    model.found += len(found)
    concrete = {name: _without_symbols(value, model.sizes) for name, value in attrs.items()}
    given = [v and v.array for v in inputs]
    arrays, refused = typed(lambda: _computed(op["name"], inputs, concrete, found, given))
    if refused or (not any(map(is_real, arrays)) and _nearly_meet([x for x in given if x is not None and is_real(x)])):
        return
    twins: list[list[Array]] = []
    for k in range(TWINS):
        twin_of = [v and v.twins[k] for v in inputs]
        made, refused = typed(lambda twin_of=twin_of: _computed(op["name"], inputs, concrete, found, twin_of))
        made = None if refused else [_beside(*pair, op, numbers) for pair in zip(arrays, made, strict=True)]
        if made is None or any(twin is None for twin in made):
            return
        twins.append(made)
    # What cancels inside the node errs by roundings of what it reads, however small the result is.
    rounded = [v and _rounded(v.array, numbers) for v in inputs]
    made, refused = typed(lambda: _computed(op["name"], inputs, concrete, found, rounded))
    if not refused:
        twins.append([y if _is_near(x, y) else x for x, y in zip(arrays, made, strict=True)])
    for symbol in found:
        model.builder.add_symbol(symbol, 0, 1 << 20, 8)
    made, refused = typed(lambda: model.builder.create(op["name"], [v and v.value for v in inputs], attrs))
    if refused:
        sizes = [size for v in inputs if v is not None for size in v.value.shape]
        sizes += [part for value in attrs.values() if isinstance(value, list) for part in value]
        if not all(isinstance(size, int) for size in sizes):
            model.spoiled |= bool(found)  # its symbols are declared
            return  # takes numbers only
        raise Found(f"{op['name']} of {[v and v.array.shape for v in inputs]} {attrs} is {refused} in a graph alone")
    outputs = [Value(*each, list(beside)) for *each, beside in zip(made, arrays, zip(*twins, strict=True), strict=True)]
    model.nodes.append(Node(op, inputs, attrs, outputs, found))
    model.pool += [value for value in outputs if value.array.size <= MOST_ELEMENTS]


def _broadcast(a: Sequence[int], b: Sequence[int]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1], strict=False))


def _nearly_meet(reals: Sequence[Array]) -> bool:
    """Whether elements of the first two differ by so little that they may be the same elsewhere: no twin's are."""
    if len(reals) < 2 or not _broadcast(reals[0].shape, reals[1].shape):
        return False
    with np.errstate(all="ignore"):
        a, b = (x.astype(np.float64) for x in reals[:2])
        off = OFF.get(NAMES[reals[0].dtype], 0.2) * max(float(np.abs(x).max(initial=0)) for x in (a, b))
        apart = np.abs(a - b)
        return bool(((apart > 0) & (apart <= off)).any())


def _beside(array: Array, twin: Array, op: dict[str, Any], numbers: np.random.Generator) -> Array | None:
    """The twin of a result, a little off; None where the result jumps, grows, or is nothing but rounding."""
    if array.shape != twin.shape or not is_real(array):
        return twin if array.shape == twin.shape and array.tobytes() == twin.tobytes() else None
    with np.errstate(all="ignore"):
        largest = float(np.abs(array.astype(np.float64)).max()) if array.size else 0.0
        if not largest <= LARGEST or ("norm" in op["name"] and not array.any()):
            return None
        if "movement" not in op["traits"]:
            off = OFF.get(NAMES[array.dtype], 0.2) * largest
            twin = (twin.astype(np.float64) + numbers.uniform(-off, off, twin.shape)).astype(twin.dtype)
        return twin if _is_near(array, twin) or not array.size else None


def _rounded(array: Array, numbers: np.random.Generator) -> Array:
    """The array with every real some roundings off."""
    if not is_real(array):
        return array
    roundings = ROUNDINGS * float(ml_dtypes.finfo(array.dtype).eps)
    with np.errstate(all="ignore"):
        wide = array.astype(np.float64)
        return (wide * (1 + roundings * numbers.uniform(-1, 1, array.shape))).astype(array.dtype)


def _is_near(array: Array, other: Array) -> bool:
    if array.shape != other.shape or not is_real(array) or not array.size:
        return False
    with np.errstate(all="ignore"):
        return _apart(array, other) <= 0.2 * max(float(np.abs(array.astype(np.float64)).max()), 1e-3)


def _without_symbols(value: Any, sizes: dict[str, int]) -> Any:
    if isinstance(value, list):
        return [_without_symbols(part, sizes) for part in value]
    return sizes.get(value, value) if isinstance(value, str) else value


def _sizes(value: Any) -> Any:
    """As importers give them: sizes that depend on symbols are objects, not their texts."""
    if isinstance(value, list):
        return [_sizes(part) for part in value]
    return _core.Dim.parse(value) if isinstance(value, str) else value


def make(rng: random.Random, numbers: np.random.Generator) -> Model:
    """A model of one to a dozen nodes; a third each of any operators, of those that ONNX has, and that torch has."""
    front = rng.choice(["", "onnx", "torch"])
    operators = [op for op in OPERATORS if not front or any(row[-1] for row in op[front])]
    model = Model(_core.GraphBuilder("fuzz"), {"n": rng.choice([1, 2, 3, 5]), "m": rng.choice([1, 4])})
    model.symbolic = not front and rng.random() < 0.5
    wanted = rng.choice([1, 2, 4, 8, 12])
    for _ in range(wanted * 6):
        if len(model.nodes) == wanted:
            break
        grow(model, rng, numbers, operators)
    read = {id(value) for node in model.nodes for value in node.inputs}
    made = [value for node in model.nodes for value in node.outputs]
    model.outputs = [value for value in made if id(value) not in read or rng.random() < 0.15]
    for k, value in enumerate(model.outputs):
        model.builder.output(value.value, f"y{k}")
    return model


# Branches and loops


def in_a_loop(model: Model, first: int) -> Any:
    """The model with its nodes from one on in the body of a loop, whose number of rounds is one more input.

    Also the outputs that it stacks, round by round. None where the body would hold tensors as attributes.
    """
    builder = _core.GraphBuilder("loop")
    for name in model.declared:
        builder.add_symbol(name, 1, 64, model.sizes[name])
    there: dict[int, Any] = {}
    for k, value in enumerate(model.fed):
        there[id(value)] = builder.add_input(f"x{k}", value.value.dtype, list(value.value.shape))
    rounds = builder.add_input("rounds", "i64", [])
    body = Body([BodyInput("i64", []), BodyInput("bool", [])])
    inside = Recording(body, builder)

    def of(value: Value | None, by: Any) -> Any:
        if value is not None and id(value) not in there:
            there[id(value)] = by.constant(np.ascontiguousarray(value.array).reshape(value.array.shape))
        return None if value is None else there[id(value)]

    for k, node in enumerate(model.nodes):
        by = builder if k < first else inside
        for symbol in node.found:
            by.add_symbol(symbol, 0, 1 << 20, 8)
        try:
            sized = SIZED[node.op["name"]]
            attrs = {name: _sizes(value) if name in sized else value for name, value in node.attrs.items()}
            made = by.create(node.op["name"], [of(value, builder) for value in node.inputs], attrs)
        except hetnn.Unsupported:
            return None
        there.update(zip(map(id, node.outputs), made, strict=True))
    stacked = [value for value in model.outputs if body.owns(there[id(value)])]
    sizes: list[Any] = []
    for value in stacked:
        sizes += [size if isinstance(size, int) else f"s{len(sizes) + k}" for k, size in enumerate(value.value.shape)]
    for symbol in ["count", *(size for size in sizes if isinstance(size, str))]:
        builder.add_symbol(symbol, 0, 1 << 20, 8)
    told = {"body": body.text([body.inputs[1], *(there[id(value)] for value in stacked)]), "count": "count"}
    attrs = {**told, "sizes": sizes, "outer": list(body.outer)}
    out = dict(zip(map(id, stacked), builder.create("loop", [rounds, None, *body.captured], attrs), strict=True))
    for k, value in enumerate(model.outputs):
        builder.output(out.get(id(value), there[id(value)]), f"y{k}")
    return builder.finish(), [id(value) in out for value in model.outputs]


def compare_rounds(model: Model, rng: random.Random, feeds: list[Array]) -> bool:
    """Whether some of the nodes could be computed in a loop, in every round alike."""
    made = in_a_loop(model, rng.randrange(len(model.nodes)))
    if made is None:
        return False
    graph, stacked = made
    rounds = rng.choice([0, 1, 1, 2, 3])
    for target in TARGETS[:2]:
        exe, refused = typed(lambda target=target: hetnn.compile(graph.print(), target, denormals="keep"))
        if refused:
            raise Found(f"{target} refuses the model in a loop by {refused}")
        results = exe.run([*feeds, np.array(rounds)])
        rewritten = [exe.report(format="dict")] + [row["report"] for row in exe.report(format="dict")["bodies"]]
        may_err = FORMS if any(report["rewrites"] for report in rewritten) else 0.0
        for given, inside in zip(results, stacked, strict=True):
            if inside and given.shape[:1] != (rounds,):
                raise Found(f"{target}: {rounds} rounds give {given.shape}")
        for k in range(rounds):
            each = [given[k] if inside else given for given, inside in zip(results, stacked, strict=True)]
            compare(model, each, f"round {k} on {target}", may_err)
    return True


# Comparing


def compare(model: Model, arrays: Sequence[Any], what: str, may_err: float = 0.0) -> None:
    """Raises Found where results are not those of the meaning, by more than the twin strays."""
    for k, (value, given) in enumerate(zip(model.outputs, arrays, strict=True)):
        got, right = np.asarray(given), value.array
        if (got.shape, got.dtype) != (right.shape, right.dtype):
            raise Found(f"{what} gives y{k} as {got.dtype}{got.shape}, the meaning as {right.dtype}{right.shape}")
        if not right.size:
            continue
        if not is_real(right):
            if got.tobytes() != right.tobytes():
                raise Found(f"{what} gives y{k} {got.ravel()[:8]}, the meaning {right.ravel()[:8]}")
            continue
        largest = max(float(np.abs(right.astype(np.float64)).max()), 1e-3)
        allowed = 4 * value.strays + 8 * float(ml_dtypes.finfo(right.dtype).eps) * largest
        allowed += may_err * max(largest, _largest_read(model, value))
        if not _apart(got, right) <= allowed:
            raise Found(
                f"{what} gives y{k} {got.ravel()[:6]}, the meaning {right.ravel()[:6]}: "
                f"{_apart(got, right):.3g} apart, {allowed:.3g} allowed"
            )


def _largest_read(model: Model, value: Value) -> float:
    makers = [node for node in model.nodes if any(made is value for made in node.outputs)]
    read = [given.array for node in makers for given in node.inputs if given is not None]
    reals = [np.abs(array[np.isfinite(array)].astype(np.float64)) for array in read if array.size and is_real(array)]
    return max((float(array.max()) for array in reals if array.size), default=0.0)


def in_onnx(graph: Any) -> onnx.ModelProto | None:
    """The same model as an ONNX file has it; None where a node has no form there."""
    try:
        return export(graph)
    except hetnn.Unsupported:
        return None


def by_runtime(proto: onnx.ModelProto, model: Model) -> list[Any] | None:
    """What ONNX Runtime gives; None where it refuses the model, or the standard does not say what it means."""
    if any(node.op["name"] == "pow" and not is_real(node.outputs[0].array) for node in model.nodes):
        return None  # of integers, with negative exponents
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(proto.SerializeToString(), options, ["CPUExecutionProvider"])
        feeds = {port.name: value.array for port, value in zip(proto.graph.input, model.fed, strict=True)}
        outputs = session.run(None, feeds)
        # It gives float8 numbers as the bytes that they are.
        return [
            out.view(value.array.dtype) if out.dtype == np.uint8 and "float8" in value.array.dtype.name else out
            for out, value in zip(outputs, model.outputs, strict=True)
        ]
    except Exception:
        return None


def by_torch(model: Model) -> list[Any] | None:
    """What torch's own operators give, by the names in the operators' files; None where one has none or refuses."""
    made: dict[int, Any] = {}

    def tensor(value: Value | None) -> Any:
        if value is not None and id(value) not in made:
            made[id(value)] = torch.from_numpy(np.array(value.array))
        return None if value is None else made[id(value)]

    try:
        for node in model.nodes:
            name, arguments = next(row for row in node.op["torch"] if row[-1])
            row = Row(node.op, tuple(arguments.split()))
            by_name = dict(zip(row.inputs, node.inputs, strict=False))
            presets = {attr["name"]: attr["default"] for attr in node.op["attrs"]}
            told, given = {**presets, **node.attrs}, []
            for word in row.arguments:
                ours, _, fixed = word.partition("=")
                if fixed:
                    if str(told.pop(ours)).lower() != fixed:
                        return None
                elif word == "-":
                    return None
                elif ours in told:
                    given.append(told.pop(ours))
                else:
                    given.append(tensor(by_name[ours]))
            if any(value != presets[key] for key, value in told.items()):
                return None
            packet, overload = name.removeprefix("aten.").rsplit(".", 1)
            found = getattr(getattr(torch.ops.aten, packet), overload)(*given)
            for value, result in zip(node.outputs, found if isinstance(found, (tuple, list)) else [found], strict=True):
                made[id(value)] = result
                if result.numpy().dtype != value.array.dtype:  # where an operator promotes, the importer says it
                    return None
        return [made[id(value)].numpy() for value in model.outputs]
    except (StopIteration, RuntimeError, TypeError, ValueError, NotImplementedError, IndexError, KeyError):
        return None


def attempt(rng: random.Random, show: Callable[[str], None] = lambda text: None) -> str:
    """Makes a model and compares; how far it came."""
    model = make(rng, np.random.default_rng(rng.randrange(1 << 32)))
    if not model.outputs or model.spoiled:
        return "empty"
    graph = model.builder.finish()
    show(graph.print())
    feeds = [value.array for value in model.fed]
    for target in TARGETS:
        exe, refused = typed(lambda target=target: hetnn.compile(graph.print(), target, denormals="keep"))
        if refused:
            raise Found(f"{target} refuses the model by {refused}")
        results = exe(*feeds)
        rewritten = bool(exe.report(format="dict")["rewrites"])
        compare(model, results if isinstance(results, tuple) else [results], target, FORMS if rewritten else 0.0)
    told = "agree"
    if rng.random() < 0.5 and compare_rounds(model, rng, feeds):
        told += "+loop"
    proto = in_onnx(graph)
    if proto is not None:
        again = hetnn.compile(proto)(*feeds)
        compare(model, again if isinstance(again, tuple) else [again], "the model as ONNX", THEIRS)
        theirs = by_runtime(proto, model)
        if theirs is not None:
            compare(model, theirs, "ONNX Runtime", THEIRS)
            told += "+runtime"
    by_hand = by_torch(model)
    if by_hand is not None:
        compare(model, by_hand, "torch", THEIRS)
        told += "+torch"
    return told


def fuzz(models: int, seed: int, seconds: float = float("inf")) -> tuple[Counter[str], list[Finding]]:
    """Tries that many models; how they ended, and what was found."""
    torch.set_num_threads(1)
    return try_each(
        lambda index: attempt(random.Random(f"{seed}:{index}")),
        0,
        models,
        seconds=seconds,
        describe=lambda index: f"{seed}:{index}",
        batch=200,
    )


def main() -> int:
    args = command_line(__doc__).parse_args()
    if args.only:
        print(attempt(random.Random(args.only), print))
        return 0
    return tell("models", *fuzz(args.models, args.seed, args.seconds))


if __name__ == "__main__":
    sys.exit(main())
