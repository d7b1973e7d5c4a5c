"""The table of element types says what each format calls them, and the fronts read just those."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
import tflite
import torch

from hetnn import _runtime
from hetnn.element_types import TYPES, array_at_once, array_of, numpy_type, tensor_of
from hetnn.importers.onnx import model as onnx_model
from hetnn.importers.tflite import model as tflite_model
from hetnn.importers.torch.rules import DTYPES as OF_TORCH


@pytest.mark.parametrize("row", TYPES, ids=lambda row: row.name)
def test_names_are_those_of_types_of_as_many_bits(row: _runtime.ElementType) -> None:
    array = np.dtype(numpy_type(row.name))
    assert array.name == row.numpy
    assert array.itemsize == -(-row.bits // 8)
    if row.torch:
        of_torch = getattr(torch, row.torch)
        assert OF_TORCH[of_torch] == row.name
        assert of_torch.itemsize == array.itemsize
        zeros = np.zeros(3, array)
        assert tensor_of(zeros).dtype == of_torch
        assert array_of(torch.zeros(3, dtype=of_torch)).dtype == array
    number = onnx.TensorProto.DataType.Value(row.onnx)
    assert onnx_model.DTYPES[number] == row.name
    assert onnx.helper.tensor_dtype_to_np_dtype(number) == array
    if row.tflite:
        assert tflite_model.DTYPES[getattr(tflite.TensorType, row.tflite)] == row.name


def test_nothing_else_is_read_as_an_element_type() -> None:
    names = {row.name for row in TYPES}
    assert set(OF_TORCH.values()) <= names
    assert set(onnx_model.DTYPES.values()) == names
    others = {name for name in tflite_model.DTYPES.values() if name not in names}
    assert others == {"STRING", "COMPLEX64", "COMPLEX128", "RESOURCE", "VARIANT"}


@pytest.mark.parametrize("row", [row for row in TYPES if row.torch], ids=lambda row: row.name)
def test_a_tensor_is_its_memory_at_once(row: _runtime.ElementType) -> None:
    tensor = torch.zeros(4, dtype=getattr(torch, row.torch))
    array = array_at_once(tensor)
    assert array is not None
    assert array.dtype == np.dtype(numpy_type(row.name))
    array.view(np.uint8)[:] = 1
    assert tensor.view(torch.uint8).ne(0).all()


@pytest.mark.filterwarnings("ignore")  # of torch, that sparse and nested tensors are new
@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.requires_grad_(),
        lambda x: x.to("meta"),
        lambda x: x.to_sparse(),
        lambda x: x.to(torch.complex64).conj(),
        lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
        lambda x: torch.nested.nested_tensor([x, x]),
    ],
)
def test_no_other_tensor_is(make: Callable[[torch.Tensor], torch.Tensor]) -> None:
    assert array_at_once(make(torch.ones(4))) is None
