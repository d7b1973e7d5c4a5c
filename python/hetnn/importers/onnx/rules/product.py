"""ONNX matrix products."""

from __future__ import annotations

from typing import Any

from hetnn.errors import InvalidModel
from hetnn.importers.lowering.equal_sizes import unified, unified_inside, with_sizes
from hetnn.importers.lowering.sizes import Size
from hetnn.importers.lowering.sizes import product as size_product
from hetnn.importers.onnx.rules.call import Call, rule


def multiply(call: Call, a: Any, b: Any) -> Any:
    """The product of matrices or stacks of them; vectors are rows on the left and columns on the right."""
    left, right = len(a.shape) == 1, len(b.shape) == 1
    if left:
        a = call.reshape(a, [1, *a.shape])
    if right:
        b = call.reshape(b, [*b.shape, 1])
    a, b = unified(call, [a, b], broadcast=True, apart=(-2, -1))
    a, b = unified_inside(call, a, b)
    y = call.create("matmul", [a, b])
    shape = list(y.shape)
    if right:
        shape.pop()
    if left:
        shape.pop(-1 if right else -2)
    return call.reshape(y, shape)


@rule("MatMul")
def _matmul(call: Call) -> Any:
    return multiply(call, call[0], call[1])


@rule("Gemm")
def _gemm(call: Call) -> Any:
    """alpha A B + beta C; a linear layer where it is one."""
    a, b, c = call[0], call[1], call.optional(2)
    for k in (0, 1):
        call.shape(k, 2)
    alpha, beta = float(call.attr("alpha")), float(call.attr("beta"))
    if call.attr("transA"):
        a = call.create("permute", [a], perm=[1, 0])
    turned = bool(call.attr("transB"))
    a, b = unified_inside(call, a, b, turned=turned)
    filters = b.shape[0 if turned else 1]
    layer = alpha == 1 and (c is None or (beta == 1 and list(c.shape) in ([filters], [1, filters])))
    if layer and call.known(1) is not None:
        bias = None if c is None else call.reshape(c, [filters])
        weight = b if turned else call.create("permute", [b], perm=[1, 0])
        return call.create("linear", [a, weight, bias])
    y = call.create("matmul", [a, call.create("permute", [b], perm=[1, 0]) if turned else b])
    y = y if alpha == 1 else call.create("mul", [y, call.like(alpha, y)])
    if c is None or beta == 0:
        return y
    return call.create("add", [y, c if beta == 1 else call.create("mul", [c, call.like(beta, c)])])


@rule("Einsum")
def _einsum(call: Call) -> Any:
    """Pair after pair: axes that both keep, sums over what nothing behind needs, then one product."""
    equation = str(call.attr("equation")).replace(" ", "")
    left, arrow, result = equation.partition("->")
    terms, values = left.split(","), call.values()
    if len(terms) != len(values):
        raise InvalidModel(f"Einsum of '{equation}' with {len(values)} operands")
    unnamed = max((_unnamed(value, term) for value, term in zip(values, terms, strict=True)), key=len)
    letters = left.replace(",", "").replace(".", "")
    if arrow:
        result = result.replace("...", unnamed)
    else:
        result = unnamed + "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    if len(set(result)) != len(result) or not set(result) <= {*unnamed, *letters}:
        raise InvalidModel(f"Einsum of '{equation}', whose result has an axis twice or one that no operand has")
    values, terms = _broadcast(call, values, terms, len(unnamed))
    operands = [_spelled_out(call, equation, value, term) for value, term in zip(values, terms, strict=True)]
    longer = {letter for value, term in operands for letter, size in zip(term, value.shape, strict=True) if size != 1}
    operands = [_without_ones(call, value, term, longer) for value, term in operands]
    value, term = _summed(call, *operands[0], set(result).union(*(t for _, t in operands[1:])))
    for k, (other, behind) in enumerate(operands[1:], 2):
        needed = set(result).union(*(t for _, t in operands[k:]))
        value, term = _joined(call, equation, (value, term), _summed(call, other, behind, needed | set(term)), needed)
    there = "".join(letter for letter in result if letter in term)
    turned, sizes = _turned(call, value, term, there), dict(zip(term, value.shape, strict=True))
    return call.reshape(turned, [sizes.get(letter, 1) for letter in result])


# What `...` stands for is named from the back, so that operands of other ranks broadcast.
_FIRST_UNNAMED = "\ue000"


def _unnamed(value: Any, term: str) -> str:
    """Names of the axes that `...` stands for."""
    count = len(value.shape) - len(term.replace("...", "")) if "..." in term else 0
    return "".join(chr(ord(_FIRST_UNNAMED) + k) for k in range(count))[::-1]


def _broadcast(call: Call, values: list[Any], terms: list[str], unnamed: int) -> tuple[list[Any], list[str]]:
    """Operands whose `...` meet in sizes that a run may show to be 1 have them behind, and made the same."""
    at = [k for k, term in enumerate(terms) if "..." in term]
    named = {k: terms[k].replace("...", "") for k in at}
    is_open = any(not isinstance(size, int) for k in at for size in values[k].shape)
    if not unnamed or not is_open or len(at) < 2 or any(len(values[k].shape) < len(named[k]) for k in at):
        return values, terms
    behind = []
    for k in at:
        first, rank = terms[k].index("..."), len(values[k].shape)
        inner = range(first, first + rank - len(named[k]))
        others = [axis for axis in range(rank) if axis not in inner]
        turned = call.create("permute", [values[k]], perm=[*others, *inner])
        ones = [1] * (unnamed - len(inner))
        behind.append(
            call.reshape(turned, [*(values[k].shape[n] for n in others), *ones, *turned.shape[len(others) :]])
        )
    deepest = max(len(value.shape) for value in behind)
    same = unified(call, behind, broadcast=True, apart=range(-deepest, -unnamed))
    if all(list(a.shape) == list(b.shape) for a, b in zip(behind, same, strict=True)):
        return values, terms
    values, terms = list(values), list(terms)
    for k, value in zip(at, same, strict=True):
        values[k], terms[k] = value, named[k] + "..."
    return values, terms


def _spelled_out(call: Call, equation: str, value: Any, term: str) -> tuple[Any, str]:
    """An operand with a letter for each axis, each letter once."""
    term = term.replace("...", _unnamed(value, term))
    if len(term) != len(value.shape):
        raise InvalidModel(f"Einsum of '{equation}' with an operand of rank {len(value.shape)}")
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:  # the diagonal of two of its axes
            first, second = term.index(letter), term.rindex(letter)
            rest = [k for k in range(len(term)) if k not in (first, second)]
            n, size = value.shape[first], value.shape[second]
            if isinstance(n, int) and isinstance(size, int) and n != size:
                raise InvalidModel(f"Einsum of '{equation}' with a diagonal of {n} by {size}")
            square = call.create("permute", [value], perm=[*rest, first, second])
            kept = [*(value.shape[k] for k in rest), size if isinstance(size, int) else n]
            square = with_sizes(call, square, [*kept, kept[-1]])
            place = call.broadcast_to(
                call.reshape(call.create("arange", [], start=0, end=kept[-1]), [kept[-1], 1]), [*kept, 1]
            )
            value = call.reshape(call.create("gather_elements", [square, place], axis=len(rest) + 1), kept)
            term = "".join(term[k] for k in rest) + letter
    return value, term


def _without_ones(call: Call, value: Any, term: str, longer: set[str]) -> tuple[Any, str]:
    """Axes of one element broadcast, as if they were not there: unnamed ones, and those longer in another operand."""
    named = [letter < _FIRST_UNNAMED and letter not in longer for letter in term]
    kept = [k for k in range(len(term)) if named[k] or value.shape[k] != 1]
    return call.reshape(value, [value.shape[k] for k in kept]), "".join(term[k] for k in kept)


def _summed(call: Call, value: Any, term: str, needed: set[str]) -> tuple[Any, str]:
    alone = [axis for axis, letter in enumerate(term) if letter not in needed]
    kept = "".join(letter for letter in term if letter in needed)
    return (call.create("sum", [value], axes=alone) if alone else value), kept


def _joined(
    call: Call, equation: str, left: tuple[Any, str], right: tuple[Any, str], needed: set[str]
) -> tuple[Any, str]:
    """The product of two operands, summed over what both have and nothing needs."""
    (a, in_a), (b, in_b) = left, right
    known = {letter: size for letter, size in zip(in_b, b.shape, strict=True) if isinstance(size, int)}
    a = with_sizes(call, a, [known.get(letter) for letter in in_a])
    b = with_sizes(call, b, [dict(zip(in_a, a.shape, strict=True)).get(letter) for letter in in_b])
    sizes: dict[str, Size] = {}
    for letter, size in (*zip(in_a, a.shape, strict=True), *zip(in_b, b.shape, strict=True)):
        if sizes.setdefault(letter, size) != size:
            raise InvalidModel(f"Einsum of '{equation}' with axes of {sizes[letter]} and {size} that must be equal")
    both = [letter for letter in in_a if letter in in_b and letter in needed]
    inner = [letter for letter in in_a if letter in in_b and letter not in needed]
    only_a = [letter for letter in in_a if letter not in in_b]
    only_b = [letter for letter in in_b if letter not in in_a]

    def grouped(value: Any, term: str, *groups: list[str]) -> Any:
        turned = _turned(call, value, term, "".join(letter for group in groups for letter in group))
        return call.reshape(turned, [size_product(sizes[letter] for letter in group) for group in groups])

    y = call.create("matmul", [grouped(a, in_a, both, only_a, inner), grouped(b, in_b, both, inner, only_b)])
    order = "".join([*both, *only_a, *only_b])
    return call.reshape(y, [sizes[letter] for letter in order]), order


def _turned(call: Call, value: Any, term: str, wanted: str) -> Any:
    return value if term == wanted else call.create("permute", [value], perm=[term.index(letter) for letter in wanted])


@rule("Det")
def _determinant(call: Call) -> Any:
    """The product of what Gauss leaves on the diagonal; every exchange of rows turns the sign."""
    x = call[0]
    batch, n = list(x.shape[:-2]), call.static_shape(x, "Det", slice(-2, None))[-1]
    factors, pivots, *_ = call.create_all("lu", [x], {})
    flat = call.reshape(factors, [*batch, n * n])
    diagonal = call.create("slice", [flat], axis=len(batch), start=0, end=n * n, step=n + 1)
    own = call.cast(call.create("arange", [], start=1, end=n + 1), pivots.dtype)
    exchanged = call.create("ne", [pivots, own])
    signs = call.create("where", [exchanged, call.like(-1, x), call.like(1, x)])
    return call.create("prod", [call.create("mul", [diagonal, signs])], axes=[len(batch)])
