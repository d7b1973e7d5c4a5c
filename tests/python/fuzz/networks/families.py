"""Families of networks: what they begin with, and which lines they grow by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.export import Dim

from fuzz.networks import layers
from fuzz.networks.flow import flow
from fuzz.networks.growing import grow, image, shape
from fuzz.networks.program import Draw, Program
from fuzz.networks.rows import ELEMENTWISE, INDICES, MOVES, PRODUCTS, REDUCTIONS, line
from fuzz.networks.states import cache, mutating, states


def first(d: Draw) -> None:
    """First layers of few channels, with what stands behind."""
    d.input(image(d, [1, 2, 3, 3, 4, 5, 8], 3, 40))
    layers.conv(d, [1, 3, 8, 10, 16, 20, 32], [1, 2, 3, 3, 5, 7, 11])
    grow(
        d,
        [
            (2, layers.ACTIVATIONS),
            (2, layers.POOLS),
            (1, layers.NORMS),
            (1, layers.JOINTS),
            (1, MOVES),
            (1, layers.conv),
        ],
        2,
        6,
    )


def winograd(d: Draw) -> None:
    """3x3 layers of many channels, with residuals."""
    d.input(d.randn(d.choice([1, 1, 2]), d.choice([8, 9, 16, 20, 32]), d.integer(10, 26), d.integer(10, 26)))
    conv = lambda d: layers.conv(d, [8, 12, 16, 17, 32, 40], [3])  # noqa: E731
    grow(
        d,
        [(4, conv), (3, layers.ACTIVATIONS), (3, layers.JOINTS), (1, layers.NORMS), (1, MOVES), (1, layers.POOLS)],
        3,
        10,
    )


def images(d: Draw) -> None:
    for _ in range(d.choice([1, 1, 2])):
        d.input(
            image(d, [1, 3, 4, 8, 12, 16, 32])
            if d.coin(0.8)
            else d.randn(2, d.choice([2, 4]), 4, 5, 6)
            if d.coin()
            else d.randn(2, d.choice([3, 8]), d.integer(3, 30))
        )
    grow(
        d,
        [
            (5, layers.unit),
            (2, layers.JOINTS),
            (1, layers.POOLS),
            (1, layers.RESIZES),
            (2, MOVES),
            (0.5, ELEMENTWISE),
            (0.5, REDUCTIONS),
        ],
        3,
        9,
    )


def moving(d: Draw) -> None:
    for _ in range(d.choice([1, 2])):
        d.input(image(d, [2, 4, 8, 12], 2, 9) if d.coin(0.6) else d.randn(*shape(d)))
    grow(
        d,
        [
            (6, MOVES),
            (2, layers.JOINTS),
            (1, layers.unit),
            (1, layers.ACTIVATIONS),
            (0.5, REDUCTIONS),
            (0.5, layers.linear),
            (0.5, PRODUCTS),
        ],
        5,
        16,
    )


def odd(d: Draw) -> None:
    """Anything of any rank, sizes 0 and 1 among them."""
    for _ in range(d.choice([1, 2, 3])):
        d.input(d.randn(*shape(d, 0.2)))
    grow(
        d, [(4, ELEMENTWISE), (4, REDUCTIONS), (2, MOVES), (1, PRODUCTS), (1, layers.NORMS), (1, layers.JOINTS)], 5, 14
    )


def indexing(d: Draw) -> None:
    for _ in range(d.choice([1, 2])):
        d.input(d.randn(*shape(d)))
    for _ in range(d.choice([1, 2])):
        d.input(d.integers(0, 6, shape(d)))
    grow(d, [(6, INDICES), (1, ELEMENTWISE), (1, REDUCTIONS), (1, MOVES)], 5, 14)


def transformer(d: Draw) -> None:
    batch, length, width = d.choice([1, 2, 3]), d.integer(1, 9), d.choice([4, 8, 16, 24])
    if d.coin(0.4):
        ids = d.input(d.integers(0, 11, [batch, length]))
        d.emit(f"F.embedding({ids}, {d.param(d.randn(11, width))})", moves=True)
    else:
        d.input(d.randn(batch, length, width))
    if d.coin(0.3):
        d.input(d.randn(batch, d.integer(1, 7), width))
    for _ in range(d.choice([1, 2])):
        line(
            d,
            d.choice(
                ["F.layer_norm({x3}, {x}.shape[-1:], {w}, {w}, 0.1)", "F.rms_norm({x3}, {x}.shape[-1:], {w}, 0.1)"]
            ),
        )
        layers.attention(d)
        grow(
            d,
            [
                (2, layers.linear),
                (2, layers.ACTIVATIONS),
                (1, layers.NORMS),
                (1, layers.JOINTS),
                (0.5, REDUCTIONS),
                (0.5, MOVES),
                (0.5, "F.glu({x})"),
            ],
            1,
            5,
        )


def recurrent(d: Draw) -> None:
    d.input(d.randn(d.choice([1, 2, 3, 5]), d.choice([1, 2, 4, 7]), d.choice([1, 3, 8, 12])))
    grow(
        d,
        [
            (3, layers.recurrent),
            (1, layers.linear),
            (1, MOVES),
            (1, layers.ACTIVATIONS),
            (1, layers.JOINTS),
            (0.5, layers.NORMS),
        ],
        2,
        6,
    )


TYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]
TYPED = [
    *["{any}.to(torch.{one:" + "|".join(TYPES) + "})"] * 3,
    "{any} + {y}",
    "{any} * {y}",
    "{any} - {num:-2:2}",
    "{any} + {any0+}",
    "{any} * {any0+}",
    "{any} > {y}",
    "{any} == {y}",
    "{any}.sum({axis})",
    "{any}.sum()",
    "{any}.cumsum({axis})",
    "{any}.amax({axis})",
    "{any}.abs()",
    "-{any}",
    "{any} % {int:1:5}",
    "{any} // {int:1:5}",
    "{any} / {int:1:5}",
    "{any} << {int:0:3}",
    "{any} >> {int:0:3}",
    "{any} & {y}",
    "{any} | {y}",
    "{any} ^ {y}",
    "torch.logical_not({b})",
    "torch.bitwise_not({any})",
    "torch.where({any} > 1, {any}, {int:0:3})",
    "{any}.clamp({int:-2:0}, {int:1:5})",
    "{any}.argmax({axis})",
    "{any}.mean({axis}, dtype=torch.float32)",
    "{any}.sign()",
    "torch.maximum({any}, {y})",
    "{any}.prod({axis})",
    "~torch.cat([{any}, {any0+}], 0)",
    "~torch.cat([{any}, {like}], {axis})",
    "{any}.float().exp()",
    "{any}.double().tanh()",
    "{any} @ {any}.mT",
    "torch.pow({any}, 2)",
    "torch.sqrt({any}.abs())",
    "torch.relu({any})",
    "F.softmax({any}, -1)",
    "torch.div({any}, {int:1:5}, rounding_mode='{one:floor|trunc}')",
    "torch.remainder({any}, {int:-4:-1})",
    "torch.fmod({any}, {int:1:4})",
    "~2=torch.sort({any}, {axis}, stable=True)",
    "torch.round({any})",
    "{any}.var({axis})",
    "torch.gcd({any}, {like})",
    "F.gelu({any})",
    "{any}.reciprocal()",
    "torch.sigmoid({any})",
    "{any}.any({axis})",
    "torch.masked_fill({any}, {b}, 2)",
    "~{any}.flip({axes})",
    "~{any}.transpose({axis}, {axis})",
    "torch.atan2({any}, {any0+})",
    "F.layer_norm({any}, {any}.shape[-1:])",
    "{any}.logical_not()",
    "torch.square({any})",
    "torch.floor({any})",
    "torch.full_like({any}, {int:0:3})",
    "torch.ones_like({any}, dtype=torch.{one:float32|int64|int8})",
    "torch.arange(0, {int:1:5}, dtype=torch.{one:float32|int64|float64|int32})",
    "{any}.norm()",
    "F.one_hot({n} % 4, 4)",
    "{any}.unsqueeze({axis})",
    "{any}.type_as({any0+})",
]


def types(d: Draw) -> None:
    for _ in range(d.choice([2, 3])):
        kind = d.choice(TYPES)
        size = shape(d)
        x = (
            d.randn(*size) * 3
            if "float" in kind
            else d.integers(0 if kind in ("uint8", "bool") else -5, 2 if kind == "bool" else 6, size)
        )
        d.input(x.to(getattr(torch, kind)))
    grow(d, [(8, TYPED), (1, ELEMENTWISE), (1, MOVES)], 5, 14)


SIGNALS = [
    "torch.fft.rfft({x}, dim={axis})",
    "torch.fft.fft({x}, dim={axis}, norm='{one:ortho|forward|backward}')",
    "torch.view_as_real({c})",
    "{c}.abs()",
    "{c}.real",
    "{c}.imag",
    "{c}.angle()",
    "{c} * {c}",
    "torch.fft.irfft({c}, dim={axis})",
    "torch.fft.ifft({c}, dim={axis})",
    "torch.complex({x}, {like})",
    "{c}.conj()",
    "torch.fft.fft2({x2+})",
    "torch.fft.fftshift({x}, {axis})",
    "torch.fft.rfft({x}, n={int:2:12})",
    "{c} + {x}",
    "{c}.exp()",
    "torch.polar({x}.abs(), {like})",
    "torch.stft({x2}, 8, 4, window=torch.hann_window(8), return_complex=True, center={flag}).abs()",
]


def signal(d: Draw) -> None:
    d.input(d.randn(*[d.integer(1, 16) for _ in range(d.integer(1, 3))]))
    grow(d, [(6, SIGNALS), (1, ELEMENTWISE), (1, MOVES), (1, REDUCTIONS)], 4, 10)


# Sizes that are open

OPEN = [
    *ELEMENTWISE,
    *REDUCTIONS,
    *layers.JOINTS,
    *layers.NORMS,
    *[row for row in MOVES if "unflatten" not in row and "expand({int" not in row],
    "{x2+} @ {x2+}.mT",
    "torch.einsum('...ij,...kj->...ik', {x2+}, {like})",
    "~{x3+}.reshape({x}.shape[0], -1)",
    "~{x3}.reshape({x}.shape[0] * {x}.shape[1], {x}.shape[2])",
    "{x2+} + torch.arange({x}.shape[-1])",
    "{x2+}.masked_fill(torch.ones({x}.shape[-2], {x}.shape[-1], dtype=torch.bool).triu(1), 0.0)",
    "~F.pad({x2+}, (0, {x}.shape[-2]))",
    "{x2+} / {x}.shape[-1]",
    "~{x2+}[:, : {x}.shape[1] // 2 + 1]",
    "~torch.zeros({x}.shape[0], 2) + 1",
    "~{x2+}[:, torch.arange({x}.shape[1]).flip(0)]",
    "F.interpolate({x4}, scale_factor={one:2|0.5|1.5}, mode='{one:nearest|bilinear}')",
    "F.interpolate({x3}, size={x}.shape[-1] * 2 + 1, mode='linear')",
    "F.adaptive_avg_pool2d({x4}, {int:1:2})",
    "~{x2+}.expand(2, *{x}.shape)",
    "~torch.gather({x2+}, -1, {x}.argsort(stable=True, dim=-1))",
    "~{x2+}.unflatten(-1, (1, -1))",
    "~{x3+}.transpose(1, 2).flatten(2)",
]


def dynamic(d: Draw) -> None:
    kind = d.choice(["image", "sequence", "plain"])
    x = {
        "image": lambda: d.randn(2, d.choice([3, 8, 16]), d.integer(9, 14), d.integer(15, 20)),
        "sequence": lambda: d.randn(2, d.integer(4, 7), d.choice([8, 12, 16])),
        "plain": lambda: d.randn(*[d.integer(2, 9) for _ in range(d.integer(1, 3))]),
    }[kind]()
    name = d.input(x)
    axes = {"image": [0, 2, 3], "sequence": [0, 1], "plain": list(range(x.ndim))}[kind]
    chosen = d.rng.sample(axes, d.integer(1, len(axes)))
    d.program.dynamic[name] = dict.fromkeys(chosen, Dim.AUTO)
    menu = {
        "image": [(4, layers.unit), (1, layers.POOLS), (3, OPEN)],
        "sequence": [(2, layers.linear), (1, layers.attention), (4, OPEN)],
        "plain": [(1, OPEN)],
    }[kind]
    grow(d, menu, 3, 8)
    for _ in range(3):
        size = [d.choice([1, 2, 3, n, n + 1, 2 * n, n + 5]) if axis in chosen else n for axis, n in enumerate(x.shape)]
        d.program.runs.append({name: d.randn(*size)})


# Special values

EXTREME = torch.tensor(
    [torch.inf, -torch.inf, torch.nan, -0.0, 0.0, 3e38, -3e38, 1.0, -1.0, 0.5, -2.0, 1e30, 1e-30, 88.8, -104.0]
)


def special(d: Draw) -> None:
    """Infinities, NaN, zeros with a sign and the largest numbers among others, or alone."""
    for _ in range(d.choice([1, 2])):
        size = [d.choice([1, 2, 3, 5, 17]) for _ in range(d.choice([1, 2, 2, 3, 4]))]
        x = d.randn(*size)
        at = torch.rand(size, generator=d.by) < d.choice([0.05, 0.3, 1.0])
        d.input(torch.where(at, EXTREME[d.integers(0, len(EXTREME), size)], x))
    # torch itself gives one or the other for these, by the place in a vector.
    rows = [
        [row for row in each if "gelu" not in row and "cumprod" not in row]
        for each in (ELEMENTWISE, REDUCTIONS, layers.ACTIVATIONS)
    ]
    grow(d, [(5, rows[0]), (3, rows[1]), (2, rows[2]), (2, MOVES), (0.5, layers.POOLS), (0.5, layers.JOINTS)], 1, 4)


# Trained, and quantized


def training(d: Draw) -> None:
    """One image or sequence, and what torch differentiates."""
    d.input(image(d, [1, 3, 4, 8, 16], 4, 14) if d.coin(0.7) else d.randn(2, d.integer(2, 7), d.choice([4, 8])))
    smooth = [
        row for row in ELEMENTWISE if not any(word in row for word in ("floor", "round", "sign", "digamma", "lgamma"))
    ]
    menu = [
        (4, layers.unit), (2, layers.linear), (2, layers.JOINTS), (1, layers.NORMS), (2, MOVES), (1, layers.attention),
        (1, smooth), (0.5, REDUCTIONS), (0.5, layers.RESIZES),
    ]  # fmt: skip
    grow(d, menu, 2, 6)


def quantized(d: Draw) -> None:
    """What a quantizer takes: convolutions, products, joints, pools, padding, resizing."""
    d.input(image(d, [1, 3, 4, 8, 16], 5, 16))
    grow(d, [(5, layers.unit), (3, layers.JOINTS), (2, layers.POOLS), (1, layers.RESIZES), (1.5, MOVES)], 2, 8)
    line(d, "~{x4}.flatten(1)")
    layers.linear(d)


FAMILIES: dict[str, Callable[[Draw], None]] = {
    each.__name__: each
    for each in (
        first,
        winograd,
        images,
        moving,
        odd,
        indexing,
        transformer,
        recurrent,
        types,
        signal,
        flow,
        states,
        mutating,
        cache,
        dynamic,
        special,
        training,
        quantized,
    )
}


def draw(family: str, rng: Any) -> Program:
    d = Draw(rng, exact=family == "special")
    FAMILIES[family](d)
    return d.finish()
