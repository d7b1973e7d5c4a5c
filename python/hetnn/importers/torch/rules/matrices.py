"""Torch overloads of linear algebra: by the factors of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from hetnn.errors import Unsupported
from hetnn.importers.lowering import sizes
from hetnn.importers.lowering.random_numbers import on
from hetnn.importers.lowering.solving import solved, transposed, triangular, unit_matrices
from hetnn.importers.torch.rules.call import Call, rule
from hetnn.importers.torch.rules.indexing import fixed


def _is_checked(call: Call) -> bool:
    """Whether torch raises an error where the matrices have no factors."""
    readers = [reader for part in call._node.users for reader in part.users]
    return any("_linalg_check_errors" in f"{reader.target} {reader.args[:2]}" for reader in readers)


def _lu(call: Call, x: Any) -> list[Any]:
    return call.create_all("lu", [x], {"pivot": bool(call.args.get("pivot", True)), "checked": _is_checked(call)})


@rule("linalg_lu_factor_ex.default")
def _lu_factor(call: Call) -> list[Any]:
    factors, pivots, _, broken = _lu(call, call["A"])
    return [factors, pivots, broken]


@rule("linalg_inv_ex.default")
def _inverse(call: Call) -> list[Any]:
    factors, _, order, broken = _lu(call, call["A"])
    return [solved(call, factors, order, unit_matrices(call, call["A"])), broken]


@rule("_linalg_solve_ex.default")
def _solve(call: Call) -> list[Any]:
    a, b = call["A"], call["B"]
    factors, pivots, order, broken = _lu(call, a)
    vector = len(b.shape) == 1 or (len(b.shape) == len(a.shape) - 1 and list(b.shape) == list(a.shape[:-1]))
    matrix = call.reshape(b, [*b.shape, 1]) if vector else b
    if call["left"]:
        x = solved(call, factors, order, matrix)
    else:
        x = transposed(call, solved(call, factors, order, transposed(call, matrix), adjoint=True))
    return [call.reshape(x, call.shape()), factors, pivots, broken]


@rule("linalg_lu_solve.default")
def _lu_solve(call: Call) -> Any:
    factors, b = call["LU"], call["B"]
    order = call.create("permutation_of_pivots", [call["pivots"]], rows=factors.shape[-1])
    if call["left"]:
        return solved(call, factors, order, b, adjoint=bool(call["adjoint"]))
    return transposed(call, solved(call, factors, order, transposed(call, b), adjoint=not call["adjoint"]))


def _diagonal(call: Call, x: Any) -> Any:
    *batch, rows, columns = x.shape
    strides = sizes.dense_strides(x.shape)
    shape, steps = [*batch, sizes.minimum(rows, columns)], [*strides[:-2], columns + 1]
    return call.create("as_strided", [x], shape=shape, strides=steps)


def _sign_of(call: Call, pivots: Any, dtype: str) -> Any:
    """-1 for an odd number of exchanges."""
    (count,) = fixed(pivots.shape[-1:], "the determinant of a matrix")
    exchanged = call.create("ne", [pivots, call.constant(np.arange(1, count + 1), "i32")])
    one = call.constant(1, dtype)
    signs = call.create("where", [exchanged, call.constant(-1, dtype), one])
    return call.create("prod", [signs], axes=[-1])


@rule("_linalg_det.default")
def _determinant(call: Call) -> list[Any]:
    factors, pivots, _, _ = _lu(call, call["A"])
    product = call.create("prod", [_diagonal(call, factors)], axes=[-1])
    return [call.create("mul", [product, _sign_of(call, pivots, product.dtype)]), factors, pivots]


@rule("_linalg_slogdet.default")
def _log_determinant(call: Call) -> list[Any]:
    factors, pivots, _, _ = _lu(call, call["A"])
    diagonal = _diagonal(call, factors)
    sign = call.create("prod", [call.create("sign", [diagonal])], axes=[-1])
    sign = call.create("mul", [sign, _sign_of(call, pivots, sign.dtype)])
    size = call.create("sum", [call.create("log", [call.create("abs", [diagonal])])], axes=[-1])
    return [sign, size, factors, pivots]


def _half(call: Call, x: Any, upper: bool, unit: bool = False) -> Any:
    """One half of matrices, the other 0; with ones on the diagonal where asked."""
    rows, columns = fixed(x.shape[-2:], "half of a matrix")
    mask = np.triu(np.ones((rows, columns), bool)) if upper else np.tril(np.ones((rows, columns), bool), -int(unit))
    half = call.create("where", [call.constant(mask, "bool"), x, call.constant(0, x.dtype)])
    return call.create("add", [half, call.constant(np.eye(rows, columns), x.dtype)]) if unit else half


def _halves(call: Call, factors: Any) -> tuple[Any, Any]:
    """L and U of a matrix that holds both."""
    inner = sizes.minimum(factors.shape[-2], factors.shape[-1])
    lower = call.create("slice", [factors], axis=-1, start=0, end=inner)
    upper = call.create("slice", [factors], axis=-2, start=0, end=inner)
    return _half(call, lower, upper=False, unit=True), _half(call, upper, upper=True)


def _permutation(call: Call, order: Any, dtype: str) -> Any:
    """The matrix that puts rows in their order back: P[order[k], k] = 1."""
    rows = call.reshape(order, [*order.shape[:-1], 1, order.shape[-1]])
    (n,) = fixed(order.shape[-1:], "a permutation")
    index = call.constant(np.arange(n).reshape(n, 1), "i64")
    return call.cast(call.create("eq", [index, rows]), dtype)


@rule("linalg_lu.default")
def _lu_of(call: Call) -> list[Any]:
    factors, _, order, _ = _lu(call, call["A"])
    lower, upper = _halves(call, factors)
    permutation = _permutation(call, order, factors.dtype) if call["pivot"] else None
    return [permutation, lower, upper]


@rule("lu_unpack.default")
def _lu_unpack(call: Call) -> list[Any]:
    factors = call["LU_data"]
    lower, upper = _halves(call, factors) if call["unpack_data"] else (None, None)
    if not call["unpack_pivots"]:
        return [None, lower, upper]
    order = call.create("permutation_of_pivots", [call["LU_pivots"]], rows=factors.shape[-2])
    return [_permutation(call, order, factors.dtype), lower, upper]


@rule("linalg_cholesky_ex.default", "cholesky.default")
def _cholesky(call: Call) -> Any:
    x = call[call.names[0]]
    checked = not call.is_tuple() or _is_checked(call)
    factor, broken = call.create_all("cholesky", [transposed(call, x) if call["upper"] else x], {"checked": checked})
    factor = transposed(call, factor) if call["upper"] else factor
    return [factor, broken] if call.is_tuple() else factor


def _by_cholesky(call: Call, factor: Any, b: Any) -> Any:
    upper = bool(call["upper"])
    first, second = (transposed(call, factor), factor) if upper else (factor, transposed(call, factor))
    return triangular(call, second, triangular(call, first, b, upper=False), upper=True)


@rule("cholesky_solve.default")
def _cholesky_solve(call: Call) -> Any:
    return _by_cholesky(call, call["input2"], call["self"])


@rule("cholesky_inverse.default")
def _cholesky_inverse(call: Call) -> Any:
    return _by_cholesky(call, call["self"], unit_matrices(call, call["self"]))


@rule("linalg_solve_triangular.default")
def _solve_triangular(call: Call) -> Any:
    return triangular(
        call, call["self"], call["B"], bool(call["upper"]), bool(call["unitriangular"]), bool(call["left"])
    )


@rule("triangular_solve.default")
def _triangular_solve(call: Call) -> list[Any]:
    a, upper = call["A"], bool(call["upper"])
    if call["transpose"]:
        a, upper = transposed(call, a), not upper
    solved = triangular(call, a, call["self"], upper, bool(call["unitriangular"]))
    return [solved, call.broadcast_to(call["A"], call.shape(1)) if call.reads(1) else None]


@rule("linalg_qr.default")
def _qr(call: Call) -> list[Any]:
    mode = call["mode"]
    if mode == "r" and call.reads(0):
        raise Unsupported("Q of a factorization that leaves it out is read")
    return call.create_all("qr", [call["A"]], {"complete": mode == "complete"})


def _is_condition(call: Call) -> bool:
    """Whether the largest singular value is divided by the smallest, or the other way round."""
    parts = {part for values in call._node.users if values.args[1] == 1 for part in values.users}
    quotients = [reader for part in parts for reader in part.users if "div" in str(reader.target)]
    return any(parts.issuperset(reader.all_input_nodes) for reader in quotients)


@rule("linalg_ldl_factor_ex.default")
def _ldl(call: Call) -> list[Any]:
    return call.create_all("ldl", [call["self"]], {"checked": _is_checked(call)})


@rule("linalg_ldl_solve.default")
def _ldl_solve(call: Call) -> Any:
    factors, pivots, b = call["LD"], call["pivots"], call["B"]
    lead = sizes.broadcast(factors.shape[:-2], b.shape[:-2])
    n = factors.shape[-1]
    factors, pivots = call.broadcast_to(factors, [*lead, n, n]), call.broadcast_to(pivots, [*lead, n])
    return call.create("ldl_solve", [factors, pivots, call.broadcast_to(b, [*lead, *b.shape[-2:]])])


@rule("_linalg_svd.default")
def _svd(call: Call) -> list[Any]:
    """The values; bases are refused, because each library has its own signs in them."""
    if call["compute_uv"] and (call.reads(0) or call.reads(2)):
        raise Unsupported("singular vectors are read, whose signs are not fixed")
    if call.dtype(1) != "f64" and _is_condition(call):
        raise Unsupported(
            f"a condition number of matrices of {call.dtype(1)}, whose smallest singular value torch's library leaves "
            "open; use f64"
        )
    return [None, call.create_all("svd", [call["A"]], {"vectors": False})[1], None]


@rule("_linalg_eigh.default")
def _eigh(call: Call) -> list[Any]:
    """The values; a basis is refused, because each library has its own signs in it."""
    if call["compute_v"] and call.reads(1):
        raise Unsupported("eigenvectors are read, whose signs are not fixed")
    lower = str(call["UPLO"]).upper() == "L"
    return [call.create_all("eigh", [call["A"]], {"lower": lower, "vectors": False})[0], None]


@rule("linalg_pinv.atol_rtol_tensor")
def _pseudoinverse(call: Call) -> Any:
    """V diag(1/s) U^T over the singular values above the tolerance."""
    x = call["self"]
    if 0 in x.shape:
        return call.filled(0)
    if call["hermitian"] and x.dtype != "f64":
        raise Unsupported(f"a pseudoinverse by eigenvalues in {x.dtype}, whose small ones torch's library leaves open")
    if call["hermitian"]:  # of which torch reads the lower half
        below = call.create("sub", [x, _half(call, x, upper=True)])
        x = call.create("add", [_half(call, x, upper=False), transposed(call, below)])
    u, s, vh = call.create_all("svd", [x], {})
    rows, columns = fixed(x.shape[-2:], "a pseudoinverse")
    largest = call.create("slice", [s], axis=-1, start=0, end=1)
    lead = list(x.shape[:-2])

    def limit(name: str, default: Any) -> Any:
        given = call[name]
        if given is None:
            return default
        given = call.cast(given, s.dtype)
        return call.reshape(given, [*given.shape, 1]) if given.shape else given

    epsilon = {"f32": 2.0**-23, "f64": 2.0**-52, "f16": 2.0**-10, "bf16": 2.0**-7}[s.dtype]
    absolute = limit("atol", call.constant(0, s.dtype))
    relative = limit("rtol", None)
    if relative is None:
        # Given an absolute tolerance above 0, the relative one is 0.
        usual = call.constant(max(rows, columns) * epsilon, s.dtype)
        zero = call.constant(0, s.dtype)
        relative = call.create("where", [call.create("gt", [absolute, zero]), zero, usual])
    least = call.create("maximum", [absolute, call.create("mul", [relative, largest])])
    kept = call.create("gt", [s, least])
    inverse = call.create("where", [kept, call.create("reciprocal", [s]), call.constant(0, s.dtype)])
    scaled = call.create("mul", [transposed(call, vh), call.reshape(inverse, [*lead, 1, min(rows, columns)])])
    return call.create("matmul", [scaled, transposed(call, u)])


@rule("linalg_householder_product.default")
def _householder_product(call: Call) -> Any:
    a, tau = call["input"], call["tau"]
    if 0 in call.shape():
        return call.filled(0)
    rows, columns = fixed(a.shape[-2:], "a product of reflections")
    start = call.broadcast_to(call.constant(np.eye(rows, columns), a.dtype), a.shape)
    return call.create("apply_reflections", [a, tau, start])


@rule("ormqr.default")
def _ormqr(call: Call) -> Any:
    a, tau, c = call["self"], call["input2"], call["input3"]
    if 0 in call.shape():
        return call.filled(0)
    transpose = bool(call["transpose"])
    if call["left"]:
        return call.create("apply_reflections", [a, tau, c], transposed=transpose)
    turned = call.create("apply_reflections", [a, tau, transposed(call, c)], transposed=not transpose)
    return transposed(call, turned)


# Terms of the series of e^X for |X| <= 1/2, and how often a result is squared at most.
_TERMS, _SQUARINGS = 14, 24


@rule("linalg_matrix_exp.default", "matrix_exp.default")
def _matrix_exp(call: Call) -> Any:
    """e^A = (e^(A / 2^s))^(2^s), with the s that makes the norm of A / 2^s at most 1/2."""
    if call.dtype() != "f64":
        raise Unsupported(
            f"an exponential of matrices of {call.dtype()}, in which torch's squarings lose digits; use f64"
        )
    a = call["self"]
    if 0 in a.shape:
        return call["self"]
    identity = unit_matrices(call, a)
    sums = call.create("sum", [call.create("abs", [a])], axes=[-2], keepdim=True)
    norm = call.create("reduce_max", [sums], axes=[-1], keepdim=True)
    times = call.create("ceil", [call.create("log2", [on(call, "maximum", norm, 0.5)])])
    times = call.create("clamp", [on(call, "add", times, 1.0)], min=0.0, max=float(_SQUARINGS))
    x = call.create("div", [a, call.create("exp2", [times])])
    out = identity
    for term in range(_TERMS, 0, -1):
        share = on(call, "div", call.create("matmul", [x, out]), float(term))
        out = call.create("add", [identity, share])
    for k in range(_SQUARINGS):
        out = call.create("where", [on(call, "gt", times, float(k)), call.create("matmul", [out, out]), out])
    return call.cast(out, call.dtype())


@rule("_int_mm.default")
def _int_mm(call: Call) -> Any:
    """A product of bytes, summed in i32."""
    return call.create("matmul", [call.cast(call.args[name], "i32") for name in ("self", "mat2")])
