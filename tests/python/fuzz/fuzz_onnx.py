"""ONNX models altered: in their bytes, or inside. They are refused by hetnn's own errors, or compile and run.

    python tests/python/fuzz/fuzz_onnx.py [--models 1000 | --seconds 60] [--seed 0] [--only SEED:INDEX [--keep FILE]]

Each model has its own random numbers, so that one can be tried again alone. Batches run in forked workers with a limit
on memory and on the time of each model.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, parser

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]
from fuzz.fuzz_inputs import ONNX_MODELS, damage_bytes  # noqa: E402
from fuzz.running import INTEGERS, compile_and_run  # noqa: E402
from fuzz.workers import Finding, command_line, tell, try_each  # noqa: E402

# Loops, branches, functions, sizes from values: of the standard's own models most are one node.
WRITTEN = [
    """agraph (int64 n, bool c, float[k,3] x) => (y, z) {
      y, z = Loop (n, c, x) <body = b (int64 i, bool g, float[k,3] s) => (bool h, float[k,3] t, float[k,3] u) {
        h = Identity (g) t = Add (s, s) u = Relu (s) }>
    }""",
    """agraph (bool c, float[2,3] x) => (float[2,3] y) {
      y = If (c) <then_branch = a () => (float[2,3] p) { p = Relu (x) }, else_branch = b () => (float[2,3] q) {
        r = Exp (x) q = Neg (r) }>
    }""",
    """agraph (float[2,5,3] x, float[2,3] s) => (y, z) {
      v = Transpose <perm = [1, 0, 2]> (x)
      y, z = Scan <num_scan_inputs = 1, body = b (float[2,3] a, float[2,3] b) => (float[2,3] c, float[2,3] d) {
        c = Add (a, b) d = Relu (c) }> (s, v)
    }""",
    """agraph (float[n,m] x, int64[2] shape) => (y, i, c) {
      r = Reshape (x, shape) i = NonZero (r) s = Shape (i) e = Gather <axis = 0> (s, one) c = ConstantOfShape (e)
      y = Range (zero, e0, step) e0 = Squeeze (e)
    }""",
    """agraph (float[n,8] x, int64[1] starts, int64[1] ends, int64[1] k) => (y, v, i, t) {
      y = Slice (x, starts, ends) v, i = TopK (x, k) two = Constant <value = int64[2] {2, 1}> ()
      t = Tile (y, two)
    }""",
    """agraph (string[n] x, float[4] w) => (y, q, z) {
      y = StringNormalizer <case_change_action = "LOWER"> (x) q = SequenceConstruct (w, w)
      z = ConcatFromSequence <axis = 0> (q)
    }""",
]
FUNCTIONS = """<ir_version: 9, opset_import: ["" : 20, "own" : 1]>
agraph (float[n,4] x) => (float[n,4] y) { h = own.twice <k = 2> (x) y = own.once (h) }
<domain: "own", opset_import: ["" : 20]>
once (a) => (b) { b = Relu (a) }
<domain: "own", opset_import: ["" : 20, "own" : 1]>
twice <k> (a) => (b) { c = own.once (a) b = own.once (c) }
"""
SIZES = [*INTEGERS, 1, 2, 3, 4, 5, 8]
REALS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, -1e30, float("inf"), float("-inf"), float("nan")]
TEXTS = ["", "x", "n", "y", "NOTSET", "SAME_UPPER", "linear", "\u00e9", "a" * 70, "../x", "/", "Relu", "ai.onnx.ml"]
LOCATIONS = [
    "",
    ".",
    "weights.bin",
    "short.bin",
    "absent.bin",
    "../weights.bin",
    "/etc/passwd",
    "folder",
    "out.bin",
    "\0",
]
TYPES = [*range(30), -1, 1 << 20]


def written() -> list[onnx.ModelProto]:
    head = '<ir_version: 9, opset_import: ["" : 18]>\n'
    return [parser.parse_model(head + text) for text in WRITTEN] + [parser.parse_model(FUNCTIONS)]


def bases() -> list[bytes]:
    """What is altered: every model of the standard's tests of nodes, and those that hold others, as often."""
    sound = [path.read_bytes() for path in ONNX_MODELS]
    controls = [data for data in sound if any(word in data for word in (b"Loop", b"If", b"Scan", b"Sequence", b"Opt"))]
    return [*sound, *controls * 2, *[model.SerializeToString() for model in written()] * 40]


# What is in a model


def graphs_of(model: Any) -> Iterator[Any]:
    """The graph and those in attributes, and the bodies of functions."""
    waiting = [model.graph, *model.functions]
    while waiting:
        graph = waiting.pop()
        yield graph
        waiting += [
            part
            for node in graph.node
            for attr in node.attribute
            for part in ([attr.g] if attr.HasField("g") else list(attr.graphs))
        ]


def _pick(rng: random.Random, messages: Any) -> Any:
    messages = list(messages)
    return rng.choice(messages) if messages else None


def _node(rng: random.Random, model: Any) -> Any:
    return _pick(rng, (node for graph in graphs_of(model) for node in graph.node))


def _attribute(rng: random.Random, model: Any) -> Any:
    return _pick(rng, (attr for graph in graphs_of(model) for node in graph.node for attr in node.attribute))


def _types(rng: random.Random, model: Any) -> Any:
    graph = _pick(rng, (graph for graph in graphs_of(model) if hasattr(graph, "initializer")))
    value = _pick(rng, [*graph.input, *graph.input, *graph.input, *graph.output, *graph.value_info])
    return None if value is None else value.type


def _names(model: Any) -> list[str]:
    return [name for graph in graphs_of(model) for node in graph.node for name in (*node.input, *node.output)]


def _tensors(model: Any) -> list[Any]:
    found = [tensor for graph in graphs_of(model) for tensor in getattr(graph, "initializer", ())]
    found += [
        attr.t for graph in graphs_of(model) for node in graph.node for attr in node.attribute if attr.HasField("t")
    ]
    return found


# Ways to alter one; each may do nothing where there is no place for it.


def alter_attribute(rng: random.Random, model: Any) -> None:
    attr = _attribute(rng, model)
    if attr is None:
        return
    kind = attr.type
    if kind == AttributeProto.INT:
        attr.i = rng.choice(INTEGERS)
    elif kind == AttributeProto.FLOAT:
        attr.f = rng.choice(REALS)
    elif kind == AttributeProto.STRING:
        attr.s = rng.choice([text.encode() for text in TEXTS] + [b"\xff", attr.s[1:], attr.s * 2])
    elif kind in (AttributeProto.INTS, AttributeProto.FLOATS, AttributeProto.STRINGS):
        values, other = {
            AttributeProto.INTS: (attr.ints, rng.choice(INTEGERS)),
            AttributeProto.FLOATS: (attr.floats, rng.choice(REALS)),
            AttributeProto.STRINGS: (attr.strings, rng.choice(TEXTS).encode()),
        }[kind]
        what = rng.randrange(4)
        if what == 0 and values:
            values[rng.randrange(len(values))] = other  # type: ignore[index]
        elif what == 1 and values:
            del values[rng.randrange(len(values))]
        else:
            values.extend([other] * rng.choice([1, 1, 2, 40]))  # type: ignore[list-item]
    elif kind == AttributeProto.TENSOR:
        _alter_tensor(rng, attr.t)


def retype_attribute(rng: random.Random, model: Any) -> None:
    attr, what = _attribute(rng, model), rng.randrange(4)
    if attr is None:
        return
    if what == 0:
        attr.type = rng.randrange(15)
    elif what == 1:
        attr.name = rng.choice([*TEXTS, "axis", "axes", "to", "value", "body", "then_branch"])
    elif what == 2:
        attr.ref_attr_name = rng.choice([*TEXTS, "k"])
    else:
        other = _attribute(rng, model)
        name = attr.name
        attr.CopyFrom(AttributeProto.FromString(other.SerializeToString()))
        attr.name = name


def move_attribute(rng: random.Random, model: Any) -> None:
    node = _node(rng, model)
    if node is None:
        return
    if node.attribute and rng.random() < 0.5:
        del node.attribute[rng.randrange(len(node.attribute))]
        return
    attr = _attribute(rng, model)
    if attr is not None and rng.random() < 0.5:
        node.attribute.add().CopyFrom(AttributeProto.FromString(attr.SerializeToString()))
        return
    schema = onnx.defs.get_schema(node.op_type, node.domain) if onnx.defs.has(node.op_type, node.domain) else None
    name = rng.choice([*(schema.attributes if schema else []), "axis"])
    node.attribute.add(name=name, type=AttributeProto.INT, i=rng.choice(INTEGERS))


def alter_shape(rng: random.Random, model: Any) -> None:
    given = _types(rng, model)
    if given is None or given.WhichOneof("value") != "tensor_type":
        return
    shape, what = given.tensor_type.shape, rng.randrange(6)
    if what == 0:
        given.tensor_type.ClearField("shape")
    elif what == 1:
        for _ in range(rng.randrange(10)):
            shape.dim.add(dim_value=rng.choice([1, 2, 3]))
    elif what == 2 and shape.dim:
        del shape.dim[rng.randrange(len(shape.dim)) :]
    elif what == 3 and shape.dim:
        shape.dim[rng.randrange(len(shape.dim))].dim_param = rng.choice(
            ["n", "m", "", "2", "n + 1", "\u00e9", "x" * 99]
        )
    elif what == 4 and shape.dim:
        rng.choice(list(shape.dim)).Clear()
    elif shape.dim:
        shape.dim[rng.randrange(len(shape.dim))].dim_value = rng.choice(SIZES)


def alter_type(rng: random.Random, model: Any) -> None:
    given, what = _types(rng, model), rng.randrange(6)
    if given is None:
        return
    inner = onnx.TypeProto.FromString(given.SerializeToString())
    if what < 3 and given.WhichOneof("value") == "tensor_type":
        given.tensor_type.elem_type = rng.choice(TYPES)
    elif what == 3:
        given.sequence_type.elem_type.CopyFrom(inner)
    elif what == 4:
        given.optional_type.elem_type.CopyFrom(inner)
    elif rng.random() < 0.3:
        given.Clear()
    else:
        given.map_type.key_type = rng.choice(TYPES)
        given.map_type.value_type.CopyFrom(inner)


def alter_edges(rng: random.Random, model: Any) -> None:
    """Inputs and outputs that are missing, doubled, of others, of nobody, of the node itself."""
    node = _node(rng, model)
    if node is None:
        return
    ports = node.input if rng.random() < 0.7 else node.output
    names = [*_names(model), *[value.name for value in model.graph.input], "", "nobody"]
    what = rng.randrange(5)
    if what == 0 and ports:
        del ports[rng.randrange(len(ports))]
    elif what == 1 and ports:
        ports[rng.randrange(len(ports))] = rng.choice(names)
    elif what == 2 and node.input and node.output:
        node.input[rng.randrange(len(node.input))] = rng.choice(node.output)
    elif what == 3:
        ports.extend([rng.choice(names)] * rng.choice([1, 1, 2, 50]))
    elif ports:
        ports[rng.randrange(len(ports))] = ""


def alter_nodes(rng: random.Random, model: Any) -> None:
    """Nodes in another order, twice, not at all, of another operator, with what was beside them in their place."""
    graph = _pick(rng, (graph for graph in graphs_of(model) if graph.node))
    if graph is None:
        return
    at, what = rng.randrange(len(graph.node)), rng.randrange(6)
    copied = [onnx.NodeProto.FromString(node.SerializeToString()) for node in graph.node]
    if what == 0:
        rng.shuffle(copied)
    elif what == 1:
        copied.insert(rng.randrange(len(copied) + 1), copied[at])
    elif what == 2:
        del copied[at]
    elif what == 3:
        copied[at].op_type = rng.choice([*(other.op_type for other in copied), *OPERATORS, "Nothing", ""])
    elif what == 4:
        copied[at].domain = rng.choice(["", "ai.onnx", "ai.onnx.ml", "com.microsoft", "own", "x"])
    else:
        copied[at].name = rng.choice(TEXTS)
    del graph.node[:]
    graph.node.extend(copied)


def chain(rng: random.Random, model: Any) -> None:
    """Nodes of any operator on the model's values."""
    names = [*_names(model), *[value.name for value in model.graph.input]] or ["x"]
    for k in range(rng.choice([1, 2, 5])):
        op_type = rng.choice(OPERATORS)
        inputs = [rng.choice(names) for _ in range(rng.choice([1, 1, 2, 2, 3]))]
        model.graph.node.append(onnx.helper.make_node(op_type, inputs, [f"chained{k}"]))
        names.append(f"chained{k}")
    if rng.random() < 0.7:
        model.graph.output.add(name=names[-1])


def alter_constants(rng: random.Random, model: Any) -> None:
    tensors = _tensors(model)
    if tensors and rng.random() < 0.5:
        _alter_tensor(rng, rng.choice(tensors))
        return
    given = _pick(rng, model.graph.input)
    if given is None:
        return
    kind = given.type.tensor_type.elem_type or 1
    dims = [min(max(dim.dim_value, 0), 5) or rng.randrange(4) for dim in given.type.tensor_type.shape.dim]
    made = model.graph.initializer.add(name=given.name, data_type=kind, dims=dims)
    if kind in (TensorProto.INT64, TensorProto.INT32, TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.BOOL):
        count = int(np.prod(dims, dtype=np.int64)) if dims else 1
        choices: list[Any] = REALS if kind in (TensorProto.FLOAT, TensorProto.DOUBLE) else INTEGERS
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
        if dtype == np.int32:
            choices = [n for n in INTEGERS if -(2**31) <= n < 2**31]
        with np.errstate(all="ignore"):
            made.raw_data = np.array([rng.choice(choices) for _ in range(min(count, 4096))]).astype(dtype).tobytes()
    else:
        _alter_tensor(rng, made)


def _alter_tensor(rng: random.Random, tensor: Any) -> None:
    what = rng.randrange(7)
    if what == 0 and tensor.dims:
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(SIZES)
    elif what == 1:
        tensor.dims.extend([rng.choice(SIZES)] * rng.choice([1, 1, 9, 70]))
    elif what == 2:
        tensor.data_type = rng.choice(TYPES)
    elif what == 3:
        tensor.raw_data = rng.choice([tensor.raw_data[:-1], tensor.raw_data * 2, b"", rng.randbytes(16)])
    elif what == 4:
        tensor.int64_data.extend([rng.choice(INTEGERS)] * rng.choice([1, 2, 9]))
    elif what == 5:
        tensor.name = rng.choice(TEXTS)
    else:
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, values in (
            ("location", LOCATIONS),
            ("offset", ["0", "4", "-4", "x", "4096", str(2**63), "\u0663", ""]),
            ("length", ["0", "4", "24", "-1", "x", str(2**64), "1e3"]),
        ):
            if rng.random() < (0.95 if key == "location" else 0.4):
                tensor.external_data.add(key=key, value=rng.choice(values))


def alter_head(rng: random.Random, model: Any) -> None:
    what = rng.randrange(6)
    if what == 0 and model.opset_import:
        rng.choice(list(model.opset_import)).version = rng.choice([*range(1, 28), *INTEGERS])
    elif what == 1:
        model.opset_import.add(domain=rng.choice(["", "ai.onnx", "ai.onnx.ml", "own"]), version=rng.choice([1, 7, 30]))
    elif what == 2:
        del model.opset_import[:]
    elif what == 3:
        model.ir_version = rng.choice(INTEGERS)
    elif what == 4:
        del model.graph.output[:]
    else:
        port = _pick(rng, [*model.graph.input, *model.graph.output])
        if port is not None:
            port.name = rng.choice([*TEXTS, *_names(model)])


def without_end(rng: random.Random, model: Any) -> None:
    """Functions that call each other; a loop that nothing ends; bodies that lie deep in one another."""
    what = rng.randrange(3)
    name = rng.choice(_names(model) or ["x"])
    if what == 0:
        for caller, called in (("a", "b"), ("b", rng.choice(["a", "b"]))):
            function = model.functions.add(name=caller, domain="own", input=["x"], output=["y"])
            function.node.add(op_type=called, domain="own", input=["x"], output=["h"])
            function.node.add(op_type=called, domain="own", input=["h"], output=["y"])
            function.opset_import.add(domain="own", version=1)
        model.opset_import.add(domain="own", version=1)
        model.graph.node.add(op_type="a", domain="own", input=[name], output=["never"])
    elif what == 1:
        loop = model.graph.node.add(op_type="Loop", input=["", "going", name], output=["never"])
        model.graph.node.insert(0, onnx.helper.make_node("Constant", [], ["going"], value_ints=[1]))
        body = loop.attribute.add(name="body", type=AttributeProto.GRAPH).g
        body.name = "body"
        for port in ("i", "c", "v"):
            body.input.add(name=port)
        body.node.add(op_type=rng.choice(["Identity", "Relu", "Neg"]), input=["v"], output=["w"])
        body.node.add(op_type="Identity", input=["c"], output=["d"])
        for port in ("d", "w"):
            body.output.add(name=port)
    else:
        graph = model.graph
        for _ in range(rng.choice([5, 15])):
            node = graph.node.add(op_type="If", input=[name], output=["deep"])
            graph = node.attribute.add(name="then_branch", type=AttributeProto.GRAPH).g
            graph.name = "deep"
            graph.output.add(name="deep")


OPERATORS = sorted({schema.name for schema in onnx.defs.get_all_schemas() if schema.domain in ("", "ai.onnx.ml")})
WAYS: list[Callable[[random.Random, Any], None]] = [
    alter_attribute,
    alter_attribute,
    retype_attribute,
    move_attribute,
    alter_shape,
    alter_shape,
    alter_type,
    alter_edges,
    alter_edges,
    alter_nodes,
    chain,
    alter_constants,
    alter_constants,
    alter_head,
    without_end,
]


def alter(rng: random.Random, data: bytes) -> bytes | onnx.ModelProto:
    """A model like `data`, but for a few places."""
    what = rng.random()
    if what < 0.1:
        return damage_bytes(rng, data)
    if what < 0.13:
        return data[: rng.randrange(len(data) + 1)]
    model = onnx.ModelProto.FromString(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        rng.choice(WAYS)(rng, model)
    return model


def use(model: bytes | onnx.ModelProto, rng: random.Random, folder: Path) -> str:
    """Imports, compiles and runs; how far it came."""
    source: Any = model
    if isinstance(model, onnx.ModelProto) and rng.random() < 0.5:
        source = folder / "model.onnx"
        source.write_bytes(model.SerializeToString())
    elif isinstance(model, bytes) and rng.random() < 0.2:
        source = folder / "model.onnx"
        source.write_bytes(model)
    return compile_and_run(source, rng)


def make_folder(folder: Path) -> Path:
    """Where models stand with files beside them: whole, short, and outside."""
    inside = folder / "inside"
    (inside / "folder").mkdir(parents=True)
    for name, size in (("weights.bin", 4096), ("short.bin", 3), ("../weights.bin", 4096)):
        (inside / name).write_bytes(bytes(size))
    os.symlink(folder / "weights.bin", inside / "out.bin")
    return inside


def _model(seed: int, index: int, sound: list[bytes]) -> tuple[bytes | onnx.ModelProto, random.Random]:
    rng = random.Random(f"{seed}:{index}")
    return alter(rng, rng.choice(sound)), rng


def fuzz(models: int, seconds: float, seed: int) -> tuple[Counter[str], list[Finding]]:
    """Tries altered models until there were enough or the time is over; how they ended, and what was found."""
    sound = bases()
    with tempfile.TemporaryDirectory() as folder:
        inside = make_folder(Path(folder))

        def attempt(index: int) -> str:
            return use(*_model(seed, index, sound), inside)

        return try_each(attempt, 0, models, seconds=seconds, describe=lambda index: f"{seed}:{index}", batch=200)


def main() -> int:
    arguments = command_line(__doc__)
    arguments.add_argument("--keep", help="with --only: where to write the model")
    args = arguments.parse_args()
    if args.only:
        seed, index = map(int, args.only.split(":"))
        model, rng = _model(seed, index, bases())
        if args.keep:
            Path(args.keep).write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
        if isinstance(model, onnx.ModelProto):
            print(onnx.printer.to_text(model))
        with tempfile.TemporaryDirectory() as folder:
            print(use(model, rng, make_folder(Path(folder))))
        return 0
    return tell("altered ONNX models", *fuzz(args.models, args.seconds, args.seed))


if __name__ == "__main__":
    sys.exit(main())
