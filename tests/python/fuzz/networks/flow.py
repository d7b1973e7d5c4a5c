"""Control flow: branches, loops of a condition, scans, perhaps in one another."""

from __future__ import annotations

from fuzz.networks import layers
from fuzz.networks.growing import grow
from fuzz.networks.program import Draw
from fuzz.networks.rows import ELEMENTWISE, MOVES, REDUCTIONS

PURE = [
    "a.sin()",
    "a * 1.5 + 0.1",
    "a.relu() - 0.2",
    "a.tanh().flip(0)",
    "a + a.mean()",
    "torch.softmax(a, -1)",
    "a.cumsum(0) * 0.3",
    "(a > 0.1).float() - a",
    "torch.where(a > 0, a, -0.5 * a)",
    "a.abs().sqrt()",
    "a - a.amax(-1, keepdim=True)",
    "torch.sort(a, -1)[0]",
]


def body(d: Draw) -> str:
    """An expression of `a` and of its shape; perhaps with a branch inside, and a weight from outside."""
    text = d.choice(PURE)
    if d.coin(0.25):
        text = f"({text}) * {d.param(d.randn(1))}"
    if d.coin(0.2):
        yes, no = d.choice(PURE), d.choice(PURE)
        text = f"cond(a.sum() > {round(d.rng.uniform(-1, 1), 2)}, lambda a: {yes}, lambda a: {no}, (a,))"
    return text


def _cond(d: Draw) -> str | None:
    x = d.reals((1, 2, 3, 4))
    if x is None:
        return None
    when = d.choice([f"{x}.sum() > {round(d.rng.uniform(-2, 2), 2)}", f"{x}.mean() < 0.1", f"torch.tensor({d.coin()})"])
    return d.emit(f"cond({when}, lambda a: ({body(d)}).clone(), lambda a: ({body(d)}).clone(), ({x},))")


def _while(d: Draw) -> str | None:
    x = d.reals((1, 2, 3))
    if x is None:
        return None
    rounds = d.integer(0, 4)
    stop = d.choice([f"k < {rounds}", f"(k < {rounds}) & (a.abs().max() < 50)"])
    start, step = "torch.zeros((), dtype=torch.int64)", f"lambda k, a: (k + 1, ({body(d)}).clone())"
    return d.emit(f"while_loop(lambda k, a: {stop}, {step}, ({start}, {x}))", 2)


def _scan(d: Draw) -> str | None:
    xs = d.reals((2, 3, 4))
    if xs is None or d.value(xs).shape[0] == 0:
        return None
    carried = f"torch.zeros_like({xs}[0])" if d.coin() else f"{xs}[0] * 0.5"
    new = d.choice(
        ["(a + x).tanh()", "a * 0.5 + x", "torch.maximum(a, x)", "(a * x).sigmoid()", "torch.where(x > 0, x, a)"]
    )
    out = d.choice(["a + 0.5 * x", "x - a", "(a * 2).relu()", "a.sum()"])
    return d.emit(f"scan(lambda a, x: ({new}, ({out}).clone()), {carried}, {xs}, dim=0, reverse={d.coin(0.3)})", 2)


def flow(d: Draw) -> None:
    for _ in range(d.choice([1, 2])):
        d.input(d.randn(*[d.choice([1, 2, 3, 4, 8]) for _ in range(d.choice([1, 2, 2, 3]))]))
    grow(
        d,
        [(2, _cond), (2, _while), (2, _scan), (1, layers.linear), (1, ELEMENTWISE), (1, MOVES), (1, REDUCTIONS)],
        3,
        7,
    )
