"""Complex numbers: pairs of reals, on which torch's overloads work part by part or by a rule of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hetnn.errors import Unsupported
from hetnn.importers.torch_rules.call import PARTS, TORCH, Call

__all__ = ["COMPLEX", "PARTS", "Complex", "complex_call", "is_complex"]


@dataclass(frozen=True)
class Complex:
    """A value of complex numbers."""

    real: Any
    imag: Any

    @property
    def parts(self) -> tuple[Any, Any]:
        return self.real, self.imag

    @property
    def shape(self) -> Any:
        return self.real.shape


COMPLEX: dict[str, Callable[[Call], Any]] = {}

# Linear in all that is complex: the parts of a result are results of the parts.
_BY_PARTS = {
    f"aten.{name}.{overload}"
    for overload, names in {
        "default": "neg sum mean view reshape _unsafe_view squeeze unsqueeze permute t expand cat flip roll "
        "index_select gather clone alias detach contiguous split_with_sizes stack lift_fresh_copy repeat "
        "diagonal constant_pad_nd triu tril",
        "Tensor": "add sub slice index split",
        "int": "transpose select unbind",
        "dim": "squeeze mean",
        "dims": "squeeze",
        "using_ints": "flatten",
        "dim_IntList": "sum",
        "self": "where",
    }.items()
    for name in names.split()
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
    if target not in _BY_PARTS or call.args.get("alpha", 1) != 1 or call.args.get("value"):
        raise Unsupported("it computes with complex numbers")
    row = TORCH.rows.get(target)
    made = []
    for k in (0, 1):
        part = call.part({name: _part(call, value, k) for name, value in call.args.items()})
        made.append(part.by_row(row) if row else TORCH.rules[target](part))
    if isinstance(made[0], (list, tuple)):
        return [Complex(*pair) for pair in zip(*made, strict=True)]
    return Complex(*made)


def _part(call: Call, value: Any, k: int) -> Any:
    """Of an argument: of reals the imaginary part is 0."""
    if isinstance(value, Complex):
        return value.parts[k]
    if isinstance(value, complex):
        return (value.real, value.imag)[k]
    if isinstance(value, (list, tuple)):
        return [_part(call, item, k) for item in value]
    if k and getattr(value, "dtype", "") in ("f16", "bf16", "f32", "f64"):
        zero = call.constant(0, value.dtype)
        return call.create("expand", [zero], shape=list(value.shape)) if value.shape else zero
    return value


def _dtype(call: Call) -> str:
    """Of the parts of the result."""
    return call.part({}).dtype()


def _pair(call: Call, value: Any, dtype: str) -> Complex:
    """A tensor or a number as complex numbers."""
    if isinstance(value, Complex):
        return Complex(call.cast(value.real, dtype), call.cast(value.imag, dtype))
    if not hasattr(value, "dtype"):
        number = complex(value)
        return Complex(call.constant(number.real, dtype), call.constant(number.imag, dtype))
    return Complex(call.cast(value, dtype), _part(call, call.cast(value, dtype), 1))


@_rule("aten.mul.Tensor")
def _mul(call: Call) -> Complex:
    a, b = (_pair(call, call[name], _dtype(call)) for name in ("self", "other"))

    def mul(x: Any, y: Any) -> Any:
        return call.create("mul", [x, y])

    real = call.create("sub", [mul(a.real, b.real), mul(a.imag, b.imag)])
    return Complex(real, call.create("add", [mul(a.real, b.imag), mul(a.imag, b.real)]))


@_rule("aten._to_copy.default", "aten.to.dtype", "prims.convert_element_type.default", "aten.to.dtype_layout")
def _convert(call: Call) -> Any:
    if not call.makes_complex:
        raise Unsupported("complex numbers are made reals")
    return _pair(call, call[call.names[0]], _dtype(call))


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


@_rule("aten.abs.default")
def _abs(call: Call) -> Any:
    """By the larger part, so that no square overflows."""
    a, b = (call.create("abs", [part]) for part in call["self"].parts)
    high, low = call.create("maximum", [a, b]), call.create("minimum", [a, b])
    ratio = call.create("div", [low, high])
    one = call.constant(1, high.dtype)
    root = call.create("sqrt", [call.create("add", [call.create("mul", [ratio, ratio]), one])])
    zero, inf = (call.constant(value, high.dtype) for value in (0, math.inf))
    edge = call.create("logical_or", [call.create("eq", [high, zero]), call.create("eq", [high, inf])])
    out = call.create("where", [edge, high, call.create("mul", [high, root])])
    far = call.create("logical_or", [call.create("eq", [part, inf]) for part in (a, b)])
    return call.create("where", [far, inf, out])


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
    return Complex(
        *(
            call.reshape(call.create("slice", [pairs], axis=-1, start=k, end=k + 1), list(pairs.shape)[:-1])
            for k in (0, 1)
        )
    )


def _joined(call: Call, x: Complex) -> Any:
    return call.create("concat", [call.reshape(part, [*part.shape, 1]) for part in x.parts], axis=-1)


# Fourier transforms, of axes one after another


def _transformed(call: Call, pairs: Any, axes: Sequence[int], mode: int, **attrs: Any) -> Any:
    """Scaled by 1, 1/sqrt(n) or 1/n of all axes as modes 0, 1 and 2 say; of pairs [...,1 or 2]."""
    inverse, rank = bool(attrs.get("inverse")), len(pairs.shape) - 1
    count = 1.0
    for axis in axes:
        size = attrs.get("length") or pairs.shape[axis % rank]
        if not isinstance(size, int):
            raise Unsupported("a Fourier transform of symbolic size")
        count *= size
        pairs = call.create("dft", [pairs], axis=axis % rank, **attrs)
    scale = {0: 1.0, 1: count**-0.5, 2: 1 / count}[mode] * (count if inverse else 1.0)
    return pairs if scale == 1 else call.create("mul", [pairs, call.constant(scale, pairs.dtype)])


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
    if not isinstance(size, int):
        raise Unsupported("a Fourier transform of symbolic size")
    pairs, mode = _joined(call, x), call["normalization"]
    pairs = _transformed(call, pairs, axes[:-1], mode, inverse=True)
    out = _transformed(call, pairs, axes[-1:], mode, inverse=True, onesided=True, length=size)
    return call.reshape(out, call.shape())
