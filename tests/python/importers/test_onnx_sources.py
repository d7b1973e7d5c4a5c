"""Where an ONNX model comes from: a proto, bytes or a path, with weights inside or in files beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import hetnn
from hetnn.cli import main
from importers.onnx_models import ADD, f32, model_of


def test_a_model_is_a_proto_bytes_or_a_path(tmp_path: Path) -> None:
    model, x, y = model_of(ADD), f32(2, 3), f32(3)
    path = tmp_path / "add.onnx"
    onnx.save(model, path)
    for source in (model, model.SerializeToString(), path, str(path)):
        assert np.array_equal(hetnn.compile(source)(x, y), x + y)
    assert np.array_equal(hetnn.compile(model)(y=y, x=x), x + y)


def test_commands_take_onnx(tmp_path: Path) -> None:
    path = tmp_path / "add.onnx"
    model = model_of(ADD)
    model.producer_name = "abcd{e"  # the ninth byte of the file, by which compiled ones are known
    onnx.save(model, path)
    x, y = f32(2, 3), f32(3)
    np.savez(tmp_path / "in.npz", x=x, y=y)
    given, written = str(tmp_path / "in.npz"), str(tmp_path / "out.npz")
    assert main(["run", str(path), "--inputs", given, "--outputs", written]) == 0
    assert np.array_equal(np.load(written)["z"], x + y)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff\xff\xff", "the bytes: no ONNX model"),
        (b"", "the ONNX model has no graph. Export it again"),
    ],
)
def test_what_is_no_model(data: bytes, message: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=message):
        hetnn.compile(data)


def outside_model(location: str, length: int | str = 12) -> onnx.ModelProto:
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", "4"), ("length", str(length))):
        weight.external_data.add(key=key, value=value)
    model = model_of("agraph (float[3] x, float[3] w) => (float[3] y) { y = Mul(x, w) }")
    model.graph.initializer.append(weight)
    return model


def test_weights_lie_in_files_of_the_models_folder(tmp_path: Path) -> None:
    np.arange(4, dtype=np.float32).tofile(tmp_path / "w.bin")
    onnx.save(outside_model("w.bin"), tmp_path / "m.onnx")
    assert hetnn.compile(tmp_path / "m.onnx")(np.full(3, 2, np.float32)).tolist() == [2, 4, 6]


@pytest.mark.parametrize(
    ("location", "length", "message"),
    [
        ("../w.bin", 12, r"'w' lies in '\.\./w\.bin', which must be a file in the model's folder"),
        ("link.bin", 12, r"'w' lies in 'link\.bin', which must be a file in the model's folder"),
        ("/etc/hostname", 12, "which must be a file in the model's folder"),
        ("none.bin", 12, r"'w' lies in 'none\.bin', which must be a file"),
        ("short.bin", 12, "'w' of 12 bytes lies at 4 to 16 of a file of 8 bytes"),
        ("short.bin", 4, "'w' of 12 bytes lies at 4 to 8 of a file of 8 bytes"),
        ("short.bin", "1e3", "'w' cannot be read: invalid literal"),
        ("short.bin", 0, "'w' of 12 bytes lies at 4 to 16 of a file of 8 bytes"),
        ("w" * 5000, 12, "'w' lies in 'www.*', which must be a file in the model's folder"),
        ("circle.bin", 12, "'w' lies in 'circle.bin', which must be a file in the model's folder"),
        ("w\0.bin", 12, "which must be a file in the model's folder"),
        ("", 12, "'w' lies in '', which must be a file"),
        (".", 12, r"'w' lies in '\.', which must be a file"),
    ],
)
def test_weights_that_lie_elsewhere(tmp_path: Path, location: str, length: int | str, message: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for file in (tmp_path / "w.bin", folder / "short.bin"):
        np.arange(2, dtype=np.float32).tofile(file)
    (folder / "link.bin").symlink_to(tmp_path / "w.bin")
    (folder / "circle.bin").symlink_to(folder / "circle.bin")
    onnx.save(outside_model(location, length), folder / "m.onnx")
    with pytest.raises(hetnn.InvalidModel, match=message):
        hetnn.compile(folder / "m.onnx")


@pytest.mark.parametrize("location", ["w.bin", "./w.bin", "deep/down/w.bin", "deep/../w.bin", "gewicht_入.bin"])
def test_weights_of_no_length_reach_as_far_as_their_shape(tmp_path: Path, location: str) -> None:
    """A length of 0 is none, as ONNX Runtime has it; what follows in the file is other tensors'."""
    (tmp_path / "deep" / "down").mkdir(parents=True)
    np.arange(9, dtype=np.float32).tofile(tmp_path / location)
    onnx.save(outside_model(location, 0), tmp_path / "m.onnx")
    assert hetnn.compile(tmp_path / "m.onnx")(np.full(3, 2, np.float32)).tolist() == [2, 4, 6]


def test_weights_beside_what_a_linked_model_is(tmp_path: Path) -> None:
    """As caches of models have them: names are links to files without one, in a folder of their own."""
    kept, named = tmp_path / "blobs", tmp_path / "named"
    for folder in (kept, named):
        folder.mkdir()
    np.arange(4, dtype=np.float32).tofile(kept / "1")
    onnx.save(outside_model("w.bin"), kept / "2")
    for name, blob in (("w.bin", "1"), ("m.onnx", "2")):
        (named / name).symlink_to(kept / blob)
    assert hetnn.compile(named / "m.onnx")(np.full(3, 2, np.float32)).tolist() == [2, 4, 6]
    (named / "w.bin").unlink()
    (named / "w.bin").symlink_to(tmp_path / "out.bin")
    np.arange(4, dtype=np.float32).tofile(tmp_path / "out.bin")
    with pytest.raises(hetnn.InvalidModel, match=r"'w' lies in 'w\.bin', which must be a file in the model's folder"):
        hetnn.compile(named / "m.onnx")


def test_weights_that_lie_in_two_places(tmp_path: Path) -> None:
    model = outside_model("w.bin")
    model.graph.initializer[0].external_data.add(key="location", value="v.bin")
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(hetnn.InvalidModel, match="'w' says twice where it lies"):
        hetnn.compile(tmp_path / "m.onnx")


def test_bytes_have_no_folder() -> None:
    with pytest.raises(hetnn.InvalidModel, match=r"the model was given without a folder\. Give the path of the model"):
        hetnn.compile(outside_model("w.bin").SerializeToString())
