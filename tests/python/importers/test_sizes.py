"""Sizes that depend on symbols: what is computed with them is what integers give in their place."""

from __future__ import annotations

import operator
from itertools import product

import pytest

import hetnn
from hetnn._core import Dim
from hetnn.importers.lowering import sizes

N, M = Dim.symbol("n"), Dim.symbol("m")
FORMS = [N, M, N + 1, 3 - M, 2 * N + M, N * M - 4, (N + 5) // 3, M % 4, Dim.max(N, M - 2), 7, -2]
OPERATIONS = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, sizes.maximum, sizes.minimum]
VALUES = [{"n": n, "m": m} for n, m in product((0, 1, 6, 11), (0, 2, 5))]


def at(size: int | Dim, values: dict[str, int]) -> int:
    found = size if isinstance(size, int) else size.substitute(dict(values))
    assert isinstance(found, int)
    return found


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda f: f.__name__)
def test_arithmetic_is_that_of_integers(operation):
    for a, b in product(FORMS, FORMS):
        for values in VALUES:
            x, y = at(a, values), at(b, values)
            if operation in (operator.floordiv, operator.mod) and y == 0:
                continue
            assert at(operation(a, b), values) == operation(x, y), (a, b, values)


def test_quotients_cut_towards_zero():
    for a in FORMS:
        quotient, rest = sizes.truncated_divide(a, 3), sizes.truncated_modulo(a, 3)
        assert quotient is not None
        assert rest is not None
        for values in VALUES:
            x = at(a, values)
            assert at(quotient, values) == (abs(x) // 3) * (1 if x >= 0 else -1)
            assert at(rest, values) == x - 3 * at(quotient, values)


def test_no_symbol_left_is_an_int():
    for size in (N - N, N * 0, (4 * N) // N - 1, (2 * N) % 2, Dim.parse("3 + 4"), Dim.max(N, N - 1) - N):
        assert isinstance(size, int), size


def test_equal_forms_are_one():
    assert 2 * (N + M) - M == N + N + M
    assert len({N + 1, 1 + N, Dim.parse("n + 1")}) == 1
    assert N != M
    assert 5 not in [N, M]
    assert str(Dim.parse(str((N + 5) // 3 * M))) == str((N + 5) // 3 * M)


def test_symbols_and_their_values():
    assert (N * M + 1).symbols == {"n", "m"}
    assert [size.name for size in (N, N + 0, 2 * N, N + 1)] == ["n", "n", "", ""]
    assert (N * M + 1).substitute({"n": M + 1}) == M * M + M + 1
    swapped = (N - 2 * M).substitute({"n": M, "m": N})
    assert swapped == M - 2 * N  # all at once


def test_what_a_form_shows():
    assert N.never_negative
    assert not (N - 1).never_negative
    with pytest.raises(TypeError):
        N < M  # noqa: B015  # no order without values
    with pytest.raises(TypeError):
        N + "1"
    with pytest.raises(hetnn.InvalidModel, match=r"the size n is divided by 0"):
        sizes.divide(N, 0)
    with pytest.raises(hetnn.InvalidModel, match=r"exceeds 64-bit integers"):
        N + 2**63
    with pytest.raises(hetnn.InvalidModel, match=r"cannot read it at character 3"):
        Dim.parse("n +")
