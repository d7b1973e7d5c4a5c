"""Language models that decode with a cache in buffers, a word at a time, and that read any batch and length."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hetnn
from models import nets

WORDS, LENGTH = 100, 16
SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
ENDS = {"bos_token_id": 0, "eos_token_id": 1}


def _gpt2(t: Any) -> nn.Module:
    config = t.GPT2Config(vocab_size=WORDS, n_embd=64, n_layer=2, n_head=4, n_positions=64, **ENDS)
    return t.GPT2LMHeadModel(config)


def _llama(t: Any) -> nn.Module:
    config = t.LlamaConfig(vocab_size=WORDS, num_key_value_heads=2, max_position_embeddings=64, **ENDS, **SMALL)
    return t.LlamaForCausalLM(config)


MODELS: dict[str, Callable[[Any], nn.Module]] = {"gpt2": _gpt2, "llama": _llama}


def _made(name: str) -> tuple[Any, nn.Module]:
    nets.declare_torchvision_operators()
    import transformers

    torch.manual_seed(7)
    return transformers, MODELS[name](transformers).eval()


def _equal(got: Tensor, want: Tensor) -> None:
    torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-4 * float(want.abs().max()))


@pytest.mark.parametrize("name", MODELS)
def test_a_cache_in_state_decodes_as_the_whole_text_does(name: str, tmp_path: Path) -> None:
    transformers, model = _made(name)
    from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

    model.generation_config = transformers.GenerationConfig(use_cache=True, cache_implementation="static", **ENDS)  # type: ignore[assignment]
    cached = TorchExportableModuleWithStaticCache(model, 1, LENGTH, torch.device("cpu"))
    example = {"input_ids": torch.tensor([[3]]), "cache_position": torch.tensor([0])}
    with torch.no_grad():
        program = torch.export.export(cached, (), kwargs=example, strict=True)
        texts = [torch.randint(0, WORDS, (1, 8)) for _ in range(2)]
        wholes = [model(words, use_cache=False).logits for words in texts]
    for target in ("cpu", "cpu+relu-only"):
        exe = hetnn.compile(program, target=target)
        assert {"key_cache_0", "value_cache_1"} <= set(exe.states)
        exe.save(tmp_path / "decoder.hetnn")
        for run in (exe, hetnn.load(tmp_path / "decoder.hetnn")):
            for words, whole in zip(texts, wholes, strict=True):
                for k in range(words.shape[1]):
                    step = run(input_ids=words[:, k : k + 1], cache_position=torch.tensor([k]))
                    _equal(step[0, -1], whole[0, k])
                run.reset()


@pytest.mark.parametrize("name", MODELS)
def test_any_batch_and_length(name: str) -> None:
    _, model = _made(name)
    model.config.use_cache = False  # type: ignore[union-attr]
    any_size = {0: torch.export.Dim("batch", min=1, max=16), 1: torch.export.Dim("length", min=2, max=32)}
    with torch.no_grad():
        shapes = {"input_ids": any_size, "use_cache": None}
        example = {"input_ids": torch.zeros(2, 5, dtype=torch.int64), "use_cache": False}
        program = torch.export.export(model, (), kwargs=example, dynamic_shapes=shapes, strict=False)
        for target in ("cpu", "cpu+relu-only"):
            exe = hetnn.compile(program, target=target)
            for batch, length in ((2, 5), (1, 9), (3, 32)):
                words = torch.randint(0, WORDS, (batch, length))
                _equal(exe(input_ids=words, use_cache=False).logits, model(words, use_cache=False).logits)
