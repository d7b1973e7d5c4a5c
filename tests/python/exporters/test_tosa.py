"""Integer graphs as TOSA files: TOSA's reference model gives hetnn's integers, bit for bit."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hetnn
from hetnn import _core
from hetnn.exporters.tosa import FORMS, Form, export, refusal, unsupported
from hetnn.exporters.tosa.model import Export, as_written
from hetnn.exporters.tosa.movement import Movement
from hetnn.exporters.tosa.schema import ENUMERATIONS, TABLES, attribute
from importers.test_onnx_quantized import Network, integers_only

ROOT = Path(__file__).resolve().parents[3]
Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module", autouse=True)
def packages() -> Any:
    """tosa-tools lies in an environment of its own (tests/python/requirements-apart.txt)."""
    (apart,) = (ROOT / "build" / "apart").glob("lib/python*/site-packages")
    sys.path.append(str(apart))
    import tosa  # noqa: F401

    yield
    sys.path.remove(str(apart))


def by_reference(data: bytes, feeds: list[Array], shapes: list[tuple[int, ...]], dtypes: list[str]) -> list[Array]:
    """What TOSA's reference model computes."""
    import tosa_reference_model

    found, status = tosa_reference_model.run(data, feeds)
    assert status == tosa_reference_model.GraphStatus.TOSA_VALID, status
    return [
        np.asarray(out).astype(dtype).reshape(shape) for out, shape, dtype in zip(found, shapes, dtypes, strict=True)
    ]


class Layers:
    """A graph of integers that grows layer by layer."""

    def __init__(self, dtype: str, seed: int) -> None:
        self.builder, self.rng, self.dtype = _core.GraphBuilder("layers"), np.random.default_rng(seed), dtype
        self.most = 127 if dtype == "i8" else 32767

    def start(self, shape: list[int], scale: float, zero: int) -> Any:
        x = self.builder.add_input("x", self.dtype, shape)
        (value,) = self.builder.create("bitcast", [x], {"to": self.dtype, "q_scale": [scale], "q_zero": zero})
        return value

    def node(self, op: str, inputs: list[Any], scale: float, zero: int = 0, **attrs: Any) -> Any:
        told = {"q_scale": [scale], "q_zero": zero, "q_rounding": "double", **attrs}
        (y,) = self.builder.create(op, inputs, told)
        return y

    def filters(self, shape: list[int], before: float, bias_steps: int = 900) -> list[Any]:
        scales = self.rng.uniform(0.005, 0.02, shape[0])
        weight = self.rng.integers(-127, 128, shape).astype(np.int8)
        bias = self.rng.integers(-bias_steps, bias_steps, shape[0]).astype(
            np.int64 if self.dtype == "i16" else np.int32
        )
        of_filters = {"q_scale": scales.tolist(), "q_axis": 0}
        (w,) = self.builder.create("constant", [], {"value": weight, **of_filters})
        (b,) = self.builder.create("constant", [], {"value": bias, "q_scale": (scales * before).tolist(), "q_axis": 0})
        return [w, b]

    def compare(self, *results: Any) -> bytes:
        for k, value in enumerate(results):
            self.builder.output(value, f"y{k}")
        graph = self.graph = self.builder.finish()
        (_, _, shape), *_ = graph.inputs
        feed = self.rng.integers(-self.most - 1, self.most + 1, shape).astype(f"int{self.dtype[1:]}")
        wanted, data = _core.interpret(graph, [feed]), export(graph)
        for each in {data, export(graph, chains=True), *(export(graph, form=form) for form in FORMS)}:
            found = by_reference(each, [feed], [w.shape for w in wanted], [w.dtype.name for w in wanted])
            for got, want in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(got, want)
        return data


@pytest.mark.parametrize("seed", range(6))
def test_windows_and_sums_of_bytes(seed: int) -> None:
    n = Layers("i8", seed)
    x = n.start([1, 3, 17, 14], 0.04, -5)
    a = n.node("conv2d", [x, *n.filters([8, 3, 3, 3], 0.04)], 0.05, -128, stride=[2, 2], padding=[1, 0, 1, 1])
    a = n.node("relu", [a], 0.05, -128)
    b = n.node("conv2d", [a, *n.filters([8, 1, 3, 3], 0.05)], 0.06, 3, padding=[1, 1], groups=8)
    c = n.node("conv2d", [a, *n.filters([8, 8, 1, 1], 0.05)], 0.03, -7)
    d = n.node("add", [b, c], 0.07, 1)
    p = n.node("max_pool2d", [d], 0.07, 1, kernel=[3, 3], stride=[2, 2], padding=[1, 1])
    m = n.node("avg_pool2d", [d], 0.07, 1, kernel=[2, 2], stride=[2, 2], count_include_pad=False)
    assert b"TOSA" in n.compare(p, m)[:16]


@pytest.mark.parametrize("rounding", ["single", "double"])
@pytest.mark.parametrize(
    ("shape", "slopes", "zero"),
    [
        ([2, 5, 6, 7], [-0.4, 0.0, 0.25, 0.99, 1.0], 0),  # the higher line
        ([2, 5, 6, 7], [1.27, 1.0, 1.2, 1.01, 1.1], 0),  # the lower one
        ([1, 4, 300], [-1.2, 0.3, 1.25, 0.0], 5),  # each in some channels
        ([1, 4, 3, 5], [0.1, 1.2, 0.5, 1.27], 0),  # each side by itself is cheaper
        ([40, 3], [0.1, 1.2, -0.5], -3),
        ([256], [0.3], 0),
        ([2, 3, 4, 2, 3], [0.7], 0),
    ],
)
@pytest.mark.parametrize("scale", [0.04, 0.031, 0.11])
def test_prelu(scale: float, shape: list[int], slopes: list[float], zero: int, rounding: str) -> None:
    """By lines, sides or a table, for processors that chain what is on elements and for others."""
    n = Layers("i8", 0)
    steps = np.clip(np.rint(np.array(slopes) / 0.01) + zero, -128, 127).astype(np.int8)
    given = n.builder.create("constant", [], {"value": steps, "q_scale": [0.01], "q_zero": zero})
    x = n.start(shape, 0.04, -5)
    n.compare(n.node("prelu", [x, *given], scale, -5, q_rounding=rounding), n.node("prelu", [x, *given], scale, 90))


def quotients(scales: tuple[float, float, float], zeros: tuple[int, int, int], rounding: str) -> _core.Graph:
    """Of every two bytes."""
    (a, b, c), (x, y, z) = scales, zeros
    return _core.Graph.parse(
        f"graph @g {{stage = imported}} (%x: i8{{{a}:{x}}}[256,1], %y: i8{{{b}:{y}}}[1,256]) -> (%z) {{\n"
        f"  %z = div(%x, %y) {{q_scale = [{c}], q_zero = {z}, q_rounding = {rounding}}} : i8{{{c}:{z}}}[256,256]\n}}"
    )


@pytest.mark.parametrize("rounding", ["single", "double", "half_even_fp32"])
@pytest.mark.parametrize("zeros", [(12, 19, 0), (-128, -128, -128), (127, 0, 5), (3, -128, 127)])
@pytest.mark.parametrize(
    "scales", [(1 / 128, 1 / 128, 1 / 64), (0.0437, 0.0912, 0.0713), (0.003, 0.0231, 0.0171), (0.27, 1.9, 3)]
)
def test_quotients(scales: tuple[float, float, float], zeros: tuple[int, int, int], rounding: str) -> None:
    """A product with a number for each divisor, 0 among them."""
    graph = quotients(scales, zeros, rounding)
    if refusal(graph) and rounding == "half_even_fp32":
        assert scales[0] == 1 / 128  # has ties in both directions beside one divisor
        return
    every = np.arange(-128, 128).astype(np.int8)
    feed = [every[:, None], every[None, :]]
    (wanted,) = _core.interpret(graph, feed)
    for chains in (False, True):
        (found,) = by_reference(export(graph, chains), feed, [wanted.shape], ["int8"])
        np.testing.assert_array_equal(found, wanted)


def test_quotients_take_as_few_tables_as_give_all_of_them() -> None:
    steps, fine = (1 / 128, 1 / 128), (0.0437, 0.0912, 0.0713)
    for scales, zero, tables in (((*steps, 600), 12, 2), ((*steps, 1 / 64), 12, 3), (fine, 127, 4)):
        graph = quotients(scales, (zero, 0, 5), "double")
        assert [op.kind for op in Export(graph).block.ops].count("TABLE") == tables


def test_quotients_that_no_product_gives_are_refused() -> None:
    """2.5, 7.5, ... of f32 lie on either side of their ties."""
    told = refusal(quotients((0.02, 0.01, 0.1), (0, 0, 0), "double"))
    assert told is not None
    assert "no number for each divisor gives every quotient" in told


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtype", ["i8", "i16"])
def test_layers_of_both_widths(dtype: str, seed: int) -> None:
    n = Layers(dtype, seed)
    fine = 1.0 if dtype == "i8" else 1 / 256
    zero = -3 if dtype == "i8" else 0
    x = n.start([2, 4, 6, 5], 0.04 * fine, zero)
    a = n.node("conv2d", [x, *n.filters([6, 4, 3, 3], 0.04 * fine)], 0.09 * fine, zero, dilation=[2, 1])
    b = n.node("sub", [a, a], 0.05 * fine, zero)
    c = n.node("mul", [a, b], 0.2 * fine, zero)
    d = n.node("quantize", [c], 0.15 * fine, zero, to=dtype)
    flat = n.builder.create("reshape", [d], {"shape": [2, 6 * 2 * 3]})[0]
    y = n.node(
        "linear",
        [flat, *n.filters([5, 36], 0.15 * fine)],
        0.8 * fine,
        zero,
        q_rounding="single" if dtype == "i8" else "double",
    )
    n.compare(y, b, d)


def test_movement() -> None:
    n = Layers("i8", 2)
    x = n.start([1, 4, 6, 5], 0.04, -3)
    create = n.builder.create
    (a,) = create("pad", [x], {"padding": [0, 0, 1, 2, 0, 0, 0, 1], "value": 0.2})
    (b,) = create("slice", [a], {"axis": 2, "start": 1, "end": -1})
    (c,) = create("permute", [b], {"perm": [0, 3, 1, 2]})
    (d,) = create("concat", [c, c], {"axis": 1})
    (e,) = create("reshape", [d], {"shape": [16, 20]})
    n.compare(e, b)


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (3, 1), (1, 2)])
@pytest.mark.parametrize("dtype", ["i8", "i16"])
def test_channels_that_become_pixels_are_not_moved(dtype: str, rows: int, columns: int) -> None:
    """As a transposed convolution has them, and as many as there are of each pixel before its neighbours' or behind."""
    n = Layers(dtype, rows)
    zero = -3 if dtype == "i8" else 0
    for order in ([0, 1, 4, 2, 5, 3], [0, 3, 4, 1, 5, 2]):
        n.builder = _core.GraphBuilder("layers")
        x = n.start([1, 3, 4, 5], 0.04, zero)
        many = 6 * rows * columns
        y = n.node("conv2d", [x, *n.filters([many, 3, 1, 1], 0.04)], 0.09, zero)
        parts = [6, rows, columns] if order[1] == 1 else [rows, columns, 6]
        (y,) = n.builder.create("reshape", [y], {"shape": [1, *parts, 4, 5]})
        (y,) = n.builder.create("permute", [y], {"perm": order})
        (y,) = n.builder.create("reshape", [y], {"shape": [1, 6, 4 * rows, 5 * columns]})
        (z,) = n.builder.create("permute", [y], {"perm": [0, 2, 3, 1]})
        n.compare(z)
        kinds = [op.kind for op in Export(n.graph).block.ops]
        assert kinds.count("TRANSPOSE") == 1  # of the input


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (3, 1), (1, 2), (2, 9)])
@pytest.mark.parametrize("dtype", ["i8", "i16"])
def test_pixels_that_become_channels_and_back_are_parts_side_by_side(dtype: str, rows: int, columns: int) -> None:
    n = Layers(dtype, 9)
    fine = 0.05 if dtype == "i8" else 0.05 / 256
    many = rows * columns * 6
    x = n.start([1, 6, 4 * rows, 5 * columns], fine, 0)
    y = n.node("conv2d", [x, *n.filters([6, 6, 1, 1], fine)], fine, 0)
    (y,) = n.builder.create("reshape", [y], {"shape": [1, 6, 4, rows, 5, columns]})
    (y,) = n.builder.create("permute", [y], {"perm": [0, 3, 5, 1, 2, 4]})
    (y,) = n.builder.create("reshape", [y], {"shape": [1, many, 4, 5]})
    y = n.node("conv2d", [y, *n.filters([many, 1, 1, 1], fine)], fine, 0, groups=many)
    (y,) = n.builder.create("reshape", [y], {"shape": [1, rows, columns, 6, 4, 5]})
    (y,) = n.builder.create("permute", [y], {"perm": [0, 3, 4, 1, 5, 2]})
    (y,) = n.builder.create("reshape", [y], {"shape": [1, 6, 4 * rows, 5 * columns]})
    n.compare(n.node("conv2d", [y, *n.filters([6, 6, 1, 1], fine)], fine, 0))
    kinds = [op.kind for op in Export(n.graph).block.ops]
    assert kinds.count("TRANSPOSE") == 2  # of what enters and leaves


@pytest.mark.parametrize(("rows", "columns", "stride"), [(2, 2, 1), (3, 1, 1), (1, 2, 1), (2, 2, 2)])
@pytest.mark.parametrize("dtype", ["i8", "i16"])
def test_blocks_of_pixels_are_read_as_they_lie(dtype: str, rows: int, columns: int, stride: int) -> None:
    """Channels of a block before its pixels, and pixels before their channels; by steps that all processors take."""
    n = Layers(dtype, rows)
    fine = 0.05 if dtype == "i8" else 0.05 / 256
    zero = -3 if dtype == "i8" else 0
    many = rows * columns * 5
    for order in ([0, 1, 3, 5, 2, 4], [0, 3, 5, 1, 2, 4]):
        n.builder = _core.GraphBuilder("layers")
        x = n.start([1, 6, 4 * rows, 5 * columns], fine, zero)
        y = n.node("conv2d", [x, *n.filters([5, 6, 1, 1], fine)], fine, zero)
        (y,) = n.builder.create("reshape", [y], {"shape": [1, 5, 4, rows, 5, columns]})
        (y,) = n.builder.create("permute", [y], {"perm": order})
        (y,) = n.builder.create("reshape", [y], {"shape": [1, many, 4, 5]})
        told = {"padding": [1, 0, 1, 2], "stride": [stride, stride]}
        n.compare(n.node("conv2d", [y, *n.filters([7, many, 3, 2], fine)], 3 * fine, zero, **told))
        kinds = [op.kind for op in Export(n.graph, form=FORMS[-1]).block.ops]
        moves = kinds.count("TRANSPOSE") + kinds.count("SLICE") - 2  # but for what enters and leaves
        assert (moves == 0) == (stride * max(rows, columns) <= 3)


@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 1, 1), (2, 0, 1), (2, 3, 2), (1, 2, 2)])
@pytest.mark.parametrize("dtype", ["i8", "i16"])
@pytest.mark.parametrize("twice", [False, True])
def test_columns_beside_a_convolution_are_computed_once_more(
    dtype: str, stride: int, padding: int, dilation: int, twice: bool
) -> None:
    """Those in reverse, of edges that are there once or twice."""
    n = Layers(dtype, stride)
    zero = -3 if dtype == "i8" else 0
    x = n.start([1, 4, 11, 12], 0.04, zero)
    told = {"stride": [stride, stride], "padding": [padding, padding], "dilation": [dilation, dilation]}
    y = n.node("conv2d", [x, *n.filters([6, 4, 3, 3], 0.04)], 0.09, zero, **told)
    width = (12 + 2 * padding - 2 * dilation - 1) // stride + 1
    places = {1, 2, width - 2, width - 3, width - 4}
    if twice:
        ends = [n.builder.create("slice", [y], {"axis": 3, "start": k, "end": k + 2})[0] for k in (0, width - 2)]
        left, right = (n.builder.create("flip", [end], {"axes": [3]})[0] for end in ends)
        (z,) = n.builder.create("concat", [left, y, right], {"axis": 3})
        places = {0, 1, width - 2, width - 1}
    else:
        (z,) = n.builder.create("pad", [y], {"padding": [0, 0, 1, 2, 0, 0, 2, 3], "mode": "reflect"})
    n.compare(z)
    for form in FORMS:
        block = Export(n.graph, form=form).block
        filters = [block.tensors[op.inputs[1]][0] for op in block.ops if op.kind == "CONV2D"]
        assert filters.count([6, 3, 3, 4]) == 1 + len(places if form.folds else ())


@pytest.mark.parametrize("dtype", ["i8", "i16"])
@pytest.mark.parametrize(("filters", "together"), [(1, 6), (3, 2)])
def test_few_filters_see_pixels_together_and_parts_are_copied_by_layers(
    dtype: str, filters: int, together: int
) -> None:
    n = Layers(dtype, filters)
    zero = -3 if dtype == "i8" else 0
    x = n.start([2, 3, 6, 12], 0.04, zero)
    a = n.node("conv2d", [x, *n.filters([6, 3, 3, 3], 0.04)], 0.09, zero, padding=[1, 1])
    b = n.node("max_pool2d", [a], 0.09, zero, kernel=[1, 2], stride=[1, 1], padding=[0, 0, 0, 1])
    (c,) = n.builder.create("concat", [a, b], {"axis": 1})
    n.compare(n.node("conv2d", [c, *n.filters([filters, 12, 1, 1], 0.09)], 0.2, zero))
    block = Export(n.graph, form=Form(layers=True)).block
    layers = [op for op in block.ops if "CONV2D" in op.kind]
    assert len(layers) == (3 if dtype == "i8" else 2)
    assert block.tensors[layers[-1].inputs[0]][0] == [2, 6, 12 // together, 12 * together]


def test_a_rest_behind_the_last_window_of_a_pool() -> None:
    n = Layers("i8", 5)
    x = n.start([1, 3, 12, 11], 0.04, -5)
    a = n.node("max_pool2d", [x], 0.04, -5, kernel=[3, 3], stride=[2, 2])
    b = n.node("max_pool2d", [x], 0.04, -5, kernel=[2, 3], stride=[3, 4], padding=[1, 1])
    n.compare(a, b)


def test_tables() -> None:
    n = Layers("i8", 3)
    x = n.builder.add_input("x", "i8", [2, 3, 4])
    table = n.rng.integers(-128, 128, 256).astype(np.int8)
    n.compare(*n.builder.create("lookup", [x], {"table": table}))


@pytest.mark.parametrize(
    ("factor", "zero", "low", "high"),
    [(0.773, -3, -128, 127), (1.313, 5, -128, 127), (-0.917, 20, -128, 127), (300, -20, -31, -9), (1.0, 0, -10, 10)],
)
def test_tables_that_are_lines_are_rescaled_by_layers(factor: float, zero: int, low: int, high: int) -> None:
    """Behind a convolution of few products, and where others read the operand."""
    n = Layers("i8", 7)
    steps = np.arange(-128, 128)
    told = {"q_scale": [0.1], "q_zero": zero}
    line = np.clip(np.floor((steps - 4) * factor + 0.5) + zero, low, high).astype(np.int8)
    curve = (np.sin(steps / 20) * 100).astype(np.int8)
    for table, shared in ((line, False), (line, True), (curve, False)):
        n.builder = _core.GraphBuilder("layers")
        x = n.start([1, 3, 4, 5], 0.04, -3)
        y = n.node("conv2d", [x, *n.filters([6, 3, 3, 3], 0.04)], 0.09, 4)
        (z,) = n.builder.create("lookup", [y], {"table": table, **told})
        n.compare(z, *[y] * shared)
        kinds = [[op.kind for op in Export(n.graph, form=form).block.ops] for form in FORMS]
        by_table = [True, not shared or table is curve, table is curve, table is curve]
        assert ["TABLE" in each for each in kinds] == by_table


def test_an_npus_part_of_a_quantized_network() -> None:
    """Rounded once to nearest even where TOSA rounds halves up: within a step, and hardly anywhere apart."""
    plan = hetnn.plan(Network(signed=True, shared_bias=False).model, integers_only(), fix={"n": 2})
    graph = next(part["graph"] for part in plan._plan.subgraphs() if part["device"] == "npu")
    told = unsupported(graph)
    assert told == [], told
    (_, _, shape), *_ = graph.inputs
    feed = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
    (wanted,) = _core.interpret(graph, [feed])
    (got,) = by_reference(export(graph), [feed], [wanted.shape], ["int8"])
    assert int(np.abs(got.astype(int) - wanted.astype(int)).max()) <= 1


def test_what_has_no_form_is_told() -> None:
    builder = _core.GraphBuilder("reals")
    builder.output(*builder.create("relu", [builder.add_input("x", "f32", [2])], {}))
    graph = builder.finish()
    assert refusal(graph) == "input 'x': is f32[2]; hetnn writes TOSA of integers of 8 and 16 bits and fixed sizes"
    with pytest.raises(hetnn.Unsupported, match="have no form in TOSA"):
        export(graph)


def test_without_flatbuffers_the_package_is_named() -> None:
    code = """
import sys
sys.modules["flatbuffers"] = None
from hetnn import _core
from hetnn.errors import Unsupported
from hetnn.exporters.tosa import export
graph = _core.Graph.parse('graph @g {stage = imported} (%x: i8[2]) -> (%y) {\\n %y = bitcast(%x) {to = i8} : i8[2]\\n}')
try:
    export(graph)
except Unsupported as error:
    print(error)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "Run pip install 'hetnn[tosa]'" in told


def test_the_schema_is_that_of_tosa_tools() -> None:
    for enumeration, names in ENUMERATIONS.items():
        theirs = getattr(importlib.import_module(f"tosa.{enumeration}"), enumeration)
        assert {name: getattr(theirs, name) for name in names} == names
    attributes = importlib.import_module("tosa.Attribute").Attribute
    for kind, number in ENUMERATIONS["Op"].items():
        assert getattr(attributes, attribute(kind)) == number
        fields = importlib.import_module(f"tosa.{attribute(kind)}")
        assert TABLES.get(attribute(kind), {}).keys() == {name for name, _, _ in _fields(fields)}, kind
    for table, places in TABLES.items():
        found = {name: (kind, place) for name, kind, place in _fields(importlib.import_module(f"tosa.{table}"))}
        for place, (name, kind) in enumerate(places.items()):
            assert found[name] == ("UOffsetTRelative" if kind == "at" else kind, place), (table, name)


def _fields(module: Any) -> list[tuple[str, str, int]]:
    """Name, kind and place of each field of a table, as the package's own builder writes it."""
    rows = re.findall(r"def Add(\w+)\(builder.*\n +(\w+)\(", inspect.getsource(module))
    source = inspect.getsource(module)
    out = []
    for name, called in rows:
        body = re.search(rf"def {called}\(.*\n +builder\.Prepend(\w+)Slot\((\d+),", source)
        assert body is not None
        out.append((name, body[1], int(body[2])))
    return out


def test_an_order_of_axes_is_kept_from_layer_to_layer() -> None:
    """Images are transposed at the graph's ends alone; constants of axes, too, follow them."""
    n = Layers("i8", 7)
    x = n.start([1, 3, 12, 10], 0.04, -5)
    a = n.node("relu", [n.node("conv2d", [x, *n.filters([8, 3, 3, 3], 0.04)], 0.05, -128)], 0.05, -128)
    (b,) = n.builder.create("pad", [a], {"padding": [0, 0, 1, 2, 0, 0, 0, 1], "value": -0.0})
    c = n.node("conv2d", [b, *n.filters([8, 8, 3, 3], 0.05)], 0.03, -7)
    d = n.node("conv2d", [b, *n.filters([8, 8, 3, 3], 0.05)], 0.03, -7)
    (e,) = n.builder.create("concat", [c, n.node("add", [c, d], 0.03, -7)], {"axis": 1})
    (f,) = n.builder.create("slice", [e], {"axis": 1, "start": 3, "end": 12})
    g = n.node("conv2d", [f, *n.filters([4, 9, 1, 1], 0.03)], 0.04, 2, stride=[2, 2])
    n.compare(g)
    kinds = [op.kind for op in Export(n.graph).block.ops]
    assert kinds.count("TRANSPOSE") == 2
    assert kinds.count("SLICE") == 1


@pytest.mark.parametrize("seed", range(4))
def test_sums_of_equal_scales_have_few_bits(seed: int) -> None:
    n = Layers("i8", seed)
    x = n.start([1, 2, 64, 64], 0.04, -5)
    scale = float(np.float32(n.rng.uniform(0.02, 0.2))) if seed else 0.08
    n.compare(n.node("add", [x, n.node("relu", [x], 0.04, -5)], scale, 3))
    shifts = [op for op in Export(n.graph).block.ops if op.kind == "RESCALE"]
    assert len(shifts) == 3


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", ["i8", "i16"])
def test_sums_of_scales_that_are_ties_are_rounded_twice(dtype: str, seed: int) -> None:
    """Thirds of a step beside halves: what an operand is rounded to decides halves of the result."""
    n = Layers(dtype, seed)
    fine, zero = (0.01, -3) if dtype == "i8" else (0.01 / 256, 0)
    x = n.start([1, 2, 96, 96], 3 * fine, zero)
    y = n.node("quantize", [x], 2 * fine, zero, to=dtype)
    ends = [n.node(op, [x, y], times * fine, zero) for op in ("add", "sub") for times in (4, 5, 7 * n.rng.uniform())]
    n.compare(*ends)


def test_a_graph_as_it_is_written_has_its_roundings() -> None:
    """Of a network that states none, bit for bit what TOSA's reference model computes."""
    plan = hetnn.plan(Network(signed=True, shared_bias=False).model, integers_only(), fix={"n": 2})
    graph = next(part["graph"] for part in plan._plan.subgraphs() if part["device"] == "npu")
    (_, _, shape), *_ = graph.inputs
    for seed in range(5):
        feed = np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)
        (wanted,) = _core.interpret(as_written(graph), [feed])
        (got,) = by_reference(export(graph), [feed], [wanted.shape], ["int8"])
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(("shape", "scale"), [([3, 10], 0.5), ([1, 200], 0.02), ([2, 5, 35], 1.3), ([4, 7], 0.0078125)])
def test_softmax_of_bytes(shape: list[int], scale: float) -> None:
    n = Layers("i8", 1)
    n.compare(n.node("softmax", [n.start(shape, scale, 3)], 1 / 256, -128))


def test_enlarged_images() -> None:
    n = Layers("i8", 1)
    x = n.start([2, 3, 4, 5], 0.04, 3)
    n.compare(*(n.node("upsample_nearest2d", [x], 0.04, 3, size=size) for size in ([8, 10], [12, 5], [4, 20])))


@pytest.mark.parametrize("seed", range(20))
def test_movement_is_one_of_where_elements_were_made(seed: int) -> None:
    """Chains of shapes and orders of axes as the arrays that numpy makes, in three steps at most."""
    rng = np.random.default_rng(seed)

    def factors(number: int) -> list[int]:
        out = []
        while number > 1:
            out.append(int(rng.choice([k for k in range(2, number + 1) if number % k == 0])))
            number //= out[-1]
        return [*out, 1] if rng.integers(2) else out or [1]

    for _ in range(50):
        elements = int(rng.choice([12, 24, 36, 60, 64]))
        source = np.arange(elements).reshape(factors(elements))
        moved, movement = source, Movement.none(source.shape)
        for _ in range(int(rng.integers(1, 6))):
            perm, shape = rng.permutation(moved.ndim).tolist(), factors(elements)
            after = movement.reshaped(shape)
            if rng.integers(2) or after is None:
                moved, movement = moved.transpose(perm), movement.transposed(perm)
            else:
                moved, movement = moved.reshape(shape), after
        cut, order = movement.steps()
        made = source.reshape(cut)
        made = made.transpose(order) if order else made
        np.testing.assert_array_equal(made.reshape(movement.shape), moved)
