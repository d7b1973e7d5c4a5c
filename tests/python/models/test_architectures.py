"""Small networks of the transformers package, each with its own kind of attention or front: equal to torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim
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


def _mixtral(t: Any) -> nn.Module:
    experts = {"num_local_experts": 4, "num_experts_per_tok": 2, "num_key_value_heads": 2}
    return t.MixtralModel(t.MixtralConfig(vocab_size=100, use_cache=False, **experts, **SMALL))


def _t5(t: Any) -> nn.Module:
    return t.T5EncoderModel(t.T5Config(vocab_size=100, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4))


def _swin(t: Any) -> nn.Module:
    return t.SwinModel(t.SwinConfig(image_size=64, embed_dim=16, depths=[1, 1], num_heads=[2, 4], window_size=4))


NETWORKS: dict[str, tuple[Callable[[Any], nn.Module], Callable[[], torch.Tensor]]] = {
    "bert": (lambda t: t.BertModel(t.BertConfig(vocab_size=100, **SMALL)), _words),
    "distilbert": (_distilbert, _words),
    "gpt2": (_gpt2, _words),
    "llama": (_llama, _words),
    "t5": (_t5, _words),
    "mixtral": (_mixtral, _words),
    "whisper": (_whisper, lambda: torch.randn(1, 80, 100)),
    "wav2vec2": (lambda t: t.Wav2Vec2Model(t.Wav2Vec2Config(**SMALL)), lambda: torch.randn(1, 4000)),
    "vit": (lambda t: t.ViTModel(t.ViTConfig(image_size=64, **SMALL)), _image),
    "swin": (_swin, _image),
    "clip": (lambda t: t.CLIPVisionModel(t.CLIPVisionConfig(image_size=64, patch_size=16, **SMALL)), _image),
    "detr": (_detr, _image),
}


# Besides batches of any number an axis of any size: its bounds, and what it is when exported and later. GPT-2 and Llama
# are among the decoders.
SIZES: dict[str, tuple[int, tuple[int, int], tuple[int, ...]] | None] = {
    "bert": (1, (2, 64), (9, 30, 2)),
    "distilbert": (1, (2, 64), (9, 30, 2)),
    "t5": (1, (2, 64), (9, 30, 2)),
    "mixtral": (1, (2, 64), (9, 30, 2)),
    "wav2vec2": (1, (1000, 16000), (4000, 5321, 1500)),
    "detr": (2, (64, 128), (64, 96, 128)),
    "whisper": None,
    "vit": None,
    "swin": None,
    "clip": None,
}


def _leaves(out: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]


def _equal(got: list[torch.Tensor], want: list[torch.Tensor]) -> None:
    assert len(got) == len(want) > 0
    for mine, wanted in zip(got, want, strict=True):
        assert mine.shape == wanted.shape
        assert bool(((mine - wanted).abs() <= 1e-3 * wanted.abs() + 1e-4 * wanted.abs().max()).all())


def _made(name: str) -> tuple[nn.Module, torch.Tensor]:
    nets.declare_torchvision_operators()
    import transformers

    make, example = NETWORKS[name]
    torch.manual_seed(7)
    return make(transformers).eval(), example()


@pytest.mark.parametrize("name", NETWORKS)
def test_equals_torch_on_both_targets(name: str) -> None:
    model, x = _made(name)
    with torch.no_grad():
        want = _leaves(model(x))
        program = torch.export.export(model, (x,), strict=False)
    for target in ("cpu", "cpu+relu-only"):
        _equal(_leaves(hetnn.compile(program, target=target)(x)), want)


@pytest.mark.parametrize("name", SIZES)
@torch.no_grad()
def test_any_batch_and_length(name: str) -> None:
    model, example = _made(name)
    axis, bounds, lengths = SIZES[name] or (0, (1, 16), (2, 1, 3))

    def given(batch: int, length: int) -> torch.Tensor:
        shape = [batch, *example.shape[1:]]
        shape[axis] = length
        return torch.randn(shape) if example.is_floating_point() else torch.randint(0, 100, shape)

    sizes = {0: Dim("batch", min=1, max=16), axis: Dim("size", min=bounds[0], max=bounds[1])}
    program = torch.export.export(model, (given(2, lengths[0]),), dynamic_shapes=(sizes,), strict=False)
    exe = hetnn.compile(program)
    for batch, length in zip((2, 1, 3), lengths, strict=True):
        x = given(batch, length)
        _equal(_leaves(exe(x)), _leaves(model(x)))
