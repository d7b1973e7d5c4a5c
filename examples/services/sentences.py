"""BERT's encoder as far as a sentence's direction needs it, by the names that its published weights bear.

Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers" (2019); the mean of the last states, made one
long, is what Reimers and Gurevych, "Sentence-BERT" (2019), train it for.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Sentence(nn.Module):
    """Token ids i64 [1,tokens], zeros behind the last, as a direction f32 [1,width]."""

    def __init__(self, weights: Mapping[str, Tensor], heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.layers = sum(name.endswith("intermediate.dense.weight") for name in weights)
        for name, value in weights.items():
            self.register_buffer(name.replace(".", "/"), value)

    def forward(self, ids: Tensor) -> Tensor:
        x = self._of("embeddings.word_embeddings.weight")[ids]
        x = x + self._of("embeddings.position_embeddings.weight")[: ids.shape[1]]
        x = self._normal("embeddings.LayerNorm", x + self._of("embeddings.token_type_embeddings.weight")[0])
        mask = ids != 0
        for k in range(self.layers):
            at = f"encoder.layer.{k}"
            x = self._normal(f"{at}.attention.output.LayerNorm", x + self._attention(f"{at}.attention", x, mask))
            wide = F.gelu(self._linear(f"{at}.intermediate.dense", x))
            x = self._normal(f"{at}.output.LayerNorm", x + self._linear(f"{at}.output.dense", wide))
        kept = mask[..., None].to(x.dtype)
        return F.normalize((x * kept).sum(1) / kept.sum(1), dim=1)

    def _attention(self, at: str, x: Tensor, mask: Tensor) -> Tensor:
        parts = [self._linear(f"{at}.self.{part}", x) for part in ("query", "key", "value")]
        q, k, v = (part.reshape(*part.shape[:2], self.heads, -1).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None])
        return self._linear(f"{at}.output.dense", mixed.transpose(1, 2).flatten(2))

    def _of(self, name: str) -> Tensor:
        return self.get_buffer(name.replace(".", "/"))

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return F.linear(x, self._of(f"{name}.weight"), self._of(f"{name}.bias"))

    def _normal(self, name: str, x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], self._of(f"{name}.weight"), self._of(f"{name}.bias"), 1e-12)


def random_weights(words: int, width: int, wide: int, layers: int, positions: int) -> dict[str, Tensor]:
    """Weights of these sizes from torch's generator."""
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (words, width),
        "embeddings.position_embeddings.weight": (positions, width),
        "embeddings.token_type_embeddings.weight": (2, width),
    }
    dense = {f"attention.self.{part}": (width, width) for part in ("query", "key", "value")}
    dense |= {
        "attention.output.dense": (width, width),
        "intermediate.dense": (wide, width),
        "output.dense": (width, wide),
    }
    normal = ["embeddings.LayerNorm"]
    for k in range(layers):
        at = f"encoder.layer.{k}"
        normal += [f"{at}.attention.output.LayerNorm", f"{at}.output.LayerNorm"]
        for name, (rows, columns) in dense.items():
            shapes |= {f"{at}.{name}.weight": (rows, columns), f"{at}.{name}.bias": (rows,)}
    out = {name: 0.2 * torch.randn(*shape) for name, shape in shapes.items()}
    return out | {
        f"{name}.{part}": torch.full((width,), float(part == "weight"))
        for name in normal
        for part in ("weight", "bias")
    }
