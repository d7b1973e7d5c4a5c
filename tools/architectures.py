"""Networks of timm and transformers, built small and alive: random seeded weights, and inputs that eager torch takes.

A unit is `timm/MODULE/1` or `/2`, the smallest and the second smallest model of a module by parameters, or
`transformers/KIND`, the base model of a kind with its configuration made small. `NotBuilt` says why one is not there.
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests" / "python")]

from models import nets  # type: ignore[import-not-found]  # noqa: E402

Inputs = dict[str, Tensor]
# What makes an input of a generator's numbers.
Makers = dict[str, Callable[[Any], Tensor]]
# More parameters than these are not built where a smaller form is sought.
SMALL_PARAMETERS = 150_000_000
# Sides of images that are tried in turn where a network takes any.
SIDES = (64, 96, 128, 160, 224, 256, 288)
TOKENS, VOCABULARY = 12, 128


class NotBuilt(Exception):
    """Why a network is not to be had small; one line."""


@dataclass(frozen=True)
class Network:
    """A module in evaluation mode, what it is called, and inputs by their names for a seed."""

    called: str
    module: nn.Module
    inputs: Callable[[int], Inputs]

    @property
    def parameters(self) -> int:
        return sum(p.numel() for p in self.module.parameters())


def units() -> list[str]:
    """The names of all units, in their order."""
    nets.declare_torchvision_operators()
    import timm
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    modules = [module for module in timm.list_modules() if timm.list_models(module=module)]
    ranked = [f"timm/{module}/{k}" for module in modules for k in (1, 2)[: len(timm.list_models(module=module))]]
    return [*ranked, *(f"transformers/{kind}" for kind in sorted(MODEL_MAPPING_NAMES))]


def built(unit: str) -> Network:
    """The network of a unit; `NotBuilt` where there is none, or eager torch runs it on none of the inputs tried."""
    nets.declare_torchvision_operators()
    torch.manual_seed(7)
    package, *rest = unit.split("/")
    return _timm(rest[0], int(rest[1])) if package == "timm" else _transformers(rest[0])


def enlivened(module: nn.Module) -> nn.Module:
    """In evaluation mode; parameters that are all one value (zero heads, gains of 1e-6) vary, so all branches count."""
    for parameter in module.parameters():
        if parameter.is_floating_point() and parameter.numel() and bool((parameter == parameter.flatten()[0]).all()):
            with torch.no_grad():
                parameter.add_(0.1 * torch.randn_like(parameter))
    nets.settle_batch_norms(module)
    return module.eval()


def _runs(module: nn.Module, inputs: Inputs) -> str:
    """Why eager torch does not run a module on some inputs; empty where it does."""
    try:
        with torch.no_grad():
            module(**inputs)
    except Exception as error:
        return _line(error)
    return ""


def _line(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:120] if text else ''}"


def _count(make: Callable[[], nn.Module]) -> int:
    """How many parameters a network would have, without their memory."""
    with torch.device("meta"):
        return sum(p.numel() for p in make().parameters())


# timm


def _timm(module: str, rank: int) -> Network:
    import timm

    def parameters(name: str) -> int:
        return _count(partial(timm.create_model, name))

    name = sorted(timm.list_models(module=module), key=parameters)[rank - 1]
    network: Any = timm.create_model(name)
    enlivened(network)
    given: dict[str, Any] = network.pretrained_cfg
    channels, own = given["input_size"][0], given["input_size"][-1]
    argument = next(iter(inspect.signature(network.forward).parameters))
    why = ""
    for side in [own] if given.get("fixed_input_size") else [*(s for s in SIDES if s < own), own]:

        def inputs(seed: int, side: int = side) -> Inputs:
            return {argument: torch.randn(1, channels, side, side, generator=torch.Generator().manual_seed(seed))}

        why = _runs(network, inputs(0))
        if not why:
            return Network(name, network, inputs)
    raise NotBuilt(f"eager torch runs {name} on no image: {why}")


# transformers: what sizes of configurations are called, and how small they become

NARROW = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "hidden_dim", "embedding_size"), 64),
    **dict.fromkeys(("encoder_hidden_size", "decoder_hidden_size", "word_embed_proj_dim", "projection_dim"), 64),
    **dict.fromkeys(("out_hidden_size", "text_hidden_size", "projector_hidden_size", "output_dim"), 64),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"), 4),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("num_key_value_heads", "linear_num_key_heads", "linear_num_value_heads"), 2),
    **dict.fromkeys(("head_dim", "linear_key_head_dim", "linear_value_head_dim", "v_head_dim", "d_kv"), 16),
    **dict.fromkeys(("qk_nope_head_dim", "qk_rope_head_dim", "kv_lora_rank", "q_lora_rank", "index_head_dim"), 16),
    **{"qk_head_dim": 32, "rotary_dim": 8},
    **dict.fromkeys(("intermediate_size", "mlp_dim", "ffn_dim", "d_ff", "ffn_hidden_size", "n_inner"), 128),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim", "moe_intermediate_size"), 128),
    **dict.fromkeys(("shared_expert_intermediate_size", "decoder_intermediate_size", "encoder_intermediate_size"), 128),
}
SHALLOW = {
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "depth"), 2),
    **dict.fromkeys(("encoder_layers", "decoder_layers", "num_decoder_layers", "num_encoder_layers"), 2),
    **dict.fromkeys(("encoder_num_hidden_layers", "decoder_num_hidden_layers"), 2),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_topk", "moe_k", "top_k_experts"), 2),
    **dict.fromkeys(("n_group", "topk_group"), 1),
    **dict.fromkeys(("vocab_size", "text_vocab_size", "vocab_size_per_layer_input"), VOCABULARY),
    **dict.fromkeys(("image_size", "pretrain_image_size"), 64),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_source_positions", "max_target_positions"), 64),
    **dict.fromkeys(("num_queries", "num_query_tokens"), 5),
}
DEPTHS = ("depths", "num_blocks", "layers", "blocks_per_stage")


def _shrunk(told: dict[str, Any], sizes: dict[str, int]) -> dict[str, Any]:
    """A configuration's dictionary with what is larger than it need be made small, lists of layers too."""
    out = copy.deepcopy(told)
    layers = told.get("num_hidden_layers")
    kinds = told.get("layer_types")
    wanted = sizes.get("num_hidden_layers", layers)
    chosen = None
    if isinstance(layers, int) and isinstance(kinds, list) and len(kinds) == layers > 2:
        # One layer of each kind, two at least.
        chosen = [kinds.index(kind) for kind in dict.fromkeys(kinds)]
        chosen = chosen if len(chosen) > 1 else [0, 1]
        wanted = len(chosen)
    for key, value in told.items():
        if isinstance(value, dict):
            out[key] = _shrunk(value, sizes)
        elif key == "num_hidden_layers" and isinstance(value, int):
            out[key] = min(value, wanted) if isinstance(wanted, int) else value
        elif key == "num_key_value_heads" and value == told.get("num_attention_heads") and key in sizes:
            out[key] = min(value, sizes["num_attention_heads"])
        elif key in sizes and isinstance(value, int) and not isinstance(value, bool):
            out[key] = min(value, sizes[key])
        elif key == "vocab_size" and value is None:
            out[key] = VOCABULARY
        elif key in DEPTHS and isinstance(value, (list, tuple)) and all(isinstance(v, int) for v in value):
            out[key] = [1] * len(value)
        elif isinstance(value, list) and layers and len(value) == layers > 2 and isinstance(wanted, int):
            out[key] = [value[k] for k in chosen] if chosen else value[:wanted]
        elif key == "mrope_section" and sizes is not SHALLOW:
            out[key] = [2, 3, 3]
    vocabulary = out.get("vocab_size")
    if isinstance(vocabulary, int):
        ids = [k for k, v in out.items() if k.endswith(("_token_id", "_token_index")) and isinstance(v, int)]
        for count, key in enumerate(key for key in ids if out[key] >= vocabulary):
            out[key] = max(0, vocabulary - 1 - count)
    if "use_cache" in out:
        out["use_cache"] = False
    return out


def _forms(kind: type[Any]) -> Iterator[Any]:
    """Configurations of a kind, the smallest first, that can be made; the last is its own."""
    own = kind()
    told = own.to_dict()
    narrow = NARROW | SHALLOW
    without_heads = {key: value for key, value in narrow.items() if "head_dim" not in key}
    for sizes in (narrow, without_heads, SHALLOW, {}):
        try:
            config = kind.from_dict(_shrunk(told, sizes)) if sizes else own
        except Exception:
            continue
        config.use_cache = False
        yield config


def _field(config: Any, *names: str, default: int) -> int:
    """The first size of these names in a configuration or those inside it."""
    inner = [c for c in vars(config).values() if hasattr(c, "to_dict")]
    for at in (config, *inner):
        for name in names:
            value = getattr(at, name, None)
            value = value[-1] if isinstance(value, (list, tuple)) and value else value
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return default


def _candidates(config: Any, module: nn.Module) -> Iterator[Callable[[int], Inputs]]:
    """Makers of inputs that a model of a kind may take, by the arguments of its `forward`."""
    taken = set(inspect.signature(module.forward).parameters)
    vocabulary = _field(config, "vocab_size", "text_vocab_size", default=VOCABULARY)
    channels = _field(config, "num_channels", "in_channels", "in_chans", default=3)
    side = _field(config, "image_size", "pretrain_image_size", default=64)
    frames = _field(config, "num_frames", default=4)
    mels = _field(config, "num_mel_bins", "feature_size", "input_feat_per_channel", "n_mels", default=80)
    steps = 2 * _field(config, "max_source_positions", default=32)

    def words(seed: Any, high: int = vocabulary, tokens: int = TOKENS) -> Tensor:
        least = min(4, high - 1)  # the first and the last of a vocabulary are often special
        return torch.randint(least, max(least + 1, high - 24), (1, tokens), generator=seed)

    def noise(*shape: int) -> Callable[[Any], Tensor]:
        return lambda seed: torch.randn(shape, generator=seed)

    text: Makers = {"input_ids": words}
    image = {"pixel_values": noise(1, channels, side, side)}
    decoder: Makers = {"decoder_input_ids": lambda seed: words(seed, tokens=5)}
    boxes: Makers = {"bbox": lambda seed: torch.zeros(1, TOKENS, 4, dtype=torch.int64)}
    sounds = [{"input_features": noise(*shape)} for shape in ((1, mels, steps), (1, steps, mels), (1, 1, steps, mels))]
    sounds += [{"input_values": noise(*shape)} for shape in ((1, 4000), (1, 1, 4000), (1, steps, mels))]
    sounds += [{"input_values": noise(1, _field(config, "max_length", default=1024), mels)}]
    images = [image, *({"pixel_values": noise(1, channels, s, s)} for s in (224, 256, 384, 512) if s != side)]
    videos = [{"pixel_values": noise(1, frames, channels, s, s)} for s in dict.fromkeys((side, 224))]
    videos += [{"pixel_values_videos": noise(1, frames, channels, side, side)}]
    past = _field(config, "context_length", default=64), _field(config, "num_input_channels", default=1)
    series = {"past_values": noise(1, *past)}
    wide = _field(config, "hidden_size", "d_model", "n_embd", default=64)
    patch = _field(config, "patch_size", default=14) ** 2 * _field(config, "temporal_patch_size", default=1) * channels
    grid: Makers = {"grid_thw": lambda seed: torch.tensor([[1, 4, 4]])}
    lengths: Makers = {"input_features_mask": lambda seed: torch.ones(1, steps, dtype=torch.bool)}
    vectors = [{"inputs_embeds": noise(1, TOKENS, wide)}, {"hidden_states": noise(1, TOKENS, wide)}]
    pair = {"pixel_values": noise(1, 2, channels, side, side)}
    groups: list[Makers] = [
        *(text | image, text | boxes, text | boxes | image, text | decoder, text),
        *(*images, *videos, *sounds, *(sound | decoder for sound in sounds), *(text | sound for sound in sounds)),
        *(sounds[1] | lengths, series, *vectors, text | videos[0], pair),
        *({name: noise(16, patch)} | grid for name in ("hidden_states", "pixel_values")),
        {"inputs": words},
        *({name: noise(1, TOKENS, wide)} for name in ("inputs", "input_embeds")),
        {"image_embeddings": noise(1, wide, 4, 4)},
    ]
    for group in groups:
        if group.keys() <= taken:

            def inputs(seed: int, group: Makers = group) -> Inputs:
                generator = torch.Generator().manual_seed(seed)
                return {name: make(generator) for name, make in group.items()}

            yield inputs


def _transformers(kind: str) -> Network:
    import transformers
    from transformers.models.auto import configuration_auto, modeling_auto

    called = modeling_auto.MODEL_MAPPING_NAMES[kind]
    called = called if isinstance(called, str) else called[0]
    reasons: list[str] = []
    try:
        kind_of_config, kind_of_model = (
            getattr(transformers, vars(configuration_auto)["CONFIG_MAPPING_NAMES"][kind]),
            getattr(transformers, called),
        )
        forms = list(_forms(kind_of_config))
    except Exception as error:
        raise NotBuilt(f"its configuration is not made: {type(error).__name__}: {error}") from None
    for config in forms:
        try:
            parameters = _count(partial(kind_of_model, copy.deepcopy(config)))
            if parameters > SMALL_PARAMETERS:
                reasons.append(f"{parameters / 1e6:.0f} million parameters")
                continue
        except Exception:  # some compute while they are made, which needs memory
            pass
        try:
            torch.manual_seed(7)
            module = enlivened(kind_of_model(config))
        except Exception as error:
            reasons.append(f"not built: {_line(error)}")
            continue
        reasons.append("no inputs that its forward takes are known")
        for inputs in _candidates(config, module):
            refused = _runs(module, inputs(0))
            if not refused:
                return Network(called, module, inputs)
            reasons[-1] = f"eager torch: {refused}"
    raise NotBuilt("; ".join(dict.fromkeys(reasons)) or "no configuration of it is made")
