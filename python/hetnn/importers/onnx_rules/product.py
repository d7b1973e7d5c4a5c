"""ONNX matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.onnx_rules.call import Call, rule
from hetnn.importers.sizes import Size
from hetnn.importers.sizes import product as size_product


def multiply(call: Call, a: Any, b: Any) -> Any:
    """The product of matrices or stacks of them; vectors are rows on the left and columns on the right."""
    left, right = len(a.shape) == 1, len(b.shape) == 1
    if left:
        a = call.reshape(a, [1, *a.shape])
    if right:
        b = call.reshape(b, [*b.shape, 1])
    y = call.create("matmul", [a, b])
    shape = list(y.shape)
    if right:
        shape.pop()
    if left:
        shape.pop(-1 if right else -2)
    return call.reshape(y, shape)


def linear(call: Call, x: Any, weight: Any, bias: Any) -> Any:
    """x weightᵀ + bias: a linear layer where the weight is known, which devices may pack, else a product."""
    if call.is_known(weight):
        return call.create("linear", [x, weight, bias])
    y = call.create("matmul", [x, call.create("permute", [weight], perm=[1, 0])])
    return y if bias is None else call.create("add", [y, bias])


@rule("MatMul")
def _matmul(call: Call) -> Any:
    return multiply(call, call[0], call[1])


@rule("Gemm")
def _gemm(call: Call) -> Any:
    """alpha A B + beta C; a linear layer where it is one."""
    a, b, c = call[0], call[1], call.optional(2)
    alpha, beta = float(call.attr("alpha")), float(call.attr("beta"))
    if call.attr("transA"):
        a = call.create("permute", [a], perm=[1, 0])
    turned = bool(call.attr("transB"))
    filters = b.shape[0 if turned else 1]
    layer = alpha == 1 and (c is None or (beta == 1 and list(c.shape) in ([filters], [1, filters])))
    if layer and call.known(1) is not None:
        weight = b if turned else call.create("permute", [b], perm=[1, 0])
        return call.create("linear", [a, weight, None if c is None else call.reshape(c, [filters])])
    y = call.create("matmul", [a, call.create("permute", [b], perm=[1, 0]) if turned else b])
    y = y if alpha == 1 else call.create("mul", [y, call.like(alpha, y)])
    if c is None or beta == 0:
        return y
    return call.create("add", [y, c if beta == 1 else call.create("mul", [c, call.like(beta, c)])])


@rule("Einsum")
def _einsum(call: Call) -> Any:
    """One or two operands: axes that both keep, sums over what the result lacks, then one product."""
    equation = str(call.attr("equation")).replace(" ", "")
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if "." in equation or len(terms) != len(call.inputs) or len(terms) > 2:
        raise Unsupported(f"Einsum of '{equation}'")
    if not arrow:
        letters = left.replace(",", "")
        result = "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    if any(len(set(term)) != len(term) for term in (*terms, result)):
        raise Unsupported(f"Einsum of '{equation}', which takes a diagonal")
    if not set(result) <= set(left):
        raise InvalidModel(f"Einsum of '{equation}', whose result has an axis that no operand has")
    sizes: dict[str, Size] = {}
    for value, term in zip(call.values(), terms, strict=True):
        if len(value.shape) != len(term):
            raise InvalidModel(f"Einsum of '{equation}' with an operand of rank {len(value.shape)}")
        sizes.update(zip(term, value.shape, strict=True))
    operands = []
    for k, term in enumerate(terms):
        others = set(result).union(*(t for j, t in enumerate(terms) if j != k))
        alone = [axis for axis, letter in enumerate(term) if letter not in others]
        value = call[k]
        if alone:
            value = call.create("sum", [value], axes=alone)
        operands.append((value, "".join(letter for letter in term if letter in others)))
    if len(operands) == 1:
        return _turned(call, *operands[0], result)
    (a, in_a), (b, in_b) = operands
    both = [letter for letter in in_a if letter in in_b and letter in result]
    inner = [letter for letter in in_a if letter in in_b and letter not in result]
    only_a = [letter for letter in in_a if letter not in in_b]
    only_b = [letter for letter in in_b if letter not in in_a]

    def grouped(value: Any, term: str, *groups: list[str]) -> Any:
        turned = _turned(call, value, term, "".join(letter for group in groups for letter in group))
        return call.reshape(turned, [size_product(sizes[letter] for letter in group) for group in groups])

    y = call.create("matmul", [grouped(a, in_a, both, only_a, inner), grouped(b, in_b, both, inner, only_b)])
    order = "".join([*both, *only_a, *only_b])
    return _turned(call, call.reshape(y, [sizes[letter] for letter in order]), order, result)


def _turned(call: Call, value: Any, term: str, wanted: str) -> Any:
    return value if term == wanted else call.create("permute", [value], perm=[term.index(letter) for letter in wanted])


@rule("Det")
def _determinant(call: Call) -> Any:
    """The product of what Gauss leaves on the diagonal; every exchange of rows turns the sign."""
    x = call[0]
    batch, n = list(x.shape[:-2]), call.static_shape(x, "Det")[-1]
    factors, pivots, *_ = call.create_all("lu", [x], {})
    flat = call.reshape(factors, [*batch, n * n])
    diagonal = call.create("slice", [flat], axis=len(batch), start=0, end=n * n, step=n + 1)
    own = call.constant(np.arange(1, n + 1), pivots.dtype)
    exchanged = call.create("ne", [pivots, own])
    signs = call.create("where", [exchanged, call.like(-1, x), call.like(1, x)])
    return call.create("prod", [call.create("mul", [diagonal, signs])], axes=[len(batch)])
