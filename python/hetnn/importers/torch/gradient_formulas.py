"""Formulas of gradients that torch has kernels of and does not decompose: written out, or derived from the function's
own decomposition."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table

_aten = torch.ops.aten
_SUM, _MEAN = 0, 1  # modes of bags; the third keeps maxima


def _slope(apart: Tensor, distance: Tensor, p: float) -> Tensor:
    """Of the p-norm by what it is taken of; 0 where the norm has no slope."""
    if p == 0:
        return torch.zeros_like(apart)
    if p == 1:
        return apart.sign()
    if math.isinf(p):
        return apart.sign() * (apart.abs() == distance)
    none = distance == 0
    if p < 1:
        none = none | (apart == 0)
    along = apart / distance if p == 2 else apart.sign() * (apart.abs() / distance) ** (p - 1)
    return torch.where(none, 0.0, along)


def _distances(grad: Tensor, x1: Tensor, x2: Tensor, p: float, distance: Tensor) -> Tensor:
    apart = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    return (_slope(apart, distance.unsqueeze(-1), p) * grad.unsqueeze(-1)).sum(-2)


def _distances_of_pairs(grad: Tensor, x: Tensor, p: float, distance: Tensor) -> Tensor:
    """Those of pairs i < j, written as a symmetric matrix of distances."""
    count = x.shape[0]
    places = tuple(torch.triu_indices(count, count, 1))
    whole = [grad.new_zeros(count, count).index_put(places, value) for value in (grad, distance)]
    of_all, all_distances = (value + value.t() for value in whole)
    return _distances(of_all, x, x, p, all_distances)


def _bag_of_rows(indices: Tensor, offsets: Tensor) -> Tensor:
    places = torch.arange(indices.shape[0])
    return torch.searchsorted(offsets.to(torch.int64), places, right=True) - 1


def _bags(
    grad: Tensor,
    indices: Tensor,
    offsets: Tensor,
    bag_of_rows: Tensor,
    bag_size: Tensor,
    largest: Tensor,
    rows: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Tensor:
    """Of the table whose rows are joined bag by bag."""
    indices = indices.to(torch.int64)
    table = grad.new_zeros(rows, grad.shape[1])
    if mode not in (_SUM, _MEAN):
        given = torch.where((bag_size > 0).unsqueeze(1), grad, 0.0)
        return table.scatter_add(0, largest.to(torch.int64), given)
    bag = _bag_of_rows(indices, offsets)
    given = grad[bag]
    if mode == _MEAN:
        given = given / bag_size[bag].to(grad.dtype).unsqueeze(1)
    if per_sample_weights is not None:
        given = given * per_sample_weights.unsqueeze(1)
    if padding_idx >= 0:
        given = torch.where((indices == padding_idx).unsqueeze(1), 0.0, given)
    if scale_grad_by_freq:
        seen = grad.new_zeros(rows).index_add(0, indices, torch.ones_like(indices, dtype=grad.dtype))
        given = given / seen[indices].unsqueeze(1)
    return table.index_add(0, indices, given)


def _weights_in_bags(
    grad: Tensor,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    bag_of_rows: Tensor,
    mode: int,
    padding_idx: int = -1,
) -> Tensor:
    """Of what each row of a bag counts."""
    found = (grad[_bag_of_rows(indices, offsets)] * weight[indices]).sum(-1)
    return torch.where(indices == padding_idx, 0.0, found) if padding_idx >= 0 else found


def _replicated(grad: Tensor, x: Tensor, padding: Sequence[int]) -> Tensor:
    """Each element takes what its copies were given."""
    rank = x.dim()
    for k in range(len(padding) // 2):
        axis, size = rank - 1 - k, x.shape[rank - 1 - k]
        source = (torch.arange(grad.shape[axis]) - padding[2 * k]).clamp(0, size - 1)
        shape = [size if a == axis else n for a, n in enumerate(grad.shape)]
        grad = grad.new_zeros(shape).index_add(axis, source, grad)
    return grad


def _masked(grad: Tensor, mask: Tensor, sizes: Sequence[int]) -> Tensor:
    """The k-th element of the source is the k-th true one of the result."""
    count, taken = math.prod(sizes), mask.expand(grad.shape).reshape(-1)
    place = torch.where(taken, taken.to(torch.int64).cumsum(0) - 1, count)
    return grad.new_zeros(count + 1).scatter(0, place, grad.reshape(-1))[:count].reshape(sizes)


def _largest_of_volumes(
    grad: Tensor,
    x: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    places: Tensor,
) -> Tensor:
    zeros = torch.zeros_like(x).flatten(-3)
    return zeros.scatter_add(-1, places.flatten(-3), grad.flatten(-3)).reshape(x.shape)


# By the overload, as torch's own tables of decompositions are.
FORMULAS: dict[Any, Callable[..., Any]] = {
    _aten._cdist_backward.default: _distances,
    _aten._embedding_bag_backward.default: _bags,
    _aten._embedding_bag_per_sample_weights_backward.default: _weights_in_bags,
    _aten._pdist_backward.default: _distances_of_pairs,
    _aten.masked_scatter_backward.default: _masked,
    _aten.max_pool3d_with_indices_backward.default: _largest_of_volumes,
    _aten.replication_pad1d_backward.default: _replicated,
    _aten.replication_pad2d_backward.default: _replicated,
    _aten.replication_pad3d_backward.default: _replicated,
}


def _sampled(grad: Tensor, x: Tensor, grid: Tensor, mode: int, outside: int, corners: bool, mask: Any) -> Any:
    sample = decomposition_table[_aten.grid_sampler_2d.default]
    back = torch.func.vjp(lambda x, grid: sample(x, grid, mode, outside, corners), x, grid)[1]
    return back(grad)


# Derived from the decomposition of what they are the gradients of, over tensors without values: torch cannot derive
# while it decomposes.
DERIVED: dict[Any, Callable[..., Any]] = {_aten.grid_sampler_2d_backward.default: _sampled}
