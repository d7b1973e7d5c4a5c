"""Functions of complex numbers: each by reals in double, from the real and imaginary parts of what goes in.

W. Kahan, "Branch cuts for complex elementary functions", 1987, for the inverse ones: signs of zeros choose the side.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hetnn.importers.lowering.complexes import Complex
from hetnn.importers.torch.rules.call import Call
from hetnn.importers.torch.rules.complexes import COMPLEX, paired, size_of

# What takes the parts of one number and builds those of the result.
_Function = Callable[["_Math", Complex], Complex]
_FUNCTIONS: dict[str, _Function] = {}


class _Math:
    """Arithmetic of reals in double where a call stands; numbers become constants."""

    def __init__(self, call: Call) -> None:
        self.call = call

    def __call__(self, op: str, *values: Any) -> Any:
        given = [self.call.constant(v, "f64") if isinstance(v, (int, float)) else v for v in values]
        return self.call.create(op, given)

    def add(self, z: Complex, real: float) -> Complex:
        return Complex(self("add", z.real, real), z.imag)

    def neg(self, z: Complex) -> Complex:
        return Complex(self("neg", z.real), self("neg", z.imag))

    def conj(self, z: Complex) -> Complex:
        return Complex(z.real, self("neg", z.imag))

    def scale(self, z: Complex, factor: float) -> Complex:
        return Complex(self("mul", z.real, factor), self("mul", z.imag, factor))

    def mul(self, a: Complex, b: Complex) -> Complex:
        real = self("sub", self("mul", a.real, b.real), self("mul", a.imag, b.imag))
        return Complex(real, self("add", self("mul", a.real, b.imag), self("mul", a.imag, b.real)))

    def div(self, a: Complex, b: Complex) -> Complex:
        """With both divided by the larger part of b, so that no square overflows."""
        most = self("maximum", self("abs", b.real), self("abs", b.imag))
        plain = self("logical_or", self("eq", most, 0), self("eq", most, math.inf))
        most = self("where", plain, 1, most)
        a, b = (Complex(self("div", z.real, most), self("div", z.imag, most)) for z in (a, b))
        square = self("add", self("mul", b.real, b.real), self("mul", b.imag, b.imag))
        product = self.mul(a, self.conj(b))
        return Complex(self("div", product.real, square), self("div", product.imag, square))

    def choose(self, condition: Any, a: Complex, b: Complex) -> Complex:
        return Complex(*(self("where", condition, x, y) for x, y in zip(a.parts, b.parts, strict=True)))

    def is_zero(self, z: Complex) -> Any:
        return self("logical_and", self("eq", z.real, 0), self("eq", z.imag, 0))

    def constant(self, real: float, imag: float) -> Complex:
        return Complex(self.call.constant(real, "f64"), self.call.constant(imag, "f64"))

    def with_sign(self, size: Any, sign: Any) -> Any:
        """|size| with the sign of the other, that of a zero too."""
        size = self("abs", size)
        negative = self("logical_or", self("lt", sign, 0), self("lt", self("reciprocal", sign), 0))
        return self("where", negative, self("neg", size), size)


def _function(name: str) -> Callable[[_Function], _Function]:
    """Registers one for torch's overload and its primitive."""

    def register(function: _Function) -> _Function:
        def of_call(call: Call) -> Complex:
            return _narrowed(call, function(_Math(call), _wide(call, call["self"])))

        _FUNCTIONS[name] = function
        COMPLEX.update(dict.fromkeys((f"aten.{name}.default", f"prims.{name}.default"), of_call))
        return function

    return register


def _wide(call: Call, value: Any) -> Complex:
    return paired(call, value, "f64")


def _narrowed(call: Call, z: Complex) -> Complex:
    dtype = call.part({}).dtype()
    return Complex(*(call.cast(part, dtype) for part in z.parts))


@_function("exp")
def _exp(m: _Math, z: Complex) -> Complex:
    """A real number stays one: inf times sin 0 is no number."""
    size = m("exp", z.real)
    turned = Complex(m("mul", size, m("cos", z.imag)), m("mul", size, m("sin", z.imag)))
    return m.choose(m("eq", z.imag, 0), Complex(size, z.imag), turned)


@_function("expm1")
def _expm1(m: _Math, z: Complex) -> Complex:
    """e^x cos y - 1 = (e^x - 1) cos y - 2 sin^2(y / 2)."""
    half = m("sin", m("mul", z.imag, 0.5))
    real = m("mul", m("expm1", z.real), m("cos", z.imag))
    real = m("sub", real, m("mul", m("mul", half, half), 2))
    return Complex(real, m("mul", m("exp", z.real), m("sin", z.imag)))


@_function("exp2")
def _exp2(m: _Math, z: Complex) -> Complex:
    return _exp(m, m.scale(z, math.log(2)))


@_function("log")
def _log(m: _Math, z: Complex) -> Complex:
    return Complex(m("log", size_of(m.call, z)), m("atan2", z.imag, z.real))


@_function("log2")
def _log2(m: _Math, z: Complex) -> Complex:
    return m.scale(_log(m, z), 1 / math.log(2))


@_function("log10")
def _log10(m: _Math, z: Complex) -> Complex:
    return m.scale(_log(m, z), 1 / math.log(10))


@_function("log1p")
def _log1p(m: _Math, z: Complex) -> Complex:
    """|1 + z|^2 = 1 + (x (2 + x) + y^2), of which log1p loses no digits near 0; far out by the logarithm itself."""
    square = m("add", m("mul", z.real, m("add", z.real, 2)), m("mul", z.imag, z.imag))
    near = m("mul", m("log1p", square), 0.5)
    far = _log(m, m.add(z, 1))
    return Complex(m("where", m("lt", m("abs", square), 0.5), near, far.real), far.imag)


@_function("sqrt")
def _sqrt(m: _Math, z: Complex) -> Complex:
    """With w = sqrt((|z| + |x|) / 2): w + i y / 2w for x >= 0, else |y| / 2w + i w with y's sign."""
    half = m("mul", m("add", size_of(m.call, z), m("abs", z.real)), 0.5)
    root = m("sqrt", half)
    other = m("div", m("mul", z.imag, 0.5), m("where", m("eq", root, 0), 1, root))
    right = Complex(root, other)
    left = Complex(m("abs", other), m.with_sign(root, z.imag))
    endless = m("eq", m("abs", z.imag), math.inf)
    found = m.choose(m("ge", z.real, 0), right, left)
    return m.choose(endless, Complex(m("abs", z.imag), z.imag), found)


@_function("rsqrt")
def _rsqrt(m: _Math, z: Complex) -> Complex:
    return _reciprocal(m, _sqrt(m, z))


@_function("reciprocal")
def _reciprocal(m: _Math, z: Complex) -> Complex:
    return m.div(m.constant(1, 0), z)


@_function("sigmoid")
def _sigmoid(m: _Math, z: Complex) -> Complex:
    return _reciprocal(m, m.add(_exp(m, m.neg(z)), 1))


@_function("sin")
def _sin(m: _Math, z: Complex) -> Complex:
    real = m("mul", m("sin", z.real), m("cosh", z.imag))
    return Complex(real, m("mul", m("cos", z.real), m("sinh", z.imag)))


@_function("cos")
def _cos(m: _Math, z: Complex) -> Complex:
    real = m("mul", m("cos", z.real), m("cosh", z.imag))
    return Complex(real, m("neg", m("mul", m("sin", z.real), m("sinh", z.imag))))


def _turned(z: Complex, m: _Math) -> Complex:
    """i z."""
    return Complex(m("neg", z.imag), z.real)


def _turned_back(z: Complex, m: _Math) -> Complex:
    """-i z."""
    return Complex(z.imag, m("neg", z.real))


@_function("sinh")
def _sinh(m: _Math, z: Complex) -> Complex:
    return _turned_back(_sin(m, _turned(z, m)), m)


@_function("cosh")
def _cosh(m: _Math, z: Complex) -> Complex:
    return _cos(m, _turned(z, m))


@_function("tanh")
def _tanh(m: _Math, z: Complex) -> Complex:
    """(sinh 2x + i sin 2y) / (cosh 2x + cos 2y); beyond 20 the sign of x and 4 e^-2|x| sin y cos y."""
    size = m("minimum", m("abs", z.real), 20)
    twice, angle = m("mul", m.with_sign(size, z.real), 2), m("mul", z.imag, 2)
    below = m("add", m("cosh", twice), m("cos", angle))
    near = Complex(m("div", m("sinh", twice), below), m("div", m("sin", angle), below))
    fading = m("exp", m("mul", m("abs", z.real), -2))
    far = Complex(m("sign", z.real), m("mul", m("mul", fading, 2), m("sin", angle)))
    return m.choose(m("gt", m("abs", z.real), 20), far, near)


@_function("tan")
def _tan(m: _Math, z: Complex) -> Complex:
    return _turned_back(_tanh(m, _turned(z, m)), m)


def _roots(m: _Math, z: Complex) -> tuple[Complex, Complex]:
    """sqrt(1 - z) and sqrt(1 + z)."""
    return _sqrt(m, m.add(m.neg(z), 1)), _sqrt(m, m.add(z, 1))


@_function("acos")
def _acos(m: _Math, z: Complex) -> Complex:
    below, above = _roots(m, z)
    real = m("mul", m("atan2", below.real, above.real), 2)
    return Complex(real, m("asinh", m.mul(m.conj(above), below).imag))


@_function("asin")
def _asin(m: _Math, z: Complex) -> Complex:
    below, above = _roots(m, z)
    real = m("atan2", z.real, m.mul(below, above).real)
    return Complex(real, m("asinh", m.mul(m.conj(below), above).imag))


@_function("asinh")
def _asinh(m: _Math, z: Complex) -> Complex:
    return _turned_back(_asin(m, _turned(z, m)), m)


@_function("acosh")
def _acosh(m: _Math, z: Complex) -> Complex:
    below, above = _sqrt(m, m.add(z, -1)), _sqrt(m, m.add(z, 1))
    real = m("asinh", m.mul(m.conj(below), above).real)
    return Complex(real, m("mul", m("atan2", below.imag, above.real), 2))


@_function("atanh")
def _atanh(m: _Math, z: Complex) -> Complex:
    """log1p(4x / ((1 - x)^2 + y^2)) / 4 and atan2(2y, (1 - x)(1 + x) - y^2) / 2."""
    rest, square = m("add", m("neg", z.real), 1), m("mul", z.imag, z.imag)
    share = m("div", m("mul", z.real, 4), m("add", m("mul", rest, rest), square))
    inner = m("sub", m("mul", rest, m("add", z.real, 1)), square)
    angle = m("atan2", m("mul", z.imag, 2), inner)
    return Complex(m("mul", m("log1p", share), 0.25), m("mul", angle, 0.5))


@_function("atan")
def _atan(m: _Math, z: Complex) -> Complex:
    return _turned_back(_atanh(m, _turned(z, m)), m)


@_function("square")
def _square(m: _Math, z: Complex) -> Complex:
    return m.mul(z, z)


@_function("sgn")
def _sgn(m: _Math, z: Complex) -> Complex:
    size = size_of(m.call, z)
    size = m("where", m("eq", size, 0), 1, size)
    return Complex(m("div", z.real, size), m("div", z.imag, size))


def _pow(m: _Math, base: Complex, exponent: Complex) -> Complex:
    """e^(w log z); 0^0 is 1, another power of 0 is 0."""
    found = _exp(m, m.mul(exponent, _log(m, base)))
    of_zero = m.choose(m.is_zero(exponent), m.constant(1, 0), m.constant(0, 0))
    return m.choose(m.is_zero(base), of_zero, found)


def _binary(names: str, function: Callable[[_Math, Complex, Complex], Complex]) -> None:
    def of_call(call: Call) -> Complex:
        a, b = (_wide(call, call[name]) for name in call.names[:2])
        return _narrowed(call, function(_Math(call), a, b))

    COMPLEX.update(dict.fromkeys(names.split(), of_call))


_binary("aten.div.Tensor aten.div.Scalar prims.div.default aten.true_divide.Tensor", _Math.div)
_binary(
    "aten.pow.Tensor_Tensor aten.pow.Tensor_Scalar aten.pow.Scalar prims.pow.default",
    _pow,
)
