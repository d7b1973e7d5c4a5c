"""Models whose sizes are known only when they run."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import hetnn
from models import nets


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only"])
def test_encoder_of_any_batch_and_length(target: str) -> None:
    torch.manual_seed(3)
    module = nets.Encoder(
        vocab_size=500, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96
    ).eval()
    batch, length = Dim("batch", min=1, max=64), Dim("length", min=2, max=512)

    def inputs(sentences: int, tokens: int) -> tuple[Tensor, Tensor]:
        mask = torch.ones(sentences, tokens, dtype=torch.int64)
        mask[0, tokens // 2 :] = 0
        return torch.randint(0, 500, (sentences, tokens)), mask

    dynamic = ({0: batch, 1: length}, {0: batch, 1: length})
    exported = torch.export.export(module, inputs(2, 12), dynamic_shapes=dynamic, strict=False)
    exe = hetnn.compile(exported, target)
    for sizes in ((2, 12), (1, 5), (3, 40)):
        ids, mask = inputs(*sizes)
        with torch.no_grad():
            want = module(ids, mask)
        assert float((exe(ids, mask) - want).abs().max()) <= 1e-5 * float(want.abs().max()), sizes


class Indexed(nn.Module):
    def forward(self, x: Tensor, rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
        return x[rows, columns], x[:, rows[0], columns]


def test_indices_of_several_axes_count_from_either_end() -> None:
    x = torch.arange(3 * 4 * 5 * 2.0).reshape(3, 4, 5, 2)[:, :, :3]
    rows, columns = torch.tensor([[0], [-1], [2]]), torch.tensor([1, -2, 0, 2])
    model = Indexed()
    sizes = {0: Dim("planes", min=3, max=9), 1: Dim("rows", min=3, max=9)}
    exported = torch.export.export(model, (x, rows, columns), dynamic_shapes=(sizes, None, None), strict=False)
    exe = hetnn.compile(exported)
    for planes, height in ((3, 3), (5, 4)):
        larger = torch.randn(planes, height, 3, 2)
        for got, want in zip(exe(larger, rows, columns), model(larger, rows, columns), strict=True):
            assert torch.equal(got, want)
