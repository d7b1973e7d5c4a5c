"""Whole networks, compiled, equal torch: on the CPU alone, and shared between CPU and NPU."""

from __future__ import annotations

import pytest
import torch

import hetnn
from models import nets

# Largest difference, relative to the largest value of the result.
TOLERANCE = 1e-4


def difference(got: object, want: object) -> float:
    pairs = zip(*(value if isinstance(value, tuple) else (value,) for value in (got, want)), strict=True)
    return max(float((one - other).abs().max() / other.abs().max()) for one, other in pairs)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only"])
@pytest.mark.parametrize("name", nets.NETS)
def test_network_equals_torch(name: str, target: str) -> None:
    module, inputs = nets.NETS[name]()
    executable = hetnn.compile(torch.export.export(module, inputs, strict=False), target)
    with torch.no_grad():
        want = module(*inputs)
    assert difference(executable(*inputs), want) < TOLERANCE


@pytest.mark.slow
def test_minilm_tells_related_sentences_from_others() -> None:
    """With published weights the encoder does what it is for."""
    module, _ = nets.minilm_real()
    ids, mask = nets.tokenize(["A cat sits on the mat.", "A kitten rests on a rug.", "The stock market fell today."])
    exported = torch.export.export(module, (ids, mask), strict=False)
    states = hetnn.compile(exported)(ids, mask)
    weights = mask[..., None].float()
    pooled = torch.nn.functional.normalize((states * weights).sum(1) / weights.sum(1), dim=1)
    similar, other = float(pooled[0] @ pooled[1]), float(pooled[0] @ pooled[2])
    assert similar > 0.5
    assert other < 0.2
