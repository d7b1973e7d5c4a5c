"""Torch overloads that draw random numbers, from generators whose states the executable keeps from run to run.

Each call has a generator of its own, seeded by its place in the model: runs can be repeated, and differ from torch's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hetnn.errors import Unsupported
from hetnn.importers.lowering.complexes import Complex
from hetnn.importers.lowering.random_numbers import fraction, normal, on
from hetnn.importers.lowering.sizes import Size
from hetnn.importers.torch.rules.call import TORCH, Call, rule
from hetnn.importers.torch.rules.complexes import COMPLEX


def _even(call: Call, shape: Sequence[Size] | None = None) -> Any:
    """f64 of [0, 1), of the result's shape unless another is given."""
    return call.random(call.shape() if shape is None else shape)


def _normal(call: Call, mean: Any = 0, std: Any = 1) -> Any:
    shape = call.shape()
    y = normal(call, call.random([2, *shape]), shape)
    mean, std = (call.cast(x, "f64") if hasattr(x, "dtype") else float(x) for x in (mean, std))
    return call.cast(on(call, "add", on(call, "mul", y, std), mean), call.dtype())


@rule("rand.default", "rand_like.default")
def _rand(call: Call) -> Any:
    return fraction(call, _even(call), call.dtype())


@rule("uniform.default")
def _uniform(call: Call) -> Any:
    low, high = float(call["from"]), float(call["to"])
    u = fraction(call, _even(call), call.dtype())
    return on(call, "add", on(call, "mul", u, high - low), low)


@rule("randn.default", "randn_like.default")
def _randn(call: Call) -> Any:
    return _normal(call)


@rule(
    *("normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor", "normal.float_float"),
    "normal_functional.default",
)
@TORCH.rule("prims.normal.default")
def _normal_of(call: Call) -> Any:
    return _normal(call, call["mean"], call["std"])


@rule("randint.default", "randint.low", "randint_like.default", "randint_like.low_dtype")
def _randint(call: Call) -> Any:
    low, high = call.args.get("low", 0), call["high"]
    if not isinstance(low, int) or not isinstance(high, int):
        raise Unsupported("random integers between symbolic bounds")
    places = call.create("floor", [on(call, "mul", _even(call), float(high - low))])
    return call.cast(on(call, "add", call.cast(places, "i64"), low), call.dtype())


@rule("randperm.default")
def _randperm(call: Call) -> Any:
    """The order in which numbers drawn would stand sorted."""
    return call.cast(call.create_all("sort", [_even(call)], {"axis": 0})[1], call.dtype())


def _happens(call: Call, probability: Any, shape: Sequence[Size]) -> Any:
    p = call.cast(probability, "f64") if hasattr(probability, "dtype") else float(probability)
    return on(call, "lt", call.random(shape), p)


@rule("bernoulli.default", "bernoulli.p", "bernoulli.Tensor")
def _bernoulli(call: Call) -> Any:
    p = call["p"] if call.args.get("p") is not None else call["self"]
    return call.cast(_happens(call, p, call.shape()), call.dtype())


@rule("exponential.default")
def _exponential(call: Call) -> Any:
    """-ln(1 - u) / lambda."""
    rest = on(call, "add", on(call, "mul", _even(call), -1.0), 1.0)
    return call.cast(on(call, "mul", call.create("log", [rest]), -1.0 / float(call["lambd"])), call.dtype())


@rule("cauchy.default")
def _cauchy(call: Call) -> Any:
    angle = on(call, "mul", on(call, "sub", _even(call), 0.5), math.pi)
    y = on(call, "mul", call.create("tan", [angle]), float(call["sigma"]))
    return call.cast(on(call, "add", y, float(call["median"])), call.dtype())


@rule("log_normal.default")
def _log_normal(call: Call) -> Any:
    return call.create("exp", [_normal(call, call["mean"], call["std"])])


@rule("geometric.default")
def _geometric(call: Call) -> Any:
    """The number of the first success: 1 + floor(ln(1 - u) / ln(1 - p))."""
    rest = on(call, "add", on(call, "mul", _even(call), -1.0), 1.0)
    tries = on(call, "div", call.create("log", [rest]), math.log1p(-float(call["p"])) or -1.0)
    return call.cast(on(call, "add", call.create("floor", [tries]), 1.0), call.dtype())


@rule("multinomial.default")
def _multinomial(call: Call) -> Any:
    """Places drawn by weights. Without replacement those of the largest weight / e, e drawn exponentially."""
    weights, count = call.cast(call["self"], "f64"), int(call["num_samples"])
    classes = weights.shape[-1]
    if not call["replacement"]:
        rest = on(call, "add", on(call, "mul", _even(call, weights.shape), -1.0), 1.0)
        waiting = on(call, "mul", call.create("log", [rest]), -1.0)
        places = call.create_all("topk", [call.create("div", [weights, waiting])], {"axis": -1, "k": count})[1]
        return call.reshape(places, call.shape())
    sums = call.create("cumsum", [weights], axis=-1)
    total = call.create("slice", [sums], axis=-1, start=classes - 1, end=classes)
    drawn = call.create("mul", [_even(call), total])
    places = call.create("searchsorted", [sums, drawn], right=True)
    return call.create("minimum", [places, call.constant(classes - 1, "i64")])


# In evaluation the result of the first four is the very input.
DROPOUTS = ("dropout.default", "feature_dropout.default", "alpha_dropout.default", "feature_alpha_dropout.default")
# The value at which a self-normalizing activation levels off: -scale alpha.
_LEVEL = -1.7580993408473766


@rule(*DROPOUTS, "native_dropout.default")
def _dropout(call: Call) -> Any:
    """In training each element, or each channel as a whole, is 0 with probability p, and the rest scaled by 1/(1-p)."""
    x, p = call["input"], float(call["p"]) if call["train"] else 0.0
    shape = list(x.shape)
    if not p or 0 in shape:
        mask = call.create("expand", [call.constant(True, "bool")], shape=shape) if shape else None
        return [x, mask if mask is not None else call.constant(True, "bool")] if call.is_tuple() else x
    whole = "feature" in call.target
    mask = _happens(call, 1 - p, [size if k < 2 or not whole else 1 for k, size in enumerate(shape)])
    if "alpha" in call.target and p < 1:
        # Mean and variance stay those of the input.
        a = 1 / math.sqrt((_LEVEL * _LEVEL * p + 1) * (1 - p))
        kept = call.create("where", [mask, x, call.constant(_LEVEL, x.dtype)])
        y = on(call, "add", on(call, "mul", kept, a), -a * _LEVEL * p)
    else:
        y = on(call, "mul", x, 1 / (1 - p) if p < 1 else 0.0)
        y = call.create("mul", [y, call.cast(mask, x.dtype)])
    return [y, mask] if call.is_tuple() else y


@rule("rrelu.default", "rrelu_with_noise.default", "rrelu_with_noise_functional.default")
def _rrelu(call: Call) -> Any:
    """In evaluation the slope is the mean of its bounds, in training one drawn for every element."""
    x, low, high = call["self"], float(call["lower"]), float(call["upper"])
    if not call["training"] or low == high or 0 in x.shape:
        y = call.create("leaky_relu", [x], negative_slope=(low + high) / 2)
        return [y, None] if call.is_tuple() else y
    slope = on(call, "add", on(call, "mul", fraction(call, _even(call, x.shape), x.dtype), high - low), low)
    negative = on(call, "le", x, 0.0)
    noise = call.create("where", [negative, slope, call.constant(1, x.dtype)])
    y = call.create("mul", [x, noise])
    return [y, noise] if call.is_tuple() else y


def _complex(call: Call) -> Complex:
    """Both parts of a complex number: even ones, or normal ones of which each has half the variance."""
    part = call.part(call.args)
    if "randn" not in call.target:
        return Complex(_rand(part), _rand(part))
    return Complex(*(_normal(part, 0, math.sqrt(0.5)) for _ in range(2)))


COMPLEX.update(
    dict.fromkeys((f"aten.{name}.default" for name in ("rand", "randn", "rand_like", "randn_like")), _complex)
)
