"""ONNX steps of optimizers: new values of tensors from their gradients, one tensor after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hetnn.errors import InvalidModel
from hetnn.importers.onnx.rules.call import ONNX, Call

# The call, the rate, the count of steps, and what belongs to one tensor; gives the new ones.
_Step = Callable[[Call, Any, Any, "list[Any]"], "list[Any]"]


def _optimizer(name: str, parts: int) -> Callable[[_Step], _Step]:
    """Registers a step of tensors of each of which there are so many parts: value, gradient and more."""

    def register(step: _Step) -> _Step:
        def run(call: Call) -> list[Any]:
            rate, steps, *rest = call.values()
            count, left = divmod(len(rest), parts)
            if left or not count:
                raise InvalidModel(f"{name} takes {parts} inputs of every tensor; got {len(rest)}")
            made = [step(call, rate, steps, rest[k::count]) for k in range(count)]
            return [value for part in zip(*made, strict=True) for value in part]

        ONNX.rule(f"ai.onnx.preview.training.{name}")(run)
        return step

    return register


def _scaled(call: Call, value: Any, factor: float) -> Any:
    return call.create("mul", [value, call.like(factor, value)])


def _sum(call: Call, a: Any, b: Any) -> Any:
    return call.create("add", [a, b])


def _regularized(call: Call, x: Any, gradient: Any) -> Any:
    return _sum(call, _scaled(call, x, float(call.attr("norm_coefficient"))), gradient)


def _root(call: Call, squares: Any) -> Any:
    root = call.create("sqrt", [squares])
    return _sum(call, root, call.like(float(call.attr("epsilon")), root))


def _moved(call: Call, x: Any, rate: Any, direction: Any) -> Any:
    return call.create("sub", [x, call.create("mul", [call.cast(rate, x.dtype), direction])])


def _in_the_first_step(call: Call, steps: Any, first: Any, later: Any) -> Any:
    return call.create("where", [call.create("gt", [steps, call.like(0, steps)]), later, first])


@_optimizer("Adagrad", 3)
def _adagrad(call: Call, rate: Any, steps: Any, parts: list[Any]) -> list[Any]:
    x, gradient, squares = parts
    decay = _scaled(call, call.cast(steps, x.dtype), float(call.attr("decay_factor")))
    rate = call.create("div", [call.cast(rate, x.dtype), _sum(call, decay, call.like(1, x))])
    gradient = _regularized(call, x, gradient)
    squares = _sum(call, squares, call.create("mul", [gradient, gradient]))
    return [_moved(call, x, rate, call.create("div", [gradient, _root(call, squares)])), squares]


@_optimizer("Adam", 4)
def _adam(call: Call, rate: Any, steps: Any, parts: list[Any]) -> list[Any]:
    x, gradient, mean, squares = parts
    alpha, beta = float(call.attr("alpha")), float(call.attr("beta"))
    gradient = _regularized(call, x, gradient)
    mean = _sum(call, _scaled(call, mean, alpha), _scaled(call, gradient, 1 - alpha))
    own = call.create("mul", [gradient, gradient])
    squares = _sum(call, _scaled(call, squares, beta), _scaled(call, own, 1 - beta))
    rate, power = call.cast(rate, x.dtype), call.cast(steps, x.dtype)
    rest = [
        call.create("sub", [call.like(1, x), call.create("pow", [call.like(base, x), power])]) for base in (alpha, beta)
    ]
    later = call.create("div", [call.create("mul", [rate, call.create("sqrt", [rest[1]])]), rest[0]])
    rate = _in_the_first_step(call, steps, rate, later)
    moved = _moved(call, x, rate, call.create("div", [mean, _root(call, squares)]))
    return [_scaled(call, moved, 1 - float(call.attr("norm_coefficient_post"))), mean, squares]


@_optimizer("Momentum", 3)
def _momentum(call: Call, rate: Any, steps: Any, parts: list[Any]) -> list[Any]:
    x, gradient, momentum = parts
    alpha = float(call.attr("alpha"))
    gradient = _regularized(call, x, gradient)
    beta = _in_the_first_step(call, steps, call.like(1, x), call.like(float(call.attr("beta")), x))
    momentum = _sum(call, _scaled(call, momentum, alpha), call.create("mul", [beta, gradient]))
    direction = momentum
    if call.attr("mode") == "nesterov":
        direction = _sum(call, gradient, _scaled(call, momentum, alpha))
    return [_moved(call, x, rate, direction), momentum]
