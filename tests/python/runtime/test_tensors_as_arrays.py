"""Tensors of torch are read where they lie, whatever they are, and refused where they are no plain memory."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch

from hetnn import _runtime
from hetnn.arrays import as_arrays
from hetnn.element_types import NUMPY, TYPES, array_at_once, array_of, numpy_type
from hetnn.errors import InvalidModel

DTYPES = [
    (getattr(torch, row.torch), numpy_type(row.name))
    for row in TYPES
    if row.torch and hasattr(torch, row.torch) and (row.name in NUMPY or row.bits >= 8)
]


def as_array(tensor: torch.Tensor) -> np.ndarray:
    return as_arrays([tensor], "input {}".format)[0]


@pytest.mark.parametrize(("dtype", "wanted"), DTYPES, ids=str)
def test_of_every_type_the_memory_is_the_tensors(dtype: torch.dtype, wanted: np.dtype) -> None:
    for shape in ((2, 3, 4), (5,), (), (0, 3)):
        tensor = torch.zeros(shape, dtype=torch.float32).to(dtype)
        array = array_at_once(tensor)
        assert array is not None
        assert (array.dtype, array.shape) == (wanted, shape)
        if array.size:
            assert array.ctypes.data == tensor.data_ptr()
            tensor.copy_(torch.ones(shape).to(dtype))
            assert array.tobytes() == array_of(tensor).tobytes() != bytes(array.nbytes)


def test_plain_tensors_are_not_asked_for_their_own_array() -> None:
    tensor = torch.arange(6.0).reshape(2, 3)
    array = _runtime.array_over(tensor, np.dtype("float32"))
    assert array.tolist() == tensor.tolist()
    for other in (
        tensor.t(),
        tensor[:, :2],
        torch.empty(3, device="meta"),
        tensor.to_sparse(),
        torch.ones(2, requires_grad=True),
    ):
        assert _runtime.array_over(other, np.dtype("float32")) is None


def test_what_is_more_than_its_memory_has_its_values() -> None:
    tensor = torch.tensor([1 + 2j, 3 - 4j])
    assert tensor.conj().imag.is_neg()
    assert as_array(tensor.conj().imag).tolist() == [-2, 4]
    assert as_array(tensor.conj()).tolist() == [1 - 2j, 3 + 4j]
    assert as_array(torch.arange(6).reshape(2, 3).t()).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert as_array(torch.ones(2, requires_grad=True)).tolist() == [1, 1]
    for odd in (torch.empty(3, device="meta"), torch.eye(3).to_sparse()):
        with pytest.raises(InvalidModel, match="input 0"):
            as_array(odd)


def test_an_array_keeps_its_tensors_memory() -> None:
    array = as_array(torch.full((1 << 16,), 7.0))
    gc.collect()
    other = torch.full((1 << 16,), 8.0)
    assert (array == 7).all()
    assert (other == 8).all()
