"""Lines as data: texts with holes that a draw fills.

{x} a real value, the last one of this text if there is one; {x4} another, of four axes, {x3+} of three or more;
{n} integers of 64 bits, {b} truths, {c} complex numbers, {any} anything
{y} a value that goes with the one before by broadcasting, {like} one of its shape and type
{axis} {axes} of the value before, {len} the size of the axis before
{int:1:4} {num:0.1:2} {one:a|b|c} {flag}
{p:3,4} a parameter, {w} one for the last axis of the value before, {w:1} for its axis 1
"""

from __future__ import annotations

import re
from typing import Any

import torch

from fuzz.networks.program import Draw, Tensor

HOLE = re.compile(r"\{(\w+?\+?)(?::([^}]*))?\}")
TYPES = {"x": torch.float32, "n": torch.int64, "b": torch.bool, "c": torch.complex64}


def _goes_with(x: Tensor, y: Tensor) -> bool:
    return y.dtype == x.dtype and all(m == n or 1 in (m, n) for m, n in zip(x.shape[::-1], y.shape[::-1], strict=False))


class Filling:
    """One text's holes."""

    def __init__(self, d: Draw) -> None:
        self.d = d
        self.name = ""
        self.length = 0
        self.picked: dict[str, str] = {}
        self.missing = False

    @property
    def x(self) -> Tensor:
        return self.d.value(self.name)

    def __call__(self, hole: re.Match[str]) -> str:
        kind, told = hole[1], hole[2]
        letter, rank = re.fullmatch(r"([a-z]+)(\d*\+?)", kind).groups()  # type: ignore[union-attr]
        if letter == "any" or letter in TYPES:
            found = None if rank else self.picked.get(letter)
            found = found or self.d.pick(lambda x: self._fits(x, letter, rank))
            self.picked[letter] = found or ""
        elif letter in ("y", "like") and self.name:
            x = self.x
            fits = (
                (lambda y: _goes_with(x, y)) if letter == "y" else (lambda y: y.shape == x.shape and y.dtype == x.dtype)
            )
            found = self.d.pick(fits, late=0.3)
        else:
            return str(self._number(letter, told))
        self.missing |= found is None
        if letter not in ("y", "like"):
            self.name = found or self.name
        return str(found)

    def _fits(self, x: Tensor, letter: str, rank: str) -> bool:
        if letter != "any" and x.dtype != TYPES[letter]:
            return False
        if not rank:
            return True
        return x.ndim >= int(rank[:-1]) if rank.endswith("+") else x.ndim == int(rank)

    def _number(self, kind: str, told: str | None) -> Any:
        d = self.d
        if kind == "int":
            return d.integer(*map(int, str(told).split(":")))
        if kind == "num":
            low, high = map(float, str(told).split(":"))
            return round(low + (high - low) * d.rng.random(), 3)
        if kind == "one":
            return d.choice(str(told).split("|"))
        if kind == "flag":
            return d.coin()
        if kind == "p":
            return d.param(d.randn(*map(int, str(told).split(","))) * 0.5)
        if kind == "len":
            return self.length
        if not self.name or (self.x.ndim == 0 and kind != "w"):
            self.missing = True
            return 0
        if kind == "axis":
            axis = d.integer(-self.x.ndim, self.x.ndim - 1)
            self.length = self.x.shape[axis]
            return axis
        if kind == "axes":
            some = d.rng.sample(range(self.x.ndim), d.integer(1, self.x.ndim))
            return tuple(axis - self.x.ndim if d.coin(0.3) else axis for axis in some)
        if kind == "w":
            axis = int(told or -1)
            if not -self.x.ndim <= axis < self.x.ndim:
                self.missing = True
                return 0
            return d.param(d.randn(self.x.shape[axis]))
        raise AssertionError(kind)


def line(d: Draw, row: str) -> str | None:
    """Draws what fills the row and adds it; `row` may begin with `~` (moves) and `2=` (results)."""
    moves, row = row.startswith("~"), row.lstrip("~")
    count = 1
    if row[1:2] == "=":
        count, row = int(row[0]), row[2:]
    filling = Filling(d)
    had = dict(d.program.params)
    text = HOLE.sub(filling, row)
    made = None if filling.missing else d.emit(text, count, moves)
    if made is None:
        d.program.params.clear()
        d.program.params.update(had)
    return made


# Those with a mark are torch.nn.functional's.
UNARY = """
relu sigmoid tanh exp neg abs square sin cos erf sign floor ceil round trunc sqrt rsqrt reciprocal log log1p
expm1 exp2 log2 tan atan asin sinh cosh asinh acosh atanh erfc frac logit sgn lgamma digamma softplus? gelu?
silu? mish? hardtanh? hardswish? hardsigmoid? elu? selu? celu? relu6? softsign? tanhshrink? logsigmoid?
"""

ELEMENTWISE = [
    *(f"F.{name[:-1]}({{x}})" if name.endswith("?") else f"torch.{name}({{x}})" for name in UNARY.split()),
    "{x} + {y}",
    "{x} - {y}",
    "{x} * {y}",
    "{x} / {y}",
    "torch.maximum({x}, {y})",
    "torch.minimum({x}, {y})",
    "torch.pow({x}, {one:2|3|0.5|-1|1.7})",
    "torch.pow({x}.abs() + 0.1, {y})",
    "torch.atan2({x}, {y})",
    "torch.fmod({x}, {num:0.3:2})",
    "torch.remainder({x}, {num:-2:2})",
    "torch.hypot({x}, {y})",
    "torch.lerp({x}, {y}, {num:0:1})",
    "torch.addcmul({x}, {y}, {y}, value={num:-1:1})",
    "torch.addcdiv({x}, {y}, {y}.abs() + 0.5)",
    "torch.clamp({x}, {num:-1:0}, {num:0:1})",
    "{x}.clamp(min={num:-1:1})",
    "{x}.clamp(max={num:-1:1})",
    "F.leaky_relu({x}, {num:-0.5:1.5})",
    "F.prelu({x}, {p:1})",
    "F.gelu({x}, approximate='tanh')",
    "F.softplus({x}, {num:0.3:3}, {num:1:20})",
    "F.hardshrink({x}, {num:0:1})",
    "F.softshrink({x}, {num:0:1})",
    "F.threshold({x}, {num:-1:1}, {num:-2:2})",
    "F.elu({x}, {num:0.2:2})",
    "F.hardtanh({x}, {num:-1:0}, {num:0:2})",
    "F.glu({x}, {axis})",
    "torch.where({x} > {num:-1:1}, {x}, {y})",
    "torch.where({x} > {y}, {y}, {num:-1:1})",
    "{x} * {num:-2:2} + {num:-1:1}",
    "{num:-2:2} - {x}",
    "{num:0.1:2} / ({x}.abs() + 0.3)",
    "{x} * {w}",
    "{x} + {w}",
    "torch.nan_to_num({x})",
    "torch.copysign({x}, {y})",
    "torch.heaviside({x}, {y})",
    "torch.logaddexp({x}, {y})",
    "torch.xlogy({x}.abs(), {y}.abs() + 0.1)",
    "torch.rsub({x}, {y}, alpha={num:0.5:2})",
    "torch.add({x}, {y}, alpha={num:-2:2})",
    "torch.floor_divide({x}, {num:0.3:1})",
]

REDUCTIONS = [
    *(f"torch.{name}({{x}}, {{axes}}, keepdim={{flag}})" for name in ["sum", "mean", "amax", "amin", "logsumexp"]),
    *(f"torch.{name}({{x}}, {{axis}}, keepdim={{flag}})" for name in ["prod", "sum", "mean", "argmax", "argmin"]),
    "torch.var({x}, {axes}, correction={int:0:1}, keepdim={flag})",
    "torch.std({x}, {axes}, keepdim={flag})",
    "2=torch.var_mean({x}, {axes}, keepdim={flag})",
    "torch.linalg.vector_norm({x}, {one:1|2|3|0.5|float('inf')|0}, {axes}, keepdim={flag})",
    "{x}.sum()",
    "{x}.mean()",
    "{x}.amax()",
    "2=torch.max({x}, {axis}, keepdim={flag})",
    "2=torch.min({x}, {axis}, keepdim={flag})",
    "torch.median({x}, {axis}, keepdim={flag})[0]",
    "torch.kthvalue({x}, 1, {axis}, keepdim={flag})[0]",
    "({x} > {num:-1:1}).any({axis}, keepdim={flag})",
    "({x} > {num:-2:0}).all({axis})",
    "torch.softmax({x}, {axis})",
    "torch.log_softmax({x}, {axis})",
    "torch.cumsum({x}, {axis})",
    "torch.cumprod({x}, {axis})",
    "2=torch.cummax({x}, {axis})",
    "torch.logcumsumexp({x}, {axis})",
    "torch.count_nonzero({x} > 0, {axis})",
    "F.normalize({x}, dim={axis})",
    "torch.diff({x}, dim={axis})",
    "F.layer_norm({x}, {x}.shape[-{int:1:2}:])",
    "F.rms_norm({x}, {x}.shape[-1:])",
    "F.softmin({x}, {axis})",
    "torch.nansum({x}, {axes})",
    "{x}.argmax()",
    "2=torch.sort({x}, {axis}, descending={flag}, stable=True)",
    "torch.topk({x}, 1, {axis})[0]",
    "torch.quantile({x}, {num:0:1}, {axis}, keepdim={flag})",
    "torch.trapezoid({x}, dim={axis})",
]

MOVES = [
    "~torch.cat([{x}, {like}], {axis})",
    "~torch.cat([{x}, {x}, {like}], {axis})",
    "~torch.stack([{x}, {like}], {axis})",
    "~2=torch.chunk({x}, 2, {axis})",
    "~3=torch.chunk({x}, 3, {axis})",
    "~{x}.narrow({axis}, 0, 1)",
    "~2=torch.tensor_split({x}, 2, {axis})",
    "~{x}.flip({axes})",
    "~torch.roll({x}, {int:-3:3}, {axis})",
    "~{x}.transpose({axis}, {axis})",
    "~{x}.unsqueeze({axis})",
    "~{x}.squeeze({axis})",
    "~{x}.squeeze()",
    "~{x1}[{int:0:2}:]",
    "~{x2+}[:, {int:0:2}:]",
    "~{x2+}[{int:0:1}::{int:1:3}]",
    "~{x2+}[..., {int:0:2}::{int:1:3}]",
    "~{x2+}[..., :-1]",
    "~{x2+}[:, -{int:1:3}:]",
    "~{x2+}[:, None, {int:0:1}]",
    "~{x2+}.select({axis}, -1)",
    "~{x2+}.flatten({int:0:1})",
    "~{x3+}.flatten(1)",
    "~{x2+}.flatten(-2)",
    "~{x}.reshape(-1)",
    "~{x2+}.reshape({x}.shape[0], -1)",
    "~{x2}.t()",
    "~{x2+}.mT",
    "~{x3+}.movedim({int:0:2}, {int:-3:-1})",
    "~{x}.unflatten({axis}, (-1, {int:1:4}))",
    "~{x4}.permute(0, 2, 3, 1)",
    "~{x4}.permute(0, 3, 1, 2)",
    "~{x3}.permute(2, 0, 1)",
    "~{x3}.permute(1, 2, 0)",
    "~{x5}.permute(0, 2, 1, 4, 3)",
    "~{x4}.permute(3, 1, 0, 2)",
    "~F.pad({x}, ({int:-1:2}, {int:-1:2}))",
    "~F.pad({x2+}, ({int:0:2}, {int:-1:2}, {int:0:3}, 0), value={num:-1:1})",
    "~F.pad({x3+}, ({int:0:2}, {int:0:2}), mode='{one:reflect|replicate|circular}')",
    "~F.pad({x4}, ({int:0:2}, {int:0:2}, {int:0:2}, {int:0:2}), mode='{one:reflect|replicate|circular|constant}')",
    "~{x}.repeat_interleave({int:1:3}, {axis})",
    "~torch.tile({x}, ({int:1:2}, {int:1:2}))",
    "~{x}.expand({int:2:3}, *{x}.shape)",
    "~torch.tril({x2+}, {int:-1:2})",
    "~torch.triu({x2+}, {int:-1:2})",
    "~torch.diagonal({x2+}, {int:-1:1}, -2, -1)",
    "~{x1}.diag_embed({int:-1:1})",
    "~{x2+}.unfold({axis}, {int:1:3}, {int:1:2})",
    "~torch.rot90({x2+}, {int:-1:3}, (-2, -1))",
    "~F.channel_shuffle({x4}, {int:1:4})",
    "~F.pixel_shuffle({x4}, 2)",
    "~F.pixel_unshuffle({x4}, 2)",
    "~{x}.clone()",
    "~{x}.contiguous()",
    "~{x4}.contiguous(memory_format=torch.channels_last)",
    "~{x2+}.swapaxes({axis}, {axis}).reshape({x}.shape)",
    "~torch.broadcast_to({x}, (2, *{x}.shape))",
    "~F.unfold({x4}, {int:1:3}, padding={int:0:1}, stride={int:1:2})",
    "~torch.meshgrid({x1}, {x1}, indexing='ij')[{int:0:1}]",
    "~torch.block_diag({x2}, {x2})",
    "~torch.hstack([{x}, {like}])",
    "~torch.vstack([{x}, {like}])",
    "~{x}.ravel()",
    "~torch.atleast_3d({x})",
    "~torch.select_scatter({x2+}, {x}.select(0, 0) * 2, 0, -1)",
    "~torch.slice_scatter({x2+}, {x}[:1] + 1, 0, 0, 1)",
]

PRODUCTS = [
    "{x2+} @ {x2+}",
    "{x2+} @ {x2+}.mT",
    "{x1} @ {x1}",
    "{x2+} @ {x1}",
    "torch.bmm({x3}, {x3}.mT)",
    "torch.outer({x1}, {x1})",
    "torch.einsum('...ij,...kj->...ik', {x2+}, {like})",
    "torch.einsum('bij,bkj->bik', {x3}, {x3})",
    "torch.einsum('bchw,bdhw->bcd', {x4}, {x4})",
    "torch.einsum('bchw,bchw->bh', {x4}, {like})",
    "torch.baddbmm({x3}, {x3}, {x3}, beta={num:0:2}, alpha={num:0:1})",
    "torch.addmm({x}, {x2}, {x2}.t(), beta={num:0:2})",
    "torch.tensordot({x2+}, {like}, 1)",
    "torch.inner({x}, {like})",
    "torch.cdist({x2+}, {like})",
    "F.cosine_similarity({x}, {like}, {axis})",
    "torch.dot({x1}, {like})",
    "torch.kron({x2}, {x2})",
    "{x2+}.mT @ {like}",
    "torch.linalg.cross({x}, {like}, dim={axis})",
    "torch.chain_matmul({x2}, {x2})",
    "F.pairwise_distance({x}, {like})",
]

INDICES = [
    "{x}.argsort(stable=True, dim={axis})",
    "torch.argmax({x}, {axis})",
    "torch.argmax({x}, {axis}, keepdim=True)",
    "torch.arange({x1+}.shape[-1])",
    "({x} * 3).to(torch.int64)",
    "{n} % {int:1:5}",
    "{n} + {int:-2:2}",
    "{n} * {n}",
    "torch.bucketize({x}, torch.tensor([-1.0, 0.0, 0.7]))",
    "~torch.gather({x}, {axis}, {n}.clamp(0, {len} - 1))",
    "~{x}.index_select({axis}, {n1} % {len})",
    "~{x1+}[{n} % {x}.shape[0]]",
    "~{x2+}[:, {n} % {x}.shape[1]]",
    "~{x2+}[{n} % {x}.shape[0], {n} % {x}.shape[1]]",
    "~{x3+}[..., {n1} % {x}.shape[-2], :]",
    "~{x2+}[[0, -1]]",
    "~{x3+}[:, [0, -1], 0]",
    "~{x3+}[0, :, {n1} % {x}.shape[2]]",
    "~torch.take_along_dim({x}, {x}.argsort(stable=True, dim={axis}), {axis})",
    "~torch.scatter({x}, {axis}, {n} % {len}, {x})",
    "torch.scatter_add({x}, {axis}, {x}.argsort(stable=True, dim={axis}), {x})",
    "~torch.scatter({x}, {axis}, {x}.argsort(stable=True, dim={axis}), {num:-1:1})",
    "torch.scatter_reduce({x}, {axis}, {n} % {len}, {x}, '{one:sum|prod|amax|amin|mean}', include_self={flag})",
    "~torch.index_put({x2+}, ({n} % {x}.shape[0],), torch.tensor({num:-1:1}))",
    "torch.index_put({x1}, ({n} % {x}.shape[0],), torch.tensor({num:-1:1}), accumulate=True)",
    "~torch.index_put({x2+}, ({x} > {num:0:1},), torch.tensor(0.5))",
    "torch.index_add({x}, {axis}, torch.tensor([0]), {x}.narrow({axis}, 0, 1))",
    "~F.embedding({n} % {int:1:6}, {p:6,4})",
    "~F.one_hot({n} % {int:1:5}, 5).float()",
    "torch.topk({x1+}, {int:1:3}, {axis}, largest={flag})[0]",
    "2=torch.sort({n}, stable=True)",
    "torch.cumsum({n}, 0)",
    "~{x}.masked_fill({x} > {num:-1:1}, {num:-1:1})",
    "torch.masked_fill({x}, {b}, {num:-1:1})",
    "{n} // {int:1:4}",
    "torch.searchsorted(torch.tensor([-1.0, -0.2, 0.3, 1.5]), {x}, right={flag})",
    "{n}.float() * 0.1",
    "{b}.float()",
    "{x} > {y}",
    "{n} > {int:0:2}",
    "{b} & ~{b}",
    "{b} | ({x} < 0)",
    "torch.where({b}, {num:-1:1}, {num:-1:1})",
    "~torch.index_fill({x}, {axis}, torch.tensor([0]), {num:-1:1})",
    "~torch.take({x}, {n} % 2)",
    "torch.bincount({n1}.clamp(0, 5), minlength=6)",
    "F.embedding_bag({n2} % 4, {p:6,4}, mode='{one:sum|mean}')",
    "torch.isin({n}, torch.tensor([0, 2]))",
    "~torch.masked_select({x1}, {x} > 9).sum()",
    "F.cross_entropy({x2}, {n1} % {x}.shape[1])",
    "~torch.tril_indices({int:2:4}, 3)[0]",
]
