"""Shapes, axes and places that open sizes, values or a declared result say, beside ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

import hetnn
from importers.onnx_ports import FLOAT, INT64, Port, agrees, declared, model_of
from importers.onnx_runtime_nodes import Array, f32, restart

restart()


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceMean"])
@pytest.mark.parametrize("noop", [0, 1])
def test_any_number_of_axes_is_reduced(op: str, noop: int) -> None:
    """That stay as axes of one element, so that the rank is known."""
    node = helper.make_node(op, ["x", "axes"], ["y"], noop_with_empty_axes=noop)
    model = model_of([node], {"x": (FLOAT, ["a", "b", "c"]), "axes": (INT64, ["k"])}, {"y": FLOAT})
    for axes in ([1], [-1, 0], [], [0, 1, 2]):
        agrees(model, x=f32(2, 3, 4), axes=np.array(axes, np.int64))


def test_how_many_numbers_say_a_shape_or_a_place_follows_from_the_result() -> None:
    """A shape or rows of indices of open length: the axes of the result, or of what is put there, say it."""
    wide = helper.make_node("Expand", ["x", "s"], ["y"])
    model = declared(model_of([wide], {"x": (FLOAT, ["a", "b"]), "s": (INT64, ["r"])}, {"y": FLOAT}), ["p", "q", "t"])
    x = f32(1, 3)
    for s in ([4, 2, 3], [2, 1, 1], [0, 2, 3]):
        agrees(model, s=np.array(s), x=x)
    with pytest.raises(hetnn.InvalidModel, match=r"the values give the shape \[2,3\]"):
        hetnn.compile(model)(x=x, s=np.array([2, 3]))

    ports: dict[str, Port] = {"x": (FLOAT, ["a", "b", 2]), "i": (INT64, ["n", "k"])}
    picked = model_of([helper.make_node("GatherND", ["x", "i"], ["y"])], ports, {"y": FLOAT})
    x, pairs, ones = f32(2, 3, 2), np.array([[0, 1], [1, -1], [-2, 0]]), np.array([[1], [-2]])
    agrees(declared(picked, ["n", 2]), x=x, i=pairs)
    agrees(declared(picked, ["n", "b", "c"]), x=x, i=ones)
    with pytest.raises(hetnn.InvalidModel, match="match_shape"):
        hetnn.compile(declared(picked, ["n", 2]))(x=x, i=ones)
    shared = helper.make_node("GatherND", ["x", "i"], ["y"], batch_dims=1)
    batched = model_of([shared], {"x": (FLOAT, ["a", "b", 2]), "i": (INT64, ["a", "n", "k"])}, {"y": FLOAT})
    agrees(declared(batched, ["a", "n", 2]), x=x, i=np.array([[[0], [1]], [[-1], [2]]]))

    for axes, where in ((["n", 2], pairs), (["n", "b", "c"], ones)):
        put = model_of(
            [helper.make_node("ScatterND", ["x", "i", "u"], ["y"])], {**ports, "u": (FLOAT, axes)}, {"y": FLOAT}
        )
        agrees(put, x=x, i=where, u=f32(len(where), *([3, 2] if len(axes) == 3 else [2])))


def test_open_sizes_meet_in_caches_regions_and_reductions() -> None:
    ports: dict[str, Port] = {"x": (FLOAT, ["b", "t", "w"]), "u": (FLOAT, ["c", "s", "v"]), "i": (INT64, ["d"])}
    put = helper.make_node("TensorScatter", ["x", "u", "i"], ["y"], axis=1)
    x, u = f32(2, 5, 3), f32(2, 2, 3)
    wanted = x.copy()
    wanted[0, 1:3], wanted[1, 3:5] = u
    model = model_of([put], ports, {"y": FLOAT}, opset=24)
    np.testing.assert_array_equal(hetnn.compile(model)(x=x, u=u, i=np.array([1, 3])), wanted)
    align = helper.make_node("RoiAlign", ["x", "r", "i"], ["y"], output_height=2, output_width=2)
    known = model_of([align], {"x": (FLOAT, ["n", "c", "h", "w"]), "r": (FLOAT, ["k", "l"])}, {"y": FLOAT}, opset=16)
    known.graph.initializer.append(helper.make_tensor("i", INT64, [2], [1, 0]))
    agrees(known, x=f32(2, 3, 6, 5), r=np.array([[0, 0, 3, 3], [1, 1, 4, 2]], np.float32))
    total = model_of(
        [helper.make_node("ReduceSum", ["x", "i"], ["y"], keepdims=0)],
        {"x": (FLOAT, ["a", "b", 2]), "i": (INT64, ["k"])},
        {"y": FLOAT},
    )
    for axes in ([0], [1], [-1]):
        agrees(declared(total, ["p", "q"]), x=f32(2, 3, 2), i=np.array(axes))
    agrees(declared(total, ["p"]), x=f32(2, 3, 2), i=np.array([0, 2]))


def test_a_rank_that_nothing_says_is_refused_with_what_would() -> None:
    ports: dict[str, Port] = {"x": (FLOAT, ["a", "b"]), "s": (INT64, ["r"])}
    for op in ("Reshape", "Expand", "Squeeze", "Unsqueeze"):
        model = model_of([helper.make_node(op, ["x", "s"], ["y"])], ports, {"y": FLOAT})
        with pytest.raises(hetnn.Unsupported, match=f"{op}: .* r numbers.*declare its shape.*give r by fix="):
            hetnn.compile(model)
    model = model_of([helper.make_node("Reshape", ["x", "s"], ["y"])], ports, {"y": FLOAT})
    x = f32(2, 3)
    np.testing.assert_array_equal(hetnn.compile(model, fix={"r": 1})(x, np.array([6])), x.reshape(6))
    squeezed = model_of([helper.make_node("Squeeze", ["x", "s"], ["y"])], ports, {"y": FLOAT})
    agrees(declared(squeezed, ["p"]), x=f32(1, 3), s=np.array([0]))
    agrees(declared(squeezed, ["p"]), x=f32(3, 1), s=np.array([-1]))
    added = model_of([helper.make_node("Unsqueeze", ["x", "s"], ["y"])], ports, {"y": FLOAT})
    agrees(declared(added, ["p", "q", "t", "u"]), x=x, s=np.array([0, -1]))
    with pytest.raises(hetnn.InvalidModel, match="of which the model declares 1 axes"):
        hetnn.compile(declared(added, ["p"]))


def test_a_size_of_none_that_stands_for_another_one_ends_the_run() -> None:
    """In a shape 0 copies an axis of the input: an open size that is 0 makes no other shape than that."""
    names = helper.make_tensor("minus", INT64, [1], [-1])
    nodes = [
        helper.make_node("Shape", ["x"], ["last"], start=1),
        helper.make_node("Concat", ["last", "minus"], ["s"], axis=0),
        helper.make_node("Reshape", ["x", "s"], ["y"]),
    ]
    model = model_of(nodes, {"x": (FLOAT, ["a", "b"])}, {"y": FLOAT})
    model.graph.initializer.append(names)
    agrees(model, x=f32(2, 3))
    agrees(model, x=f32(0, 3))
    with pytest.raises(hetnn.InvalidModel, match=r"for sizes with b > 0 or a = 0 alone"):
        hetnn.compile(model)(f32(2, 0))
    nodes[2].attribute.append(helper.make_attribute("allowzero", 1))
    with pytest.raises(hetnn.InvalidModel):
        hetnn.compile(model)(f32(2, 3)[:, :0])


@pytest.mark.parametrize(
    ("node", "places", "rest"),
    [
        (helper.make_node("Gather", ["x", "i"], ["y"], axis=1), [1, 3], {}),
        (helper.make_node("Gather", ["x", "i"], ["y"], axis=1), [-4], {}),
        (helper.make_node("GatherElements", ["x", "i"], ["y"], axis=1), [[0], [3]], {}),
        (helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=1), [[0], [3]], {"u": f32(2, 1)}),
    ],
    ids=["behind", "before", "elements", "scatter"],
)
def test_constant_places_outside_are_told_when_compiling(node: Any, places: Any, rest: dict[str, Array]) -> None:
    ports: dict[str, Port] = {"x": (FLOAT, [2, 3])}
    with pytest.raises(hetnn.InvalidModel, match=r"index -?\d is outside an axis of 3"):
        hetnn.compile(model_of([node], ports, {"y": FLOAT}, i=np.array(places), **rest))


def test_constant_places_along_an_open_axis_are_told_when_running() -> None:
    node = helper.make_node("Gather", ["x", "i"], ["y"])
    exe = hetnn.compile(model_of([node], {"x": (FLOAT, ["n"])}, {"y": FLOAT}, i=np.array([3, -5])))
    x = f32(5)
    np.testing.assert_array_equal(exe(x), x[[3, 0]])
    with pytest.raises(hetnn.InvalidModel, match="index -5 is outside an axis of 4"):
        exe(x[:4])


OF_A_HEIGHT = [
    helper.make_node("Shape", ["x"], ["sizes"], end=1),  # [h]
    helper.make_node("Mod", ["sizes", "two"], ["axis"]),
    helper.make_node("Div", ["sizes", "three"], ["step"]),
]
NUMBERS = {"two": np.array([2]), "three": np.array([3]), "none": np.array([0]), "end": np.array([2**31 - 1])}


@pytest.mark.parametrize(
    ("op", "read", "told"),
    [
        ("Slice", ["x", "none", "end", "none", "step"], {}),
        ("Slice", ["x", "two", "end", "axis"], {}),
        ("ReduceSum", ["x", "axis"], {}),
        ("ReduceLogSumExp", ["x", "axis"], {"keepdims": 0}),
        ("Unsqueeze", ["x", "axis"], {}),
        ("CumSum", ["x", "axis"], {}),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_axes_and_steps_that_open_sizes_say(op: str, read: list[str], told: dict[str, Any]) -> None:
    nodes = [*OF_A_HEIGHT, helper.make_node(op, read, ["y"], **told)]
    model = model_of(nodes, {"x": (FLOAT, ["h", 4])}, {"y": FLOAT}, **NUMBERS)
    for height in (6, 7, 3):
        agrees(model, x=f32(height, 4))


def test_a_place_in_a_sequence_that_an_open_size_says() -> None:
    nodes = [
        *OF_A_HEIGHT,
        helper.make_node("Squeeze", ["axis"], ["place"]),
        helper.make_node("SequenceConstruct", ["x", "other"], ["items"]),
        helper.make_node("SequenceAt", ["items", "place"], ["y"]),
    ]
    model = model_of(nodes, {"x": (FLOAT, ["h", 4])}, {"y": FLOAT}, **NUMBERS, other=f32(2, 4))
    for height in (6, 7):
        agrees(declared(model, ["q", 4]), x=f32(height, 4))


KEPT = {
    "greatest": [helper.make_node("Max", ["m", "zero"], ["k"])],
    "clipped": [helper.make_node("Clip", ["m", "zero", "nine"], ["k"])],
    "distance": [helper.make_node("Abs", ["m"], ["k"])],
    "from behind": [  # as programs that count from both ends have it
        helper.make_node("Less", ["m", "zero"], ["behind"]),
        helper.make_node("Size", ["x"], ["all"]),
        helper.make_node("Add", ["m", "all"], ["after"]),
        helper.make_node("Where", ["behind", "after", "m"], ["k"]),
    ],
}


@pytest.mark.parametrize("kept", KEPT.values(), ids=KEPT)
@pytest.mark.parametrize("use", ["ConstantOfShape", "Range", "Slice"])
def test_integers_below_0_that_become_sizes(kept: list[Any], use: str) -> None:
    read = {"ConstantOfShape": ["row"], "Range": ["zero", "k", "one"], "Slice": ["x", "none", "row"]}[use]
    nodes = [*kept, helper.make_node("Unsqueeze", ["k", "none"], ["row"]), helper.make_node(use, read, ["y"])]
    numbers = {"zero": np.array(0), "one": np.array(1), "nine": np.array(9), "none": np.array([0])}
    ports: dict[str, Port] = {"x": (FLOAT, ["n"]), "m": (INT64, [])}
    model = model_of(nodes, ports, {"y": INT64 if use == "Range" else FLOAT}, **numbers)
    for m in (3, 0, -2):
        agrees(model, x=f32(7), m=np.array(m))


@pytest.mark.parametrize("open_sizes", [False, True])
@pytest.mark.parametrize(("start", "end"), [(-4, -9), (-3, -9), (-9, -6), (-5, 0), (2, -9), (9, -2)])
def test_slices_backwards_from_before_the_first_element(start: int, end: int, open_sizes: bool) -> None:
    """By the standard they begin at the first one, unlike Python's."""
    node = helper.make_node("Slice", ["x", "start", "end", "axis", "step"], ["y"])
    bounds = {"start": np.array([start]), "end": np.array([end]), "axis": np.array([1]), "step": np.array([-1])}
    for size in (0, 1, 2, 3, 5):
        x = f32(2, size)
        shape = ["n", "m"] if open_sizes else [2, size]
        agrees(model_of([node], {"x": (FLOAT, shape)}, {"y": FLOAT}, **bounds), x=x)
        late: dict[str, Port] = {"x": (FLOAT, shape), "start": (INT64, [1]), "end": (INT64, [1])}
        rest = {"axis": bounds["axis"], "step": bounds["step"]}
        agrees(model_of([node], late, {"y": FLOAT}, **rest), x=x, start=bounds["start"], end=bounds["end"])


@pytest.mark.parametrize(
    "counts", [[2, 1, 1, 3, 1], [2, 3, 2, 1, 2, 3], [1, 1, 1, 1, 1, 1, 1, 2], [2, 2, 1, 2, 2, 2, 1, 2]]
)
@pytest.mark.parametrize("open_sizes", [False, True])
def test_values_of_many_axes_are_repeated(counts: list[int], open_sizes: bool) -> None:
    x = f32(*[1 + k % 2 for k in range(len(counts))])
    shape: list[Any] = ["n", "m", *x.shape[2:]] if open_sizes else list(x.shape)
    node = helper.make_node("Tile", ["x", "counts"], ["y"])
    agrees(model_of([node], {"x": (FLOAT, shape)}, {"y": FLOAT}, counts=np.array(counts)), [np.tile(x, counts)], x=x)
