"""Layers that need more than a row: windows over images, sequences, attention, recurrent layers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from fuzz.networks.program import Draw
from fuzz.networks.rows import line

ACTIVATIONS = [
    "F.relu({x})",
    "F.relu6({x})",
    "F.leaky_relu({x}, {num:0:1.3})",
    "F.prelu({x}, {p:1})",
    "F.silu({x})",
    "F.gelu({x})",
    "torch.sigmoid({x})",
    "F.hardswish({x})",
    "torch.tanh({x})",
    "{x}.clamp({num:-1:0}, {num:0:2})",
    "F.prelu({x2+}, {w:1})",
    "F.elu({x})",
    "F.softplus({x})",
    "F.hardsigmoid({x})",
    "F.mish({x})",
]
NORMS = [
    "F.batch_norm({x2+}, {w:1} * 0.1, {w:1}.abs() + 0.5, {w:1}, {w:1})",
    "F.instance_norm({x3+}, eps=0.1)",
    "F.group_norm({x3+}, 1, {w:1}, {w:1}, 0.1)",
    "F.group_norm({x3+}, 2, eps=0.1)",
    "F.layer_norm({x}, {x}.shape[-1:], eps=0.1)",
    "F.layer_norm({x1+}, {x}.shape[-1:], {w}, {w}, 0.1)",
    "F.rms_norm({x1+}, {x}.shape[-1:], {w}, 0.1)",
    "F.local_response_norm({x3+}, {int:1:4})",
    "{x2+} * {w:1}.reshape(-1, *[1] * ({x}.ndim - 2)) + {w:1}.reshape(-1, *[1] * ({x}.ndim - 2))",
]
POOLS = [
    "F.max_pool2d({x4}, {int:1:3}, {int:1:3}, {int:0:1}, ceil_mode={flag})",
    "F.max_pool2d({x4}, ({int:1:4}, {int:1:3}), ({int:1:2}, {int:1:3}), ({int:0:1}, 0), {int:1:2})",
    "F.avg_pool2d({x4}, {int:1:3}, {int:1:3}, {int:0:1}, {flag}, {flag})",
    "F.avg_pool2d({x4}, (3, {int:1:3}), 1, 1, {flag}, {flag}, {int:1:5})",
    "F.adaptive_avg_pool2d({x4}, ({int:1:5}, {int:1:5}))",
    "F.adaptive_max_pool2d({x4}, {int:1:4})",
    "F.max_pool1d({x3}, {int:1:3}, {int:1:2}, {int:0:1})",
    "F.avg_pool1d({x3}, {int:1:3}, {int:1:2}, {int:0:1})",
    "F.max_pool3d({x5}, 2, {int:1:2})",
    "F.avg_pool3d({x5}, 2, {int:1:2})",
    "F.adaptive_avg_pool1d({x3}, {int:1:4})",
    "F.adaptive_avg_pool2d({x4}, 1)",
    "{x4}.mean((2, 3), keepdim=True)",
    "2=F.max_pool2d({x4}, 2, return_indices=True)",
    "F.lp_pool2d({x4}.abs() + 0.1, 2, 2)",
    "F.adaptive_avg_pool3d({x5}, {int:1:2})",
]
# Of a sampled image: places that the image says, and those of a matrix.
PLACES = "torch.tanh(F.interpolate({x}[:, :1], size=({int:2:6}, 4)).expand(-1, 2, -1, -1).permute(0, 2, 3, 1) * 1.3)"
TURNED = (
    "torch.tensor([[[0.9, 0.2, {num:-0.5:0.5}], [-0.1, 1.1, 0.1]]]).expand({x}.shape[0], -1, -1), "
    "({x}.shape[0], 1, {int:1:6}, {int:1:6})"
)
RESIZES = [
    "F.interpolate({x4}, scale_factor={one:2|3|(2, 1)|0.5}, mode='nearest')",
    "F.interpolate({x4}, size=({int:1:9}, {int:1:9}), mode='{one:bilinear|bicubic}', align_corners={flag})",
    "F.interpolate({x4}, size=({int:1:9}, {int:1:9}), mode='{one:nearest|nearest-exact|area}')",
    "F.interpolate({x4}, scale_factor={num:0.4:2.5}, mode='bilinear', align_corners=False)",
    "F.interpolate({x4}, scale_factor={num:0.4:2.5}, mode='{one:bilinear|bicubic}', recompute_scale_factor=True)",
    "F.interpolate({x3}, scale_factor=2, mode='{one:linear|nearest}')",
    # Of a width of 1 and another height torch's own answers differ by how the memory lies; one of them is ours.
    "F.interpolate({x4}, size=({int:1:9}, {int:2:9}), mode='bilinear', antialias=True)",
    "F.interpolate({x5}, scale_factor=2, mode='{one:nearest|trilinear}')",
    f"F.grid_sample({{x4}}, {PLACES}, '{{one:bilinear|nearest|bicubic}}', '{{one:zeros|border|reflection}}', {{flag}})",
    f"F.grid_sample({{x4}}, F.affine_grid({TURNED}, {{flag}}), align_corners={{flag}})",
]
JOINTS = [
    "{x} + {like}",
    "{x} + {like}",
    "{x} * {like}",
    "{x} - {y}",
    "torch.maximum({x}, {like})",
    "~torch.cat([{x2+}, {like}], 1)",
    "{x4} * torch.sigmoid({x}.mean((2, 3), keepdim=True))",
    "{x} + {x} * {num:-1:1}",
    "F.relu({x} + {like})",
]


def conv(
    d: Draw,
    channels: Sequence[int] = (1, 2, 3, 4, 5, 8, 12, 16, 17, 24, 32, 33),
    kernels: Sequence[int] = (1, 1, 2, 3, 3, 3, 4, 5, 7),
) -> str | None:
    """Of one to three axes, grouped or depthwise or neither, perhaps transposed."""
    name = d.reals((3, 4, 4, 4, 5))
    if name is None:
        return None
    x = d.value(name)
    rank, read = x.ndim - 2, x.shape[1]
    groups = d.choice([1, 1, 1, max(read, 1), *(g for g in (2, 3, 4) if read % g == 0)])
    many = groups * d.choice([1, 1, 2, 3]) if groups > 1 else d.choice(channels)
    size = tuple(d.choice(kernels) for _ in range(rank)) if d.coin(0.3) else (d.choice(kernels),) * rank
    draws = lambda most: tuple(d.integer(1, most) for _ in range(rank)) if d.coin(0.3) else d.choice([1, 1, most])  # noqa: E731
    stride, dilation = draws(d.choice([2, 2, 3])), draws(2) if d.coin(0.3) else 1
    padding = tuple(d.integer(0, k // 2 + 1) for k in size) if d.coin(0.4) else tuple(k // 2 for k in size)
    bias = d.param(d.randn(many)) if d.coin(0.7) else None
    if d.coin(0.15):
        weight = d.weight(read, many // groups, *size)
        most = stride if isinstance(stride, tuple) else (stride,) * rank
        extra = tuple(d.integer(0, s - 1) for s in most)
        return d.emit(
            f"F.conv_transpose{rank}d({name}, {weight}, {bias}, {stride}, {padding}, {extra}, {groups}, {dilation})"
        )
    weight = d.weight(many, read // groups, *size)
    how = repr(d.choice(["same", "valid"])) if d.coin(0.1) and stride in (1, (1,) * rank) else padding
    return d.emit(f"F.conv{rank}d({name}, {weight}, {bias}, {stride}, {how}, {dilation}, {groups})")


def unit(d: Draw) -> None:
    """A convolution with what stands behind one."""
    if conv(d) is None:
        return
    for rows, chance in ((NORMS, 0.25), (ACTIVATIONS, 0.7), (POOLS, 0.2)):
        if d.coin(chance):
            line(d, d.choice(rows).replace("{x4}", "{x4}"))


def linear(d: Draw) -> str | None:
    name = d.pick(lambda x: x.dtype == torch.float32 and x.ndim >= 1 and 0 < x.shape[-1] <= 256)
    if name is None:
        return None
    many = d.choice([1, 2, 3, 5, 8, 16, 17, 33, 48])
    bias = d.param(d.randn(many)) if d.coin(0.7) else None
    return d.emit(f"F.linear({name}, {d.weight(many, d.value(name).shape[-1])}, {bias})")


def attention(d: Draw) -> str | None:
    """Of [batch, length, width]: heads, perhaps fewer of keys; masks of all kinds; by the function or by hand."""
    name = d.pick(lambda x: x.dtype == torch.float32 and x.ndim == 3 and x.shape[-1] <= 64)
    if name is None:
        return None
    x = d.value(name)
    other = (
        d.pick(lambda y: y.dtype == x.dtype and y.ndim == 3 and y.shape[0] == x.shape[0] and y.shape[-1] <= 64)
        if d.coin(0.3)
        else name
    )
    assert other is not None
    y, size, kv = d.value(other), d.choice([1, 4, 8, 16]), d.choice([1, 2])
    heads = kv * d.choice([1, 1, 2, 3])
    split = lambda of, w, h: f"F.linear({of}, {w}).unflatten(-1, ({h}, {size})).transpose(1, 2)"  # noqa: E731
    q = d.emit(split(name, d.weight(heads * size, x.shape[-1]), heads))
    k = d.emit(split(other, d.weight(kv * size, y.shape[-1]), kv))
    v = d.emit(split(other, d.weight(kv * size, y.shape[-1]), kv))
    if q is None or k is None or v is None:
        return None
    if size % 2 == 0 and d.coin(0.3):
        q, k = (_rotated(d, each, size) for each in (q, k))
    length, keys = x.shape[1], y.shape[1]
    masks = {
        "none": "None",
        "causal": "None",
        "bool": f"torch.ones({length}, {keys}, dtype=torch.bool).tril({d.integer(0, 2)})",
        "real": d.param(d.randn(length, keys)),
        "far": f"torch.full(({length}, {keys}), -torch.inf).triu(1)",
        "least": f"torch.full(({length}, {keys}), torch.finfo(torch.float32).min).triu(1)",
        "heads": d.param(d.randn(1, heads, 1, keys)),
        "padding": f"(torch.arange({keys}) < {max(keys - 1, 1)})[None, None, None, :]",
    }
    kind = d.choice(sorted(masks))
    if d.coin(0.6):
        scale = d.choice(["None", "0.3"])
        causal = kind == "causal"
        told = f"{masks[kind]}, 0.0, {causal}, scale={scale}, enable_gqa={heads != kv}"
        made = d.emit(f"F.scaled_dot_product_attention({q}, {k}, {v}, {told})")
    else:
        more = f".repeat_interleave({heads // kv}, 1)"
        scores = f"{q} @ {k}{more}.mT * {round(1 / math.sqrt(size), 4)}"
        scored = {
            "none": scores,
            "causal": scores,
            "bool": f"({scores}).masked_fill(~({masks['bool']}), -1e9)",
            "padding": f"torch.where({masks['padding']}, {scores}, -1e4)",
        }.get(kind, f"{scores} + {masks[kind]}")
        made = d.emit(f"torch.softmax({scored}, -1) @ {v}{more}")
    made = made and d.emit(f"{made}.transpose(1, 2).flatten(2)", moves=True)
    return made and d.emit(f"F.linear({made}, {d.weight(x.shape[-1], heads * size)}) + {name}")


def _rotated(d: Draw, name: str, size: int) -> str | None:
    angles = f"torch.arange({name}.shape[-2]).float()[:, None] * {d.param(d.randn(size // 2).abs())}"
    cos, sin, half = f"torch.cos({angles})", f"torch.sin({angles})", size // 2
    halves = d.coin()
    a, b = (f"{name}[..., {part}]" for part in ((f":{half}", f"{half}:") if halves else ("::2", "1::2")))
    turned = f"[{a} * {cos} - {b} * {sin}, {b} * {cos} + {a} * {sin}], -1)"
    return d.emit(f"torch.cat({turned}" if halves else f"torch.stack({turned}.flatten(-2)")


def recurrent(d: Draw) -> str | None:
    name = d.pick(lambda x: x.dtype == torch.float32 and x.ndim == 3 and 0 < x.shape[-1] <= 64)
    if name is None:
        return None
    x, size, kind = d.value(name), d.choice([1, 3, 8, 16]), d.choice(["lstm", "gru", "rnn_tanh", "rnn_relu"])
    first, both, layers, bias = d.coin(), d.coin(0.4), d.choice([1, 1, 2]), d.coin(0.8)
    gates, weights = {"lstm": 4, "gru": 3}.get(kind, 1), []
    for layer in range(layers):
        for _ in range(1 + both):
            read = x.shape[-1] if layer == 0 else size * (1 + both)
            weights += [d.weight(gates * size, read), d.weight(gates * size, size)]
            weights += [d.param(d.randn(gates * size) * 0.3) for _ in range(2 * bias)]
    batch = x.shape[0 if first else 1]
    start = (
        f"torch.zeros({layers * (1 + both)}, {batch}, {size})"
        if d.coin()
        else d.param(d.randn(layers * (1 + both), batch, size) * 0.5)
    )
    start = f"({start}, {start})" if kind == "lstm" else start
    told = f"torch.{kind}({name}, {start}, [{', '.join(weights)}], {bias}, {layers}, 0.0, False, {both}, {first})"
    return d.emit(told, 3 if kind == "lstm" else 2)
