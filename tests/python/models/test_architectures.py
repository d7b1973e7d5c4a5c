"""Small networks of the transformers package, each with its own kind of attention or front: equal to torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_leaves

import hetnn
from models import nets

SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
HEADS = {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}


def _words() -> torch.Tensor:
    return torch.randint(0, 100, (1, 12))


def _image() -> torch.Tensor:
    return torch.randn(1, 3, 64, 64)


def _detr(t: Any) -> nn.Module:
    backbone = t.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], out_features=["stage2"])
    sizes = {"d_model": 64, "encoder_layers": 1, "decoder_layers": 1, "num_queries": 5, **HEADS}
    none = {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None}
    return t.DetrModel(t.DetrConfig(backbone_config=backbone, **none, **sizes))


def _whisper(t: Any) -> nn.Module:
    sizes = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 1, "max_source_positions": 50, **HEADS}
    return t.WhisperModel(t.WhisperConfig(**sizes)).encoder


def _distilbert(t: Any) -> nn.Module:
    return t.DistilBertModel(t.DistilBertConfig(vocab_size=100, dim=64, n_layers=2, n_heads=4, hidden_dim=128))


def _gpt2(t: Any) -> nn.Module:
    return t.GPT2Model(t.GPT2Config(vocab_size=100, n_embd=64, n_layer=2, n_head=4, use_cache=False))


def _llama(t: Any) -> nn.Module:
    return t.LlamaModel(t.LlamaConfig(vocab_size=100, use_cache=False, num_key_value_heads=2, **SMALL))


def _t5(t: Any) -> nn.Module:
    return t.T5EncoderModel(t.T5Config(vocab_size=100, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4))


def _swin(t: Any) -> nn.Module:
    return t.SwinModel(t.SwinConfig(image_size=64, embed_dim=16, depths=[1, 1], num_heads=[2, 4], window_size=4))


NETWORKS: dict[str, tuple[Callable[[Any], nn.Module], Callable[[], torch.Tensor]]] = {
    "distilbert": (_distilbert, _words),
    "gpt2": (_gpt2, _words),
    "llama": (_llama, _words),
    "t5": (_t5, _words),
    "whisper": (_whisper, lambda: torch.randn(1, 80, 100)),
    "wav2vec2": (lambda t: t.Wav2Vec2Model(t.Wav2Vec2Config(**SMALL)), lambda: torch.randn(1, 4000)),
    "vit": (lambda t: t.ViTModel(t.ViTConfig(image_size=64, **SMALL)), _image),
    "swin": (_swin, _image),
    "clip": (lambda t: t.CLIPVisionModel(t.CLIPVisionConfig(image_size=64, patch_size=16, **SMALL)), _image),
    "detr": (_detr, _image),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_equals_torch_on_both_targets(name: str) -> None:
    nets._declare_torchvision_operators()
    import transformers

    make, example = NETWORKS[name]
    torch.manual_seed(7)
    model, x = make(transformers).eval(), example()
    with torch.no_grad():
        want = [leaf for leaf in tree_leaves(model(x)) if isinstance(leaf, torch.Tensor)]
        program = torch.export.export(model, (x,), strict=False)
    for target in ("cpu", "cpu+relu-only"):
        got = [leaf for leaf in tree_leaves(hetnn.compile(program, target=target)(x)) if isinstance(leaf, torch.Tensor)]
        assert len(got) == len(want) > 0
        for mine, wanted in zip(got, want, strict=True):
            assert bool(((mine - wanted).abs() <= 1e-3 * wanted.abs() + 1e-4 * wanted.abs().max()).all())
