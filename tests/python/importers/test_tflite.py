"""TFLite files as a whole: names, layouts, and what is wrong with damaged or foreign ones."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tflite

import hetnn
from hetnn.cli import main
from hetnn.importers import import_model
from importers.tflite_files import Graph, Told, constant, model_bytes, one, random_inputs, reference

RNG = np.random.default_rng(3)
CONV = {"": "Conv2DOptions", "Padding": 0, "StrideH": 1, "StrideW": 1, "FusedActivationFunction": 1}
POOL = {"": "Pool2DOptions", "Padding": 0, "StrideH": 2, "StrideW": 2, "FilterWidth": 2, "FilterHeight": 2}


def chain() -> Graph:
    """Convolutions, an addition, a join, pools and a resize between the file's input and output."""
    graph = Graph()

    def weights(*shape: int) -> int:
        return graph.tensor(constant(RNG.standard_normal(shape).astype(np.float32)))

    x = graph.input(Told([1, 8, 8, 3], name="image:0"))
    any_ = Told([1])
    (a,) = graph.op("CONV_2D", [x, weights(4, 3, 3, 3), weights(4)], [any_], CONV)
    (b,) = graph.op("ADD", [a, weights(4)], [any_], {"": "AddOptions"})
    (c,) = graph.op("CONCATENATION", [a, b], [any_], {"": "ConcatenationOptions", "Axis": 3})
    (c,) = graph.op("PAD", [c, graph.tensor(constant([[0, 0], [1, 1], [0, 2], [0, 0]], "i32"))], [any_])
    (d,) = graph.op("MAX_POOL_2D", [c], [any_], POOL)
    size = graph.tensor(constant([10, 10], "i32"))
    (e,) = graph.op("RESIZE_BILINEAR", [d, size], [any_], {"": "ResizeBilinearOptions", "HalfPixelCenters": True})
    (f,) = graph.op("CONV_2D", [e, weights(5, 1, 1, 8), weights(5)], [Told([1], name="scores")], CONV)
    graph.outputs = [f]
    return graph


def test_a_chain_of_images_is_permuted_at_its_ends_alone() -> None:
    data = model_bytes([chain()])
    assert import_model(data).graph.print().count(" = permute(") == 2
    inputs = random_inputs(data)
    (wanted,) = reference(data, [inputs])
    executable = hetnn.compile(data)
    assert [port.name for port in executable.inputs] == ["image:0"]
    assert [port.name for port in executable.outputs] == ["scores"]
    np.testing.assert_allclose(executable(inputs[0]), wanted[0], rtol=1e-5, atol=1e-5)


def test_names_are_those_of_the_signature() -> None:
    graph = chain()
    signature = {"key": "serving_default", "inputs": {"picture": 0}, "outputs": {"classes": graph.outputs[0]}}
    executable = hetnn.compile(model_bytes([graph], [signature]))
    assert [port.name for port in executable.inputs] == ["picture"]
    assert [port.name for port in executable.outputs] == ["classes"]
    assert executable(picture=np.zeros((1, 8, 8, 3), np.float32)).shape == (1, 10, 10, 5)


def test_weights_of_f16_are_f32_behind_a_dequantize() -> None:
    graph = Graph()
    x = graph.input(Told([2, 3]))
    half = graph.tensor(constant(RNG.standard_normal((4, 3)).astype(np.float16)))
    (whole,) = graph.op("DEQUANTIZE", [half], [Told([4, 3])])
    graph.outputs = graph.op("FULLY_CONNECTED", [x, whole, -1], [Told([1])], {"": "FullyConnectedOptions"})
    data = model_bytes([graph])
    inputs = random_inputs(data)
    assert "linear(" in import_model(data).graph.print()
    np.testing.assert_allclose(hetnn.compile(data)(*inputs), reference(data, [inputs])[0][0], rtol=1e-5)


def test_shapes_are_computed_when_importing() -> None:
    graph = Graph()
    x = graph.input(Told([2, 3, 4]))
    numbers = [graph.tensor(constant([k], "i32")) for k in (0, 1)]
    (shape,) = graph.op("SHAPE", [x], [Told([1], "i32")], {"": "ShapeOptions", "OutType": 2})
    masks = {"": "StridedSliceOptions", "ShrinkAxisMask": 1}
    (first,) = graph.op("STRIDED_SLICE", [shape, numbers[0], numbers[1], numbers[1]], [Told([], "i32")], masks)
    rest = graph.tensor(constant(np.int32(-1)))
    (wanted,) = graph.op("PACK", [first, rest], [Told([1], "i32")], {"": "PackOptions", "ValuesCount": 2})
    graph.outputs = graph.op("RESHAPE", [x, wanted], [Told([1])])
    assert hetnn.compile(model_bytes([graph]))(np.zeros((2, 3, 4), np.float32)).shape == (2, 12)


def flattened() -> bytes:
    """Rows of an input of an open number of rows, as a shape that is computed from its own: [n,2,3] as [n,6]."""
    graph = Graph()
    x = graph.input(Told([1, 2, 3], name="x", signature=[-1, 2, 3]))
    numbers = [graph.tensor(constant([k], "i32")) for k in (0, 1)]
    (shape,) = graph.op("SHAPE", [x], [Told([3], "i32")], {"": "ShapeOptions", "OutType": 2})
    masks = {"": "StridedSliceOptions", "ShrinkAxisMask": 1}
    (rows,) = graph.op("STRIDED_SLICE", [shape, numbers[0], numbers[1], numbers[1]], [Told([], "i32")], masks)
    six = graph.tensor(constant(np.int32(6)))
    (wanted,) = graph.op("PACK", [rows, six], [Told([2], "i32")], {"": "PackOptions", "ValuesCount": 2})
    (flat,) = graph.op("RESHAPE", [x, wanted], [Told([1, 6])])
    weights = graph.tensor(constant(RNG.standard_normal((4, 6)).astype(np.float32)))
    (y,) = graph.op("FULLY_CONNECTED", [flat, weights, -1], [Told([1, 4])], {"": "FullyConnectedOptions"})
    graph.outputs = [y, shape]
    return model_bytes([graph])


def test_open_sizes_are_symbols() -> None:
    executable = hetnn.compile(flattened())
    for rows in (1, 5):
        y, shape = executable(np.ones((rows, 2, 3), np.float32))
        assert y.shape == (rows, 4)
        assert shape.tolist() == [rows, 2, 3]


def test_open_sizes_may_be_fixed() -> None:
    executable = hetnn.compile(flattened(), fix={"x_0": 3})
    assert list(executable.inputs[0].shape) == [3, 2, 3]
    with pytest.raises(hetnn.InvalidModel, match="fix names y_0; the sizes that the file leaves open are x_0"):
        hetnn.compile(flattened(), fix={"y_0": 3})


def test_the_command_line_takes_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(model_bytes([chain()]))
    assert main(["compile", str(path), "-o", str(tmp_path / "model.hetnn")]) == 0
    assert main(["plan", str(path)]) == 0
    assert "Traceback" not in capsys.readouterr().err
    assert hetnn.load(tmp_path / "model.hetnn")(np.zeros((1, 8, 8, 3), np.float32)).shape == (1, 10, 10, 5)


def test_torch_and_onnx_are_not_imported(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(model_bytes([chain()]))
    code = f"import sys, hetnn; hetnn.compile({str(path)!r}); print('torch' in sys.modules, 'onnx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


# What hetnn does not take, or is no model.


def test_all_operators_that_are_missing_are_named_with_their_places() -> None:
    graph = Graph()
    x = graph.input(Told([2, 3]))
    (a,) = graph.op("MyOwnOperator", [x], [Told([2, 3], name="mine")])
    (b,) = graph.op("LSH_PROJECTION", [x, x], [Told([2, 3], name="hashed")])
    (c,) = graph.op("ADD", [a, b], [Told([2, 3])], {"": "AddOptions"})
    graph.outputs = [c]
    with pytest.raises(hetnn.Unsupported) as raised:
        import_model(model_bytes([graph]))
    assert "CUSTOM MyOwnOperator (1 time) at mine" in str(raised.value)
    assert "LSH_PROJECTION (1 time) at hashed" in str(raised.value)
    assert "ADD" not in str(raised.value)


def test_an_operator_is_named_by_its_result() -> None:
    data = one("RESHAPE", [Told([3, 4]), constant([5, 5], "i32")], [Told([1], name="square")])
    with pytest.raises(hetnn.InvalidModel, match=r"the operator 'square': RESHAPE"):
        import_model(data)


def test_what_nothing_gives_is_named() -> None:
    graph = Graph()
    x = graph.input(Told([3]))
    lost = graph.tensor(Told([3], name="lost"))
    graph.outputs = graph.op("ADD", [x, lost], [Told([3])], {"": "AddOptions"})
    with pytest.raises(hetnn.InvalidModel, match="the tensor 'lost' is read, but nothing gives it before"):
        import_model(model_bytes([graph]))


@pytest.mark.parametrize("place", [-2, 99])
def test_operands_that_are_no_tensors(place: int) -> None:
    graph = Graph()
    x = graph.input(Told([3]))
    graph.outputs = graph.op("ADD", [x, place], [Told([3])], {"": "AddOptions"})
    with pytest.raises(hetnn.InvalidModel, match=f"inputs name the tensor {place}, of which there are 2"):
        import_model(model_bytes([graph]))


def test_data_must_fill_its_shape() -> None:
    data = one("ADD", [Told([3]), Told([3], data=bytes(8), name="short")], [Told([3])], {"": "AddOptions"})
    with pytest.raises(hetnn.InvalidModel, match=r"the tensor 'short' of f32\[3\] takes 12 bytes; its buffer has 8"):
        import_model(data)


@pytest.mark.parametrize(
    ("offset", "size"),
    [(1 << 31, 12), (4, 1 << 31), (1 << 40, 1 << 40), ((1 << 64) - 4, 12), (8, (1 << 64) - 8), ((1 << 64) - 1,) * 2],
)
def test_data_of_gigabytes_that_are_not_there(offset: int, size: int) -> None:
    """Files above 2 GiB have their constants behind the tables, at offsets of 64 bits."""
    data = one("ADD", [Told([3]), Told([3], data=(offset, size), name="far")], [Told([3])], {"": "AddOptions"})
    with pytest.raises(hetnn.InvalidModel, match=rf"the tensor 'far' lies at {offset} to {offset + size} of a file of"):
        import_model(data)


def test_data_behind_the_tables() -> None:
    def file(offset: int) -> bytes:
        return one("ADD", [Told([3]), Told([3], data=(offset, 12))], [Told([3])], {"": "AddOptions"})

    there = len(file(1 << 20))
    data = file(there) + np.array([1, 2, 3], np.float32).tobytes()
    np.testing.assert_array_equal(hetnn.compile(data)(np.ones(3, np.float32)), [2, 3, 4])


@pytest.mark.parametrize("number", [210, 999, 1 << 20, (1 << 31) - 1])
def test_builtin_operators_that_no_schema_has(number: int) -> None:
    data = bytearray(one("ABS", [Told([3])], [Told([3], name="y")]))
    code = tflite.Model.GetRootAs(data, 0).OperatorCodes(0)
    struct.pack_into("<i", data, code._tab.Pos + code._tab.Offset(10), number)
    with pytest.raises(hetnn.Unsupported, match=f"BUILTIN {number} .*y"):
        import_model(bytes(data))


@pytest.mark.parametrize("step", range(7))
def test_a_file_that_is_cut_is_refused(step: int) -> None:
    data = model_bytes([chain()])
    with pytest.raises(hetnn.InvalidModel):
        import_model(data[: len(data) * step // 7])
