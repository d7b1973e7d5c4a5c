"""What is kept from run to run, and what is written in place."""

from __future__ import annotations

import torch

from fuzz.networks import layers
from fuzz.networks.growing import grow
from fuzz.networks.program import Draw
from fuzz.networks.rows import ELEMENTWISE, MOVES, REDUCTIONS, line

WRITES = [
    "{s}.copy_({x}.mean() + {s})",
    "{s}.add_({num:-1:1})",
    "{s}.mul_({num:0.2:0.9})",
    "{s}.copy_({s}.flip(0))",
    "{s}[0].fill_({num:-1:1})",
    "{s}[..., :1].add_({x}.mean())",
    "{s}.copy_(torch.roll({s}, 1, 0))",
    "{s}.copy_({t})",
    "{s}.zero_()",
    "{s}.lerp_({t}, 0.3)",
    "{s}[-1:].copy_({s}[:1])",
    "{s}.clamp_(-1, 1)",
    "{s}.index_copy_(0, torch.tensor([0]), {s}[-1:] * 0.5)",
    "{s}.sub_({s}.mean())",
    "{s}.copy_({s} * 0.9 + 0.1 * {x}.amax())",
    "{s}.relu_()",
    "{s}[1:].copy_({s}[:-1].clone())",
    "{s}.masked_fill_({s} > 0.7, 0.1)",
    "{s}.index_add_(0, torch.tensor([0]), {s}[:1])",
]
READS = [
    "{s} + {num:-1:1}",
    "{s} * {x}.mean()",
    "{s}.sum()",
    "~{s}.clone()",
    "~torch.cat([{s}, {t}], 0)",
    "{s}.sigmoid()",
    "{x} + {s}.mean()",
    "~{s}.reshape(-1)",
    "~{s}[0]",
    "~{s}.t()",
    "{s}.cumsum(0)",
    "~{s}.flip(0)",
]
INPLACE = [
    "~{x}.add_({num:-1:1})",
    "~{x}.mul_({num:0.3:1})",
    "~{x1+}[0].add_(1.0)",
    "~{x2+}[:, :1].mul_(0.5)",
    "~{x}.relu_()",
    "~{x2+}.select(1, 0).fill_(0.3)",
    "~{x2+}.t().add_(0.2)",
    "~{x}.copy_({like})",
    "~{x1+}.index_fill_(0, torch.tensor([0]), 0.7)",
    "~{x}.clamp_(-0.5, 0.5)",
    "~{x}.view(-1).sub_(0.1)",
    "~F.relu({x}, inplace=True)",
    "~{x}.zero_()",
]


def states(d: Draw) -> None:
    size = [d.choice([1, 2, 3, 4]), d.choice([1, 2, 3, 4])]
    held = [d.state(d.randn(*size)) for _ in range(d.choice([1, 2, 2]))]
    if d.coin(0.3):
        counter = d.state(torch.zeros((), dtype=torch.int64))
        d.emit(f"{counter}.add_(1)", 0, moves=True)
        d.emit(f"{held[0]} * {counter}.float()", 1)
    d.input(d.randn(*size))
    for _ in range(d.integer(3, 9)):
        if d.coin(0.25):
            line(d, d.choice(INPLACE + MOVES[:40]))
            continue
        s, t = d.choice(held), d.choice(held)
        writes = d.coin()
        row = d.choice(WRITES if writes else READS).replace("{s}", s).replace("{t}", t)
        line(d, ("~0=" if writes else "") + row) if writes else line(d, row)
    d.program.runs += [{name: d.randn(*x.shape) for name, x in d.program.runs[0].items()} for _ in range(3)]


def mutating(d: Draw) -> None:
    """Values written in place, through views of them too."""
    d.input(d.randn(*[d.choice([1, 2, 3, 4]) for _ in range(d.choice([1, 2, 3]))]))
    d.emit("x0 * 1.0")
    grow(d, [(5, INPLACE), (3, MOVES), (2, ELEMENTWISE), (1, REDUCTIONS)], 4, 12)


def cache(d: Draw) -> None:
    """Keys and values that an attention keeps from run to run."""
    batch, most, width = d.choice([1, 2]), d.choice([4, 6]), d.choice([4, 8])
    keys, values = d.state(torch.zeros(batch, most, width)), d.state(torch.zeros(batch, most, width))
    at = d.state(torch.zeros((), dtype=torch.int64))
    x = d.input(d.randn(batch, 1, width))
    k, v, q = (d.emit(f"F.linear({x}, {d.weight(width, width)})") for _ in range(3))
    how = d.integer(0, 2)
    for held, new in ((keys, k), (values, v)):
        text = [
            f"{held}.index_copy_(1, {at}.reshape(1), {new})",
            f"{held}.copy_(torch.cat([{held}[:, 1:], {new}], 1))",
            f"{held}.copy_(torch.where((torch.arange({most}) == {at})[None, :, None], {new}, {held}))",
        ][how]
        d.emit(text, 0, moves=True)
    mask = "None" if how == 1 else f"(torch.arange({most}) <= {at})[None, None, :]"
    d.emit(f"F.scaled_dot_product_attention({q}, {keys}, {values}, {mask})")
    d.emit(f"{at}.add_(1)", 0, moves=True)
    grow(d, [(1, layers.linear), (1, ELEMENTWISE), (1, layers.JOINTS)], 1, 4)
    d.program.runs += [{"x0": d.randn(batch, 1, width)} for _ in range(most - 1)]
