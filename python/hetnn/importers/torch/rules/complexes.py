"""Complex numbers: pairs of reals, on which torch's overloads work part by part or by a rule of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hetnn.errors import Unsupported
from hetnn.importers.lowering import sizes
from hetnn.importers.lowering.complexes import Complex
from hetnn.importers.lowering.formulas import build_complex
from hetnn.importers.torch.rules.call import TORCH, Call

COMPLEX: dict[str, Callable[[Call], Any]] = {}

# Linear in all that is complex: the parts of a result are results of the parts.
BY_PARTS = {
    f"aten.{name}.{overload}"
    for overload, names in {
        "default": "neg sum mean view reshape _unsafe_view squeeze unsqueeze permute t expand cat flip roll "
        "index_select gather clone alias detach contiguous split_with_sizes stack repeat "
        "lift lift_fresh lift_fresh_copy "
        "diagonal constant_pad_nd triu tril as_strided copy full full_like zeros zeros_like new_zeros new_full "
        "scalar_tensor empty_strided empty_like cumsum index_put _unsafe_index_put scatter_add masked_scatter "
        "slice_scatter select_scatter diagonal_scatter index_add index_copy embedding resize unfold diag_embed "
        "reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d "
        "broadcast_to new_empty narrow movedim",
        "Tensor": "add sub slice index split _unsafe_index fill masked_fill",
        "Scalar": "add sub fill masked_fill",
        "int": "transpose select unbind unflatten",
        "dim": "squeeze mean",
        "dims": "squeeze",
        "using_ints": "flatten",
        "dim_IntList": "sum",
        "self": "where",
        "src": "scatter",
        "value": "scatter",
        "two": "scatter_reduce",
        "memory_format": "empty",
    }.items()
    for name in names.split()
} | {
    f"prims.{name}.default"
    for name in [
        "add",
        "sub",
        "neg",
        "sum",
        "where",
        "broadcast_in_dim",
        "collapse_view",
        "collapse",
        "split_dim",
        "squeeze",
        "reshape",
        "view_of",
        "clone",
        "transpose",
        "empty_strided",
    ]
}

# What stands beside a complex number in such a call and belongs to both parts.
_OF_BOTH = {"index", "indices", "condition", "pred", "mask"}

# Numbers that are values of elements: of a real one the imaginary part is 0.
_ELEMENTS = {"value", "fill_value", "s", "other"}

# Linear in two arguments each: (a + ib)(c + id) = ac - bd + i(ad + bc), with what is added once.
_PRODUCTS = {
    "aten.mm.default": ("self", "mat2"),
    "aten.bmm.default": ("self", "mat2"),
    "aten.matmul.default": ("self", "other"),
    "aten.mv.default": ("self", "vec"),
    "aten.dot.default": ("self", "tensor"),
    "aten.linear.default": ("input", "weight"),
    "aten.convolution.default": ("input", "weight"),
}

# Of which only matters whether an element is 0.
_TRUTHS = {
    *(f"aten.{name}.{kind}" for name in ("any", "all") for kind in ("default", "dim", "dims")),
    *(f"aten.logical_{name}.default" for name in ("and", "or", "xor", "not")),
    *("aten.nonzero.default", "aten.nonzero_static.default"),
}


def _rule(*names: str) -> Callable[[Callable[[Call], Any]], Callable[[Call], Any]]:
    def register(function: Callable[[Call], Any]) -> Callable[[Call], Any]:
        COMPLEX.update(dict.fromkeys(names, function))
        return function

    return register


def _flat(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in _flat(item)] if isinstance(value, (list, tuple)) else [value]


def is_complex(call: Call) -> bool:
    """Whether complex numbers go in or come out."""
    return call.makes_complex or any(isinstance(leaf, (Complex, complex)) for leaf in _flat(list(call.args.values())))


def complex_call(call: Call, target: str) -> Any:
    """The result of a call with complex numbers. Unsupported where no rule says what it is."""
    if target in COMPLEX:
        return COMPLEX[target](call)
    if target in _TRUTHS:
        return _of_reals(call, {name: truth(call, value) for name, value in call.args.items()})
    if target in _PRODUCTS:
        return _product(call, *_PRODUCTS[target])
    adds = call.args.get("reduce") in (None, "sum", "add", "mean")
    if target not in BY_PARTS or not adds or isinstance(call.args.get("alpha"), complex) or call.finds_sizes:
        raise Unsupported("it computes with complex numbers")
    made = [_of_reals(call, {name: _part(call, value, k, name) for name, value in call.args.items()}) for k in (0, 1)]
    if isinstance(made[0], (list, tuple)):
        return [Complex(*pair) for pair in zip(*made, strict=True)]
    return Complex(made[0], made[1], _permuted_pairs(call, target))


def _permuted_pairs(call: Call, target: str) -> Any:
    """Where axes of pairs change places, so that these need not be joined again."""
    z = call.args.get("self")
    if not isinstance(z, Complex) or z.pairs is None:
        return None
    rank = len(z.shape)
    perm = list(range(rank))
    if target == "aten.permute.default":
        perm = [axis % rank for axis in call["dims"]]
    elif target == "aten.transpose.int" and rank:
        a, b = call["dim0"] % rank, call["dim1"] % rank
        perm[a], perm[b] = b, a
    else:
        return None
    return call.create("permute", [z.pairs], perm=[*perm, rank])


def _of_reals(call: Call, args: dict[str, Any]) -> Any:
    """The same call on reals."""
    row = TORCH.rows.get(call.target)
    real = call.part(args)
    return real.by_row(row) if row else TORCH.rules[call.target](real)


def _product(call: Call, left: str, right: str) -> Complex:
    a, b = (paired(call, call[name], _dtype(call)) for name in (left, right))
    bias = call.args.get("bias")

    def of(x: Any, y: Any, added: Any = None) -> Any:
        given = {"bias": added} if "bias" in call.args else {}
        return _of_reals(call, {**call.args, left: x, right: y, **given})

    both = (None, None) if bias is None else paired(call, bias, _dtype(call)).parts
    real = call.create("sub", [of(a.real, b.real, both[0]), of(a.imag, b.imag)])
    return Complex(real, call.create("add", [of(a.real, b.imag, both[1]), of(a.imag, b.real)]))


def truth(call: Call, value: Any) -> Any:
    """Whether elements are not 0; what is no complex number stays."""
    if not isinstance(value, Complex):
        return value
    return call.create("logical_or", [call.create("ne", [x, call.constant(0, x.dtype)]) for x in value.parts])


def _part(call: Call, value: Any, k: int, name: str = "") -> Any:
    """Of an argument: of reals the imaginary part is 0."""
    if isinstance(value, Complex):
        return value.parts[k]
    if isinstance(value, complex):
        return (value.real, value.imag)[k]
    if isinstance(value, (list, tuple)):
        return [_part(call, item, k, name) for item in value]
    if not k or name in _OF_BOTH:
        return value
    if isinstance(value, (int, float)) and name in _ELEMENTS:
        return 0
    if hasattr(value, "dtype"):
        zero = call.constant(0, value.dtype)
        return call.create("expand", [zero], shape=list(value.shape)) if value.shape else zero
    return value


def _dtype(call: Call) -> str:
    """Of the parts of the result."""
    return call.part({}).dtype()


def paired(call: Call, value: Any, dtype: str) -> Complex:
    """A tensor or a number as complex numbers."""
    if isinstance(value, Complex):
        return Complex(call.cast(value.real, dtype), call.cast(value.imag, dtype))
    if not hasattr(value, "dtype"):
        number = complex(value)
        return Complex(call.constant(number.real, dtype), call.constant(number.imag, dtype))
    return Complex(call.cast(value, dtype), _part(call, call.cast(value, dtype), 1))


def _times(call: Call, a: Complex, b: Complex) -> Complex:
    def mul(x: Any, y: Any) -> Any:
        return call.create("mul", [x, y])

    real = call.create("sub", [mul(a.real, b.real), mul(a.imag, b.imag)])
    return Complex(real, call.create("add", [mul(a.real, b.imag), mul(a.imag, b.real)]))


@_rule("aten.mul.Tensor", "aten.mul.Scalar", "prims.mul.default")
def _mul(call: Call) -> Complex:
    a, b = (paired(call, call[name], _dtype(call)) for name in call.names[:2])
    return _times(call, a, b)


@_rule("aten.prod.default", "aten.prod.dim_int", "prims.prod.default")
def _prod(call: Call) -> Complex:
    """Halves multiplied until one is left."""
    z = paired(call, call[call.names[0]], _dtype(call))
    rank = len(z.shape)
    given = call.args.get("dims", call.args.get("dim"))
    axes = list(range(rank)) if given is None else [given] if isinstance(given, int) else list(given)
    axes = sorted(axis % rank for axis in axes) if rank else []
    rest = [axis for axis in range(rank) if axis not in axes]
    shape = [z.shape[axis] for axis in rest]
    count = sizes.product([z.shape[axis] for axis in axes])
    if not isinstance(count, int):
        raise Unsupported("a product of a symbolic number of complex numbers")
    if count == 0:
        return Complex(call.filled_part(1), call.filled_part(0))

    def each(function: Callable[[Any], Any], z: Complex) -> Complex:
        return Complex(function(z.real), function(z.imag))

    def cut(z: Complex, start: int, end: int) -> Complex:
        return each(lambda x: call.create("slice", [x], axis=0, start=start, end=end), z)

    perm = [*axes, *rest]
    z = each(lambda x: call.permuted(x, perm), z)
    z = each(lambda x: call.reshape(x, [count, *shape]), z)
    while count > 1:
        half = count // 2
        joined = _times(call, cut(z, 0, half), cut(z, half, 2 * half))
        if count % 2:
            odd = cut(z, 2 * half, count)
            pairs = zip(joined.parts, odd.parts, strict=True)
            joined = Complex(*(call.create("concat", list(pair), axis=0) for pair in pairs))
        z, count = joined, half + count % 2
    return each(lambda x: call.reshape(x, call.shape()), z)


@_rule("aten.var.correction", "aten.var.dim", "aten.var.default")
def _var(call: Call) -> Any:
    """That of the real parts and that of the imaginary ones together."""
    return call.create("add", [_of_reals(call, {**call.args, "self": part}) for part in call["self"].parts])


@_rule("aten.ones.default", "aten.ones_like.default", "aten.new_ones.default")
def _ones(call: Call) -> Complex:
    return Complex(call.filled_part(1), call.filled_part(0))


@_rule("aten.eq.Tensor", "aten.eq.Scalar", "prims.eq.default", "aten.ne.Tensor", "aten.ne.Scalar", "prims.ne.default")
def _equal(call: Call) -> Any:
    op, joined = ("eq", "logical_and") if ".eq." in call.target else ("ne", "logical_or")
    a, b = (call[name] for name in call.names[:2])
    dtype = (a if isinstance(a, Complex) else b).real.dtype
    pairs = zip(paired(call, a, dtype).parts, paired(call, b, dtype).parts, strict=True)
    return call.create(joined, [call.create(op, list(pair)) for pair in pairs])


@_rule("aten.isnan.default")
def _isnan(call: Call) -> Any:
    return call.create("logical_or", [call.create("ne", [x, x]) for x in call["self"].parts])


@_rule("aten._to_copy.default", "aten.to.dtype", "prims.convert_element_type.default", "aten.to.dtype_layout")
def _convert(call: Call) -> Any:
    z = call[call.names[0]]
    if call.makes_complex:
        return paired(call, z, _dtype(call))
    # As a truth whether it is not 0; as a real its real part.
    return truth(call, z) if call.dtype() == "bool" else call.cast(z.real, call.dtype())


@_rule("aten.complex.default")
def _complex(call: Call) -> Complex:
    return Complex(*call.broadcast(call["real"], call["imag"]))


@_rule("aten.polar.default")
def _polar(call: Call) -> Complex:
    size, angle = call.broadcast(call["abs"], call["angle"])
    return Complex(*(call.create("mul", [size, call.create(turn, [angle])]) for turn in ("cos", "sin")))


@_rule("aten._conj.default", "aten._conj_physical.default", "aten.conj.default", "aten._conj_copy.default")
def _conjugate(call: Call) -> Complex:
    x = call["self"]
    return Complex(x.real, call.create("neg", [x.imag]))


@_rule("aten.resolve_conj.default", "aten.resolve_neg.default")
def _same(call: Call) -> Any:
    return call["self"]


@_rule("aten.real.default")
def _real(call: Call) -> Any:
    return call["self"].real


@_rule("aten.imag.default")
def _imag(call: Call) -> Any:
    return call["self"].imag


@_rule("aten.abs.default", "prims.abs.default")
def _abs(call: Call) -> Any:
    return size_of(call, call["self"])


def size_of(call: Call, z: Complex) -> Any:
    """By the larger part, so that no square overflows."""
    return build_complex(call, "abs", z).real


@_rule("aten.angle.default")
def _angle(call: Call) -> Any:
    return call.create("atan2", [call["self"].imag, call["self"].real])


@_rule("aten.view_as_complex.default")
def _view_as_complex(call: Call) -> Complex:
    return _split(call, call["self"])


@_rule("aten.view_as_real.default")
def _view_as_real(call: Call) -> Any:
    return _joined(call, call["self"])


def _split(call: Call, pairs: Any) -> Complex:
    """Of reals [...,2]."""
    real, imag = (call.entry(pairs, k, len(pairs.shape) - 1) for k in range(2))
    return Complex(real, imag, pairs)


def _joined(call: Call, x: Complex) -> Any:
    if x.pairs is not None:
        return x.pairs
    return call.create("concat", [call.reshape(part, [*part.shape, 1]) for part in x.parts], axis=-1)


# Fourier transforms, of axes one after another


def _transformed(call: Call, pairs: Any, axes: Sequence[int], mode: int, **attrs: Any) -> Any:
    """Divided by 1, sqrt(n) or n of all axes as modes 0, 1 and 2 say; of pairs [...,1 or 2]."""
    rank = len(pairs.shape) - 1
    divided, other = ("backward", "forward") if attrs.get("inverse") else ("forward", "backward")
    norm = (other, "ortho", divided)[mode]
    for axis in axes:
        pairs = call.create("dft", [pairs], axis=axis % rank, norm=norm, **attrs)
    return pairs


def _axes(call: Call) -> list[int]:
    return [axis % len(call.shape()) for axis in call["dim"]]


@_rule("aten._fft_r2c.default")
def _fft_r2c(call: Call) -> Complex:
    """The last axis first, which alone keeps one half."""
    x, axes, mode = call["self"], _axes(call), call["normalization"]
    pairs = call.reshape(x, [*x.shape, 1])
    pairs = _transformed(call, pairs, axes[-1:], mode, onesided=bool(call["onesided"]))
    return _split(call, _transformed(call, pairs, axes[:-1], mode))


@_rule("aten._fft_c2c.default")
def _fft_c2c(call: Call) -> Any:
    x, axes = call["self"], _axes(call)
    if not axes:
        return x
    inverse = {} if call["forward"] else {"inverse": True}
    return _split(call, _transformed(call, _joined(call, x), axes, call["normalization"], **inverse))


@_rule("aten._fft_c2r.default")
def _fft_c2r(call: Call) -> Any:
    x, axes, size = call["self"], _axes(call), call["last_dim_size"]
    pairs, mode = _joined(call, x), call["normalization"]
    pairs = _transformed(call, pairs, axes[:-1], mode, inverse=True)
    out = _transformed(call, pairs, axes[-1:], mode, inverse=True, onesided=True, length=size)
    return call.reshape(out, call.shape())
