"""Branches that refuse what the other one is meant for: only the one that is taken runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import hetnn
from importers.onnx_models import model_of

TARGETS = ("cpu", "cpu+relu-only")


@pytest.mark.parametrize("target", TARGETS)
def test_an_index_outside_matters_where_it_is_read(target: str) -> None:
    text = """agraph (bool c, float[n] x, int64[k] i) => (float[m] y) {
      y = If (c) <then_branch = a () => (float[p] p) { q = Gather(x, i) p = Exp(q) },
                  else_branch = b () => (float[r] r) { r = Neg(x) }>
    }"""
    exe = hetnn.compile(model_of(text, 18), target)
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_allclose(exe(np.array(True), x, np.array([2, -1])), np.exp(x[[2, -1]]), rtol=1e-6)
    for indices in ([0, 1], [9], [-5], []):
        np.testing.assert_array_equal(exe(np.array(False), x, np.array(indices, np.int64)), -x)
    with pytest.raises(hetnn.InvalidModel, match="index 9 is outside an axis of 4"):
        exe(np.array(True), x, np.array([9]))


def test_branches_in_branches_and_in_loops() -> None:
    text = """agraph (bool c, bool d, int64 n, float[4] x, int64[2] i) => (float[4] y) {
      y = Loop(n, , x) <body = b (int64 k, bool g, float[4] s) => (bool h, float[4] t) {
        h = Identity(g)
        t = If(c) <then_branch = p () => (float[4] u) {
          u = If(d) <then_branch = q () => (float[4] v) { w = Gather(s, i) v = Concat<axis = 0>(w, w) },
                     else_branch = r () => (float[4] v) { v = Add(s, s) }> },
                   else_branch = o () => (float[4] u) { u = Neg(s) }>
      }>
    }"""
    exe = hetnn.compile(model_of(text, 18))
    x = np.array([1, 2, 3, 4], np.float32)

    def run(c: bool, d: bool, indices: list[int]) -> Any:
        return exe(np.array(c), np.array(d), np.array(3), x, np.array(indices))

    np.testing.assert_array_equal(run(True, True, [1, 2]), np.array([2, 3, 2, 3], np.float32))
    np.testing.assert_array_equal(run(True, False, [7, 7]), x * 8)
    np.testing.assert_array_equal(run(False, True, [7, 7]), -x)
    with pytest.raises(hetnn.InvalidModel, match="index 7 is outside"):
        run(True, True, [7, 7])


class Picks(torch.nn.Module):
    def forward(self, x: torch.Tensor, i: torch.Tensor) -> Any:
        def inner(x: torch.Tensor, i: torch.Tensor) -> Any:
            return torch.cond(i.max() < 4, lambda x, i: x[i], lambda x, i: x[:2] * 2, (x, i))

        return torch.cond(i.sum() > 5, inner, lambda x, i: -x[:2], (x, i))


class Divides(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> Any:
        return torch.cond((b != 0).all(), lambda a, b: a // b, lambda a, b: a + 1, (a, b))


class AsLongAsSaid(torch.nn.Module):
    def forward(self, x: torch.Tensor, i: torch.Tensor) -> Any:
        def long(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
            n = i[0].item()
            torch._check(n >= 1)
            torch._check(n < 10)
            return x * torch.ones(n).sum()

        return torch.cond(i[0] > 0, long, lambda x, i: x - 1, (x, i))


class PicksInRounds(torch.nn.Module):
    def forward(self, x: torch.Tensor, i: torch.Tensor) -> Any:
        def body(k: torch.Tensor, y: torch.Tensor) -> Any:
            def pick(y: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
                return y.index_add(0, i, y[:2])

            return k + 1, torch.cond(y.sum() > 0, pick, lambda y, i: y.neg(), (y, i))

        zero = torch.tensor(0)
        return torch._higher_order_ops.while_loop(lambda k, y: k < i.sum() % 4 + 1, body, (zero, x))[1]  # type: ignore[attr-defined]


X = torch.arange(4.0)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("module", "given"),
    [
        (Picks(), [(X, torch.tensor(i)) for i in ([3, 3], [9, 9], [-1, 0], [-11, 0])]),
        (Divides(), [(torch.tensor([7, 8]), torch.tensor(b)) for b in ([2, 3], [2, 0])]),
        (AsLongAsSaid(), [(X, torch.tensor([n, 0])) for n in (3, 9, 0, -4)]),
        (PicksInRounds(), [(X, torch.tensor([1, 2])), (X * 0, torch.tensor([9, 8]))]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_torchs_branches(module: torch.nn.Module, given: list[tuple[torch.Tensor, ...]], target: str) -> None:
    exe = hetnn.compile(module, target, args=given[0])
    for inputs in given:
        torch.testing.assert_close(torch.from_numpy(exe(*(x.numpy() for x in inputs))), module(*inputs))


def test_bodies_run_by_kernels_give_what_meanings_give() -> None:
    """Products with weights, convolutions, norms and softmax inside a loop; two shapes in one executable."""

    class Rounds(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.conv, self.norm = (
                torch.nn.Linear(32, 32),
                torch.nn.Conv1d(4, 4, 3, padding=1),
                torch.nn.LayerNorm(32),
            )

        def forward(self, x: torch.Tensor, n: torch.Tensor) -> Any:
            def body(k: torch.Tensor, y: torch.Tensor) -> Any:
                y = torch.tanh(self.linear(y)) + self.conv(y.reshape(-1, 4, 32)).reshape(y.shape)
                return k + 1, torch.softmax(self.norm(y) @ self.norm(y).mT, -1) @ y

            return torch._higher_order_ops.while_loop(lambda k, y: k < n.sum(), body, (torch.tensor(0), x))[1]  # type: ignore[attr-defined]

    torch.manual_seed(0)
    module = Rounds().eval()
    x, n = torch.randn(8, 32), torch.tensor([5])
    wanted = module(x, n).detach()
    for target in ("cpu", "reference"):
        exe = hetnn.compile(module, target, args=(x, n))
        for _ in range(2):
            torch.testing.assert_close(torch.from_numpy(exe(x.numpy(), n.numpy())), wanted, rtol=1e-4, atol=1e-5)


def test_attributes_that_are_true_are_so_in_bodies() -> None:
    """Joined with what stands there, kept as an axis, counted from the end."""

    class Rounds(torch.nn.Module):
        def forward(self, x: torch.Tensor, i: torch.Tensor) -> Any:
            def body(k: torch.Tensor, y: torch.Tensor) -> Any:
                y = y.index_add(0, i, y[:2]) + y.mean(0, keepdim=True) + y[-i[:1]]
                return k + 1, y.index_reduce(0, i, y[:2], "amax", include_self=False)

            return torch._higher_order_ops.while_loop(lambda k, y: k < i.sum(), body, (torch.tensor(0), x))[1]  # type: ignore[attr-defined]

    given = (torch.randn(4, 3), torch.tensor([1, 2]))
    for target in ("cpu", "reference"):
        exe = hetnn.compile(Rounds(), target, args=given)
        torch.testing.assert_close(torch.from_numpy(exe(*(x.numpy() for x in given))), Rounds()(*given))


HEAVY = """agraph (bool c, float[2,3] x, float[3,3] w, float[1,2,3] t) => (float[1,2,3] z) {
  y = If (c) <then_branch = a () => (float[2,3] p) { p = MatMul(x, w) },
              else_branch = b () => (float[OTHER] r) { BRANCH }>
  z = Add(y, t)
}"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("alike", [True, False])
def test_of_branches_that_take_long_one_runs(target: str, alike: bool) -> None:
    branch = "r = Neg(x)" if alike else "zero = Constant<value_ints = [0]>() q = Neg(x) r = Unsqueeze(q, zero)"
    text = HEAVY.replace("BRANCH", branch).replace("OTHER", "2,3" if alike else "1,2,3")
    exe = hetnn.compile(model_of(text, 18), target)
    assert exe.report(format="dict")["bodies"]
    x, w = np.arange(6, dtype=np.float32).reshape(2, 3), np.full((3, 3), 2, np.float32)
    t = np.ones((1, 2, 3), np.float32)
    np.testing.assert_allclose(exe(np.array(True), x, w, t), (x @ w)[None] + 1)
    np.testing.assert_array_equal(exe(np.array(False), x, w, t), -x[None] + 1)
