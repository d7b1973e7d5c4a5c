"""hetnn behind ONNX' own interface for backends, and on the models of the standard's own tests."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.backend.test.loader import load_model_tests

import hetnn
from hetnn import OnnxBackend
from importers.onnx_models import ADD, f32, model_of


def test_the_backend_runs_models_and_nodes() -> None:
    x, y = f32(2, 3), f32(3)
    rep = OnnxBackend.prepare(model_of(ADD), target="cpu")
    assert np.array_equal(rep.run([x, y]).z, x + y)
    assert np.array_equal(rep.run({"y": y, "x": x})[0], x + y)
    (z,) = OnnxBackend.run_node(helper.make_node("Sub", ["x", "y"], ["z"]), [x, y])
    assert np.array_equal(z, x - y)
    assert not OnnxBackend.supports_device("CUDA")
    with pytest.raises(hetnn.InvalidModel, match="the device must be CPU; got 'CUDA'"):
        OnnxBackend.prepare(model_of(ADD), device="CUDA")


def stored(file: Path, kind: str) -> Any:
    """What a file of the standard's tests holds: an array, or a list of them."""
    if kind == "sequence_type":
        sequence = onnx.SequenceProto()
        sequence.ParseFromString(file.read_bytes())
        return [np.asarray(item) for item in numpy_helper.to_list(sequence)]
    if kind == "optional_type":
        optional = onnx.OptionalProto()
        optional.ParseFromString(file.read_bytes())
        return numpy_helper.to_optional(optional)
    return numpy_helper.to_array(onnx.load_tensor(file))


def compare(mine: Any, theirs: Any, case: Any) -> None:
    if isinstance(theirs, list):
        assert isinstance(mine, list)
        for x, y in zip(mine, theirs, strict=True):
            compare(x, y, case)
        return
    assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
    if mine.dtype == object:
        assert mine.tolist() == theirs.tolist()
        return
    if "bernoulli" in case.name:  # any draw is right: the standard says so, and that its own is an example
        assert set(mine.tolist()) <= {0, 1}
        return
    if mine.dtype.kind == "V":  # of ml_dtypes
        mine, theirs = mine.astype(np.float64), theirs.astype(np.float64)
    np.testing.assert_allclose(mine, theirs, rtol=case.rtol, atol=case.atol)


@pytest.mark.slow
def test_no_model_of_the_standards_own_tests_is_computed_wrongly() -> None:
    """Every one compiles and gives the results that come with it."""
    right, wrong, refused = 0, [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    for case in cases:
        model = onnx.load(Path(case.model_dir) / "model.onnx")
        try:
            exe = hetnn.compile(model)
        except hetnn.Error as error:
            refused.append(f"{case.name}: {error}")
            continue
        kinds = {
            "input": [value.type.WhichOneof("value") for value in model.graph.input],
            "output": [value.type.WhichOneof("value") for value in model.graph.output],
        }
        for folder in sorted(Path(case.model_dir).glob("test_data_set_*")):
            inputs, outputs = (
                [
                    stored(file, kinds[way][int(file.stem.partition("_")[2])])
                    for file in sorted(folder.glob(f"{way}_*.pb"), key=lambda file: int(file.stem.partition("_")[2]))
                ]
                for way in ("input", "output")
            )
            try:
                results = exe(*inputs)
                many = isinstance(results, tuple) or (isinstance(results, list) and kinds["output"][0] == "tensor_type")
                for mine, theirs in zip(results if many else [results], outputs, strict=True):
                    compare(mine, theirs, case)
                right += 1
            except hetnn.Error as error:
                refused.append(f"{case.name}: {error}")
            except AssertionError as error:
                wrong.append(f"{case.name}: {error}")
    assert wrong == []
    assert refused == []
    assert right > 1680
