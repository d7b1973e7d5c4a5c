"""Reshapes and cuts that move nothing are views, of inputs, values and outputs; outputs are the caller's own."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch

import hetnn
from functions import Function


def compiled(
    function: Any, *inputs: torch.Tensor, threads: int = 1
) -> tuple[hetnn.Executable, list[np.ndarray[Any, Any]]]:
    executable = hetnn.compile(Function(function), args=inputs, threads=threads)
    return executable, [x.numpy() for x in inputs]


def kernels(executable: hetnn.Executable, arrays: list[np.ndarray[Any, Any]]) -> list[str]:
    return [entry["kernel"] for entry in executable.profile(*arrays)]


@pytest.mark.parametrize("threads", [1, 2])
def test_reshapes_between_kernels_move_nothing(threads: int) -> None:
    x = torch.randn(64, 3, 200)
    executable, arrays = compiled(
        lambda x: torch.tanh(x.reshape(600, 64)).cumsum(0).reshape(8, 4800), x, threads=threads
    )
    torch.testing.assert_close(
        torch.from_numpy(executable(*arrays)), x.reshape(600, 64).tanh().cumsum(0).reshape(8, 4800)
    )
    assert kernels(executable, arrays).count("view") == 2


def test_a_part_of_a_value_lies_in_it() -> None:
    x = torch.randn(6, 5000)
    executable, arrays = compiled(lambda x: torch.sort(torch.tanh(x)[1:3].reshape(100, 100)).values, x)
    np.testing.assert_allclose(executable(*arrays), np.sort(np.tanh(x[1:3].numpy()).reshape(100, 100)), rtol=1e-6)
    assert kernels(executable, arrays)[1:3] == ["view", "view"]


def test_outputs_are_memory_of_their_own() -> None:
    x = torch.randn(4, 6)
    executable, arrays = compiled(lambda x: (x.reshape(24), x.reshape(2, 12), x.tanh().reshape(24), x.tanh()[1:2]), x)
    outputs = executable.run(arrays)
    for k, output in enumerate(outputs):
        assert not any(np.shares_memory(output, other) for other in [*arrays, *outputs[:k]])
    np.testing.assert_array_equal(outputs[1], x.numpy().reshape(2, 12))
    np.testing.assert_allclose(outputs[3], np.tanh(x.numpy()[1:2]), rtol=1e-6)
    # The next run writes other arrays.
    kept = [output.copy() for output in outputs]
    executable.run([arrays[0] * 2])
    for output, before in zip(outputs, kept, strict=True):
        np.testing.assert_array_equal(output, before)


def test_a_view_lives_as_long_as_what_lies_in_it_is_read() -> None:
    """The long way round: values of the same size between the view and its last reader."""

    def function(x: torch.Tensor) -> torch.Tensor:
        first = x.exp()
        view = first.reshape(40, 100)
        y = x
        for _ in range(6):
            y = y.softmax(0)
        return view.cumsum(1) + y.reshape(40, 100)

    x = torch.randn(100, 40)
    executable, arrays = compiled(function, x)
    torch.testing.assert_close(torch.from_numpy(executable(*arrays)), function(x))
    copy = pickle.loads(pickle.dumps(executable))
    np.testing.assert_array_equal(copy(*arrays), executable(*arrays))
