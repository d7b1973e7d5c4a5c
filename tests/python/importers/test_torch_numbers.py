"""Reals, booleans and sizes that torch computes from open sizes, for many of them, as the exported program has them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim, export

import hetnn

SIZES = [*range(6, 34), 99, 100, 101, 999, 1000, 1001, 1024, 4096]


class Applies(torch.nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def agrees(function: Callable[[torch.Tensor], Any], sizes: Sequence[int] = SIZES) -> hetnn.Executable:
    program = export(Applies(function), (torch.randn(2, 12),), dynamic_shapes={"x": {1: Dim.AUTO}})
    exe, eager = hetnn.compile(program), program.module()
    for n in sizes:
        x = torch.randn(2, n)
        mine, theirs = exe(x.numpy()), eager(x)
        for a, b in zip(
            mine if isinstance(mine, tuple) else [mine],
            theirs if isinstance(theirs, tuple) else [theirs],
            strict=True,
        ):
            if isinstance(b, torch.Tensor):
                torch.testing.assert_close(torch.from_numpy(a), b, msg=lambda text, n=n: f"{n}: {text}")
            else:
                assert a == b
    return exe


def zeros(size: Callable[[int], int]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: torch.zeros(size(x.shape[1])) + x.mean()


@pytest.mark.parametrize(
    "size",
    [
        lambda n: math.ceil(n / 3),
        lambda n: math.floor(n * 1.5),
        lambda n: math.ceil((n - 5) / 4 + 1) * 4,
        lambda n: 20 + math.trunc((10 - n) / 1000),
    ],
)
def test_sizes_that_reals_give_exactly_are_expressions(size: Callable[[int], int]) -> None:
    exe = agrees(zeros(size))
    assert "found" not in repr(exe)


@pytest.mark.parametrize(
    "size",
    [
        lambda n: math.floor(n * 0.7),
        lambda n: math.ceil(n * 0.3),
        lambda n: math.floor(n / 3 * 3),
        lambda n: math.ceil(n / 3 * 1.1 + 0.3) + 1,
        lambda n: round(n / 2),
        lambda n: math.floor(torch._sym_sqrt(n)),
        lambda n: torch.sym_ite(n > 10, 4, 5),
        lambda n: math.floor(n * 0.3) * 2 + math.floor(n * 0.3),
    ],
)
def test_sizes_that_depend_on_rounding_are_computed_as_torch_does(size: Callable[[int], int]) -> None:
    assert "found" in repr(agrees(zeros(size)))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * (x.shape[1] / 2),
        lambda x: x / (x.shape[1] / 3),
        lambda x: (x.half() * (x.shape[1] / 3)).float(),
        lambda x: (10 * x).int() * (x.shape[1] / 3),
        lambda x: x + torch.sym_float(x.shape[1]) / 7,
        lambda x: x.clamp(max=x.shape[1] / 30),
        lambda x: torch.full((x.shape[1],), x.shape[1] * 0.5) + x,
        lambda x: torch.tensor(x.shape[1] / 3) + x,
        lambda x: torch.full_like(x, 1.5) ** (x.shape[1] / 3000),
        lambda x: x.where(x > x.shape[1] / 30, 0.0),
        lambda x: F.leaky_relu(x, x.shape[1] / 30),
        lambda x: F.hardtanh(x, max_val=x.shape[1] / 30),
        lambda x: F.elu(x, alpha=x.shape[1] / 30),
        lambda x: F.softplus(x, beta=x.shape[1] / 30),
        lambda x: torch.lerp(x, x * 2, x.shape[1] / 300),
        lambda x: torch.add(x, x, alpha=x.shape[1] / 300),
    ],
)
def test_reals_that_depend_on_sizes_are_operands(function: Callable[[torch.Tensor], Any]) -> None:
    agrees(function)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * (x.shape[1] > 10),
        lambda x: x * torch.sym_not(x.shape[1] > 10),
        lambda x: torch.cond(x.shape[1] > 10, lambda x: x + 1, lambda x: x - 1, (x,)),
        lambda x: torch.cond(x.shape[1] / 3 > 4.5, lambda x: x + 1, lambda x: x * (x.shape[1] / 3), (x,)),
    ],
)
def test_booleans_of_sizes(function: Callable[[torch.Tensor], Any]) -> None:
    agrees(function)


NUMBERS: dict[str, Callable[[torch.Tensor], Any]] = {
    "full": lambda x: torch.full((x.shape[1], 2), x.shape[1]),
    "full_like": lambda x: torch.full_like(x, x.shape[1] + 1),
    "new_full": lambda x: x.new_full((2,), x.shape[1]),
    "fill": lambda x: x.clone().fill_(x.shape[1]),
    "tensor": lambda x: torch.tensor([x.shape[1], 1]),
    "scalar_tensor": lambda x: torch.scalar_tensor(x.shape[1]),
    "maximum": lambda x: torch.maximum(torch.arange(20), torch.tensor(x.shape[1])),
    "scatter": lambda x: x.scatter(1, torch.tensor([[0, 1]]), x.shape[1]),
    "index_fill": lambda x: x.index_fill(1, torch.tensor([0]), x.shape[1]),
    "hardtanh": lambda x: F.hardtanh(x * 99, -x.shape[1], x.shape[1]),
    "threshold": lambda x: F.threshold(x, 0, x.shape[1]),
    "elu": lambda x: F.elu(x, x.shape[1]),
}


@pytest.mark.parametrize("function", NUMBERS.values(), ids=NUMBERS)
def test_sizes_are_numbers(function: Callable[[torch.Tensor], Any]) -> None:
    agrees(function, [6, 7, 30])


def test_numbers_as_outputs() -> None:
    program = export(
        Applies(lambda x: (x * 2, x.shape[1] / 3, x.shape[1] > 7)),
        (torch.randn(2, 12),),
        dynamic_shapes={"x": {1: Dim.AUTO}},
    )
    exe = hetnn.compile(program)
    for n in (6, 7, 8, 100):
        _, third, many = exe(np.zeros((2, n), np.float32))
        assert (third, many) == (n / 3, n > 7)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_images_that_grow_by_a_real_factor(mode: str) -> None:
    """Places between pixels are f32, so that far from the first pixel they are less exact."""
    agrees(lambda x: F.interpolate(x[:, None], scale_factor=1.5, mode=mode), range(6, 80))


@pytest.mark.parametrize(("given", "seen"), [(torch.float32, torch.int32), (torch.int16, torch.bfloat16)])
def test_the_bits_of_numbers_as_another_type(given: torch.dtype, seen: torch.dtype) -> None:
    x = (torch.randn(3, 4) * 100).to(given)
    exe = hetnn.compile(Applies(lambda x: x.view(seen).to(torch.float64)), args=(x,))
    torch.testing.assert_close(torch.as_tensor(exe(x)), x.view(seen).to(torch.float64), equal_nan=True)


def test_bits_of_another_width_are_refused() -> None:
    with pytest.raises(hetnn.Unsupported, match=r"aten\.view\.dtype: a view of f32 as i16"):
        hetnn.compile(Applies(lambda x: x.view(torch.int16)), args=(torch.randn(3, 4),))


HELD: dict[str, tuple[Callable[[torch.Tensor], Any], list[int], list[int]]] = {
    "quotient": (lambda x: F.adaptive_avg_pool1d(x, x.shape[1] // 4), [12, 13, 15], [8, 11, 16]),
    "remainder": (lambda x: x + 1 if x.shape[1] % 5 == 2 else x - 1, [2, 7, 12, 102], [3, 10, 101]),
    "expression": (lambda x: x * 2 if x.shape[1] // 2 != 5 else x, [8, 9, 12], [10, 11]),
    "inequation": (lambda x: x * 2 if x.shape[1] != 9 else x, [8, 10, 12], [9]),
    "product": (lambda x: x.sum() if x.shape[1] * x.shape[1] > 100 else x.mean(), [11, 12, 50], [3, 10]),
    "real": (lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], scale=1 / x.shape[1]), [12], [11, 13]),
}


@pytest.mark.parametrize(("function", "right", "wrong"), HELD.values(), ids=HELD)
def test_sizes_that_torch_held_to_a_condition(
    function: Callable[[torch.Tensor], Any], right: list[int], wrong: list[int]
) -> None:
    """What it exported is the program of those sizes alone: of others it refuses, and so do we."""
    exe = agrees(function, right)
    for size in wrong:
        with pytest.raises(hetnn.InvalidModel, match=r"the model is for sizes with .*x\.size\(\)\[1\]"):
            exe(torch.randn(2, size).numpy())


def test_sizes_of_nested_inputs_that_torch_held_to_a_condition() -> None:
    class Nested(torch.nn.Module):
        def forward(self, given: dict[str, Any], more: list[torch.Tensor]) -> torch.Tensor:
            a, b = given["a"], more[0]
            return a.sum() * 2 if a.shape[0] > 2 * b.shape[0] else b.sum()

    varying = {"given": {"a": {0: Dim.AUTO}}, "more": [{0: Dim.AUTO}]}
    program = export(Nested(), ({"a": torch.ones(9)}, [torch.ones(3)]), dynamic_shapes=varying)
    exe = hetnn.compile(program)
    assert exe({"a": np.ones(5, np.float32)}, [np.ones(2, np.float32)]) == 10
    with pytest.raises(hetnn.InvalidModel, match="sizes with"):
        exe({"a": np.ones(5, np.float32)}, [np.ones(3, np.float32)])


def test_sizes_of_any_number_of_inputs_that_torch_held_to_a_condition() -> None:
    class Sums(torch.nn.Module):
        def forward(self, x: torch.Tensor, *rest: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
            return x + rest[1].sum() if rest[0].shape[0] % 2 == 0 and k.shape[0] % 5 == 0 else x

    auto = {0: Dim.AUTO}
    given = (torch.ones(3), torch.ones(4), torch.ones(5))
    varying = {"x": None, "rest": (auto, auto), "k": auto}
    exe = hetnn.compile(export(Sums(), given, {"k": torch.ones(5)}, dynamic_shapes=varying))
    x, ones = np.ones(3, np.float32), {n: np.ones(n, np.float32) for n in (4, 5, 7, 10)}
    assert exe(x, ones[10], ones[7], k=ones[5]).tolist() == [8, 8, 8]
    for rest, k, text in ((5, 5, r"rest\[0\].* % 2"), (4, 4, r"k.* % 5")):
        with pytest.raises(hetnn.InvalidModel, match=text):
            exe(x, ones[rest], ones[7], k=ones[k])


def test_each_of_many_conditions_of_sizes() -> None:
    def held(x: torch.Tensor) -> torch.Tensor:
        n = x.shape[1]
        for divisor in (2, 3):
            torch._check(n % divisor == 0)
        torch._check(n != 18)
        torch._check(n * n > 100)
        return x + 1

    exe = agrees(held, [12, 24, 600])
    for size, text in ((14, r"% 3 == 0"), (15, r"% 2 == 0"), (18, r"!= 18"), (6, r"> 100|axis 1")):
        with pytest.raises(hetnn.InvalidModel, match=text):
            exe(torch.randn(2, size).numpy())


def exactly(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    a, b = n.tolist()
    torch._check(a + b == x.shape[0])
    first, second = torch.split(x, [a, b])
    return first.sum() - second.sum()


def unread(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    number = n[0].item()
    torch._check(number % 2 == 0)
    torch._check(number != 8)
    return x * 2


def real(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    total = x.sum().item()
    torch._check(total < n.shape[0] + 10.5)
    return x + 1


def chosen(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    def positive(x: torch.Tensor) -> torch.Tensor:
        torch._assert_async((x > 0).all(), "all are positive")
        return x.log()

    return torch.cond(n.sum() > 6, positive, lambda x: x * 1, (x,))


def repeated(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    def again(k: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        torch._assert_async((x < 100).all(), "less than 100")
        return k + 1, x * 2

    _, x = while_loop(lambda k, _: k < n.sum(), again, (torch.zeros((), dtype=torch.int64), x))
    return x


Case = tuple[list[float], list[int]]
ASKED: dict[str, tuple[Callable[..., Any], list[Case], list[Case]]] = {
    "sum": (exactly, [([1, 2, 3, 4], [3, 1])], [([1, 2, 3, 4], [2, 1]), ([1, 2, 3, 4], [5, -1])]),
    "unread": (unread, [([1, 2, 3, 4], [6, 0])], [([1, 2, 3, 4], [7, 0]), ([1, 2, 3, 4], [8, 0])]),
    "real": (real, [([1, 2, 3, 4], [0, 0])], [([4, 2, 3, 4], [0, 0])]),
    "branch": (chosen, [([1, 2, 3, 4], [7, 1]), ([1, 2, -3, 4], [3, 1])], [([1, 2, -3, 4], [7, 1])]),
    "loop": (repeated, [([1, 2, 3, 4], [3, 1]), ([1, 2, 199, 4], [0, 0])], [([1, 2, 99, 4], [1, 1])]),
}


@pytest.mark.parametrize(("function", "right", "wrong"), ASKED.values(), ids=ASKED)
def test_values_that_a_model_asks_for(function: Callable[..., Any], right: list[Case], wrong: list[Case]) -> None:
    """Where torch refuses a run, so do we: no answer is given."""

    class Asks(torch.nn.Module):
        def forward(self, x: torch.Tensor, n: torch.Tensor) -> Any:
            return function(x, n)

    def given(case: Case) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.tensor(case[0], dtype=torch.float32), torch.tensor(case[1])

    program = export(Asks(), given(right[0]))
    exe, eager = hetnn.compile(program), program.module()
    for case in right:
        torch.testing.assert_close(torch.from_numpy(np.asarray(exe(*given(case)))), eager(*given(case)))
    for case in wrong:
        with pytest.raises(RuntimeError):
            eager(*given(case))
        with pytest.raises(hetnn.InvalidModel, match=r"asks for|the model is for|must be in"):
            exe(*given(case))


def written(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y[:, -(x.shape[1] // 2) :] = 1.0
    return y


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[:, -(x.shape[1] // 2) :] * 1,
        lambda x: x[:, : -(x.shape[1] // 2)] * 1,
        lambda x: x[:, -(x.shape[1] // 2) : -1] * 1,
        lambda x: x[:, -(x.shape[1] // 2) :: 2] * 1,
        lambda x: x[:, -(x.shape[1] // 2)] * 1,
        lambda x: x[:, x.shape[1] - 6] * 1,
        written,
    ],
    ids=["last", "but last", "between", "every second", "one", "one from the front", "written"],
)
def test_places_that_open_sizes_count_from_the_back(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    agrees(function, [6, 7, 12, 13, 40])


@pytest.mark.parametrize("bounds", [(-1, 3), (-5, None), (None, -5), (2, 9)])
def test_bounds_of_bytes_wrap_as_torchs_do(bounds: tuple[int | None, int | None]) -> None:
    x = torch.arange(0, 250, 31, dtype=torch.uint8)
    exported = export(Applies(lambda x: x.clamp(*bounds)), (x,))
    np.testing.assert_array_equal(hetnn.compile(exported, "cpu")(x), x.clamp(*bounds).numpy())
