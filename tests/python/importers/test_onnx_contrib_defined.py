"""Operators that ONNX Runtime has for accelerators alone, beside what their definitions say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import hetnn
from importers.onnx_runtime_nodes import Array, Fixed, Node, f32, restart, same, u8

restart()


def sigmoid(x: Array) -> Array:
    y: Array = 1 / (1 + np.exp(-x))
    return y


def gelu(x: Array, approximate: str = "none") -> Array:
    return torch.nn.functional.gelu(torch.from_numpy(x), approximate=approximate).numpy()


def grouped(x: Array, groups: int, gamma: Array, beta: Array) -> Array:
    """Of images whose channels come first."""
    tensors = (torch.from_numpy(value) for value in (gamma, beta))
    return torch.nn.functional.group_norm(torch.from_numpy(x), groups, *tensors, 1e-5).numpy()


def first(x: Array) -> Array:
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2))


def last(x: Array) -> Array:
    return x.transpose(0, 2, 3, 1)


def convolved(x: Array, weight: Array) -> Array:
    return last(torch.nn.functional.conv2d(torch.from_numpy(first(x)), torch.from_numpy(weight)).numpy())


A, BB, ROW, PICTURE = f32(2, 3, 4), f32(2, 3, 4), f32(4), f32(2, 5, 6, 4)
GAMMA, BETA, KERNEL = f32(4), f32(4), f32(3, 4, 3, 3)
BYTES, SQUARE, ONES = u8(3, 4), f32(4, 4), np.ones((2, 4), np.float32)
NORMAL: dict[str, Any] = {"groups": 2, "activation": 1}
NORMED = grouped(first(PICTURE), 2, GAMMA, BETA)
COMPLEX = (A[..., :2] + 1j * A[..., 2:]) * (BB[..., :2] - 1j * BB[..., 2:])
# What accelerators alone have: the node, and what its definition says of these inputs.
DEFINED = [
    (Node("BiasDropout", A, ROW, BB), [A + ROW + BB]),
    (Node("BiasAdd", A, ROW, BB), [A + ROW + BB]),
    (Node("BiasSoftmax", A, BB, axis=2, is_inner_broadcast=1), [torch.from_numpy(A + BB).softmax(2).numpy()]),
    (Node("BiasSplitGelu", A, ROW), [(A + ROW)[..., :2] * gelu((A + ROW)[..., 2:])]),
    (
        Node("GemmFastGelu", A, SQUARE, ROW),
        [torch.nn.functional.gelu(torch.from_numpy(A @ SQUARE + ROW), approximate="tanh").numpy()],
    ),
    (
        Node("FusedMatMulActivation", A, SQUARE, activation="Relu", alpha=0.5, transB=1),
        [np.maximum(A @ SQUARE.T / 2, 0)],
    ),
    (Node("NhwcConv", PICTURE, Fixed(KERNEL)), [convolved(PICTURE, KERNEL)]),
    (
        Node("NhwcFusedConv", PICTURE, Fixed(KERNEL), None, np.ones((2, 3, 4, 3), np.float32), activation="Relu"),
        [np.maximum(convolved(PICTURE, KERNEL) + 1, 0)],
    ),
    (Node("GroupNorm", PICTURE, GAMMA, BETA, **NORMAL), [last(NORMED * sigmoid(NORMED))]),
    (Node("GroupNorm", first(PICTURE), GAMMA, BETA, groups=2, activation=0, channels_last=0), [NORMED]),
    (
        Node(
            "SkipGroupNorm", PICTURE, GAMMA, BETA, np.ones((2, 4), np.float32), ROW, outputs=2, groups=2, activation=0
        ),
        [last(grouped(first(PICTURE + 1 + ROW), 2, GAMMA, BETA)), PICTURE + 1 + ROW],
    ),
    (Node("SwiGLU", A, BB, activation_alpha=1.5, activation_beta=1.0), [A * sigmoid(1.5 * A) * (BB + 1)]),
    (
        Node("SwiGLU", A, limit=0.5),
        [np.minimum(A[..., :2], 0.5) * sigmoid(np.minimum(A[..., :2], 0.5)) * np.clip(A[..., 2:], -0.5, 0.5)],
    ),
    (
        Node(
            "QLinearReduceMean",
            BYTES,
            np.float32(0.5),
            np.uint8(3),
            np.float32(0.25),
            np.uint8(7),
            axes=[1],
            keepdims=0,
        ),
        [np.clip(np.rint((BYTES.astype(np.float32) - 3).mean(1) * 2) + 7, 0, 255).astype(np.uint8)],
    ),
    (Node("ReduceSumInteger", BYTES, axes=[0], keepdims=1), [BYTES.sum(0, keepdims=True, dtype=np.uint32)]),
    (Node("MulInteger", BYTES, np.uint8(9), BYTES, None), [(BYTES.astype(np.int32) - 9) * BYTES]),
    (Node("IsAllFinite", A, BB), [np.array(True)]),
    (Node("IsAllFinite", A, np.float32([1, np.inf])), [np.array(False)]),
    (Node("TorchEmbedding", SQUARE, np.array([[1, 3]])), [SQUARE[[[1, 3]]]]),
    (
        Node("ComplexMulConj", *(np.stack([x[..., :2], x[..., 2:]], -1) for x in (A, BB))),
        [np.stack([COMPLEX.real, COMPLEX.imag], -1)],
    ),
]


@pytest.mark.parametrize(("case", "wanted"), DEFINED, ids=str)
def test_an_operator_of_accelerators_is_as_its_definition_says(case: Node, wanted: list[Array]) -> None:
    given = hetnn.compile(case.model)(*case.feeds.values())
    for mine, theirs in zip(given if isinstance(given, tuple) else [given], wanted, strict=True):
        same(mine, theirs, 1e-5, 0)
