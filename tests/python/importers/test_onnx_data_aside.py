"""Files of ONNX models whose large data are read one by one, beside the same models read whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import hetnn
from hetnn.errors import InvalidModel
from hetnn.importers.onnx import data_aside
from hetnn.importers.onnx.data_aside import LARGE_BYTES, read_aside
from hetnn.importers.onnx.graph import import_onnx
from hetnn.importers.onnx.model import Weights
from hetnn.importers.onnx.opened import import_opened

RNG = np.random.default_rng(5)
MOST = 1 << 31


def info(name: str, *shape: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def large(name: str, *shape: int) -> TensorProto:
    return numpy_helper.from_array(RNG.standard_normal(shape).astype(np.float32), name)


def model_of_all_places() -> onnx.ModelProto:
    """Large tensors as an initializer, in a constant, in a body, and in a function."""
    body = helper.make_graph([helper.make_node("Add", ["h", "inner"], ["z"])], "body", [], [info("z", 64, 512)])
    body.initializer.append(large("inner", 64, 512))
    other = helper.make_graph([helper.make_node("Neg", ["h"], ["n"])], "other", [], [info("n", 64, 512)])
    scaled = helper.make_function(
        "own",
        "Scaled",
        ["a"],
        ["b"],
        [
            helper.make_node("Constant", [], ["c"], value=large("in_function", 64, 512)),
            helper.make_node("Mul", ["a", "c"], ["b"]),
        ],
        [helper.make_opsetid("", 18)],
    )
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Constant", [], ["k"], value=large("k", 64, 512)),
        helper.make_node("Add", ["m", "k"], ["s"]),
        helper.make_node("Scaled", ["s"], ["h"], domain="own"),
        helper.make_node("If", ["when"], ["y"], then_branch=body, else_branch=other),
    ]
    when = helper.make_tensor_value_info("when", TensorProto.BOOL, ())
    graph = helper.make_graph(nodes, "g", [info("x", 64, 48), when], [info("y", 64, 512)], [large("w", 48, 512)])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=[scaled], ir_version=9)


def tensors_of(message: Any) -> list[TensorProto]:
    found = []
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        for part in value if not hasattr(value, "ListFields") else [value]:
            found += [part] if isinstance(part, TensorProto) else tensors_of(part)
    return found


def test_every_place_of_a_tensor_is_read_from_the_file(tmp_path: Path) -> None:
    model, path = model_of_all_places(), tmp_path / "große.onnx"
    path.write_bytes(model.SerializeToString())
    read = read_aside(path, MOST)
    assert read is not None
    assert len(read) < LARGE_BYTES < path.stat().st_size
    aside, weights = onnx.ModelProto.FromString(read), Weights(path)
    pairs = list(zip(tensors_of(model), tensors_of(aside), strict=True))
    assert [tensor.name for tensor, _ in pairs] == ["k", "inner", "w", "in_function"]
    for whole, apart in pairs:
        assert apart.data_location == TensorProto.EXTERNAL
        assert not apart.raw_data
        np.testing.assert_array_equal(weights.array(apart), numpy_helper.to_array(whole))
        assert weights.array(apart).flags.aligned
        apart.ClearField("data_location")
        del apart.external_data[:]
        apart.raw_data = whole.raw_data
    assert aside == model
    x = RNG.standard_normal((64, 48)).astype(np.float32)
    of_file, of_bytes = hetnn.compile(path), hetnn.compile(model.SerializeToString())
    for when in (True, False):
        np.testing.assert_array_equal(of_file(x, np.array(when)), of_bytes(x, np.array(when)))


@pytest.mark.parametrize("external", [False, True])
def test_a_model_that_is_trained_reads_its_file_too(tmp_path: Path, external: bool) -> None:
    nodes = [
        helper.make_node("Constant", [], ["c"], value=large("c", 128, 160)),
        helper.make_node("MatMul", ["x", "c"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [info("x", 2, 128)], [info("y", 2, 160)], [large("b", 160)])
    model, path = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), tmp_path / "m.onnx"
    whole = import_opened(model, None)
    onnx.save(model, path, save_as_external_data=external, size_threshold=0, convert_attribute=True)
    opened = import_opened(path, None)
    assert list(opened.values) == list(whole.values) == ["b"]
    for mine, its in ((opened.imported, whole.imported), (opened.evaluated(), whole.evaluated())):
        constants, expected = mine.graph.constants(), its.graph.constants()
        assert len(expected) == 1
        np.testing.assert_equal(constants, expected)


def test_data_of_every_kind_and_size_stay_what_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_aside, "LARGE_BYTES", 1)
    path, graph = tmp_path / "m.onnx", helper.make_graph([], "g", [], [])
    for kind in (TensorProto.FLOAT, TensorProto.INT64, TensorProto.BFLOAT16, TensorProto.INT4, TensorProto.COMPLEX64):
        for elements in (1, 2, 7, 40):
            dtype = helper.tensor_dtype_to_np_dtype(kind)
            values = RNG.integers(-8, 8, elements).astype(np.int8).astype(dtype)
            graph.initializer.append(numpy_helper.from_array(values, f"{kind}.{elements}"))
    graph.initializer.append(helper.make_tensor("listed", TensorProto.FLOAT, [3], [1, 2, 3]))
    graph.initializer.append(helper.make_tensor("texts", TensorProto.STRING, [2], [b"a", b"b"]))
    model = helper.make_model(graph)
    path.write_bytes(model.SerializeToString())
    read = read_aside(path, MOST)
    assert read is not None
    aside, weights = onnx.ModelProto.FromString(read), Weights(path)
    for whole, apart in zip(model.graph.initializer, aside.graph.initializer, strict=True):
        assert (apart.data_location == TensorProto.EXTERNAL) == bool(whole.raw_data)
        if whole.data_type != TensorProto.STRING:
            np.testing.assert_array_equal(weights.array(apart), numpy_helper.to_array(whole))


def test_files_cut_or_altered_anywhere_say_what_they_say_when_read_whole(tmp_path: Path) -> None:
    model = model_of_all_places()
    whole, path = model.SerializeToString(), tmp_path / "cut.onnx"
    heads = [whole.index(tensor.raw_data[:32]) for tensor in tensors_of(model)]
    for at in [len(whole) - 1, LARGE_BYTES + 1, *(head + shift for head in heads for shift in range(-14, 2))]:
        altered = bytearray(whole)
        altered[at] ^= 0x55
        for data in (whole[:at], bytes(altered)):
            path.write_bytes(data)
            said = []
            for source in (path, data):
                try:
                    hetnn.compile(source)
                    said.append("nothing")
                except hetnn.Error as error:
                    said.append(type(error).__name__)
            assert said[0] == said[1], (at, said)


def test_what_the_model_keeps_elsewhere_or_where_it_is_small_is_left(tmp_path: Path) -> None:
    model, path = model_of_all_places(), tmp_path / "m.onnx"
    whole = model.SerializeToString()
    onnx.save(model, path, save_as_external_data=True, location="m.bin", convert_attribute=True)
    assert read_aside(path, MOST) is None
    x, when = RNG.standard_normal((64, 48)).astype(np.float32), np.array(True)
    np.testing.assert_array_equal(hetnn.compile(path)(x, when), hetnn.compile(whole)(x, when))
    path.write_bytes(helper.make_model(helper.make_graph([], "g", [], [], [large("small", 8)])).SerializeToString())
    assert read_aside(path, MOST) is None
    path.write_bytes(model_of_all_places().SerializeToString())
    assert read_aside(path, path.stat().st_size - 1) is None


def test_data_beside_the_model_that_lie_at_odd_places_are_aligned(tmp_path: Path) -> None:
    values = RNG.standard_normal((64, 512)).astype(np.float32)
    (tmp_path / "data").write_bytes(b"123" + values.tobytes())
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=values.shape, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "data"), ("offset", "3"), ("length", str(values.nbytes))):
        tensor.external_data.add(key=key, value=value)
    array = Weights(tmp_path / "m.onnx").array(tensor)
    assert array.flags.aligned
    np.testing.assert_array_equal(array, values)


def test_a_file_that_changed_meanwhile_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(model_of_all_places().SerializeToString())
    read = read_aside(path, MOST)
    assert read is not None
    tensor = onnx.ModelProto.FromString(read).graph.initializer[0]
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(InvalidModel, match="of a file of 1000 bytes"):
        Weights(path).array(tensor)


def test_a_model_read_aside_is_imported_again_with_its_file(tmp_path: Path) -> None:
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 512]) for name in "ab"]
    nodes = [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("MatMul", ["sum", "w"], ["y"])]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 64])
    graph = helper.make_graph(nodes, "g", inputs, [output], [large("w", 512, 64)])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph), path)
    read = read_aside(path, MOST)
    assert read is not None
    imported = import_onnx(onnx.ModelProto.FromString(read), path=path)
    assert imported.apart is not None
    assert len(imported.graph.symbols) == 1
    assert len(imported.apart().graph.symbols) == 2
