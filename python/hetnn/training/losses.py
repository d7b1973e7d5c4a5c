"""Losses of training as nodes, each the mean over what torch's function of the name averages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hetnn.errors import InvalidModel

# An operator, its inputs (numbers are constants) and attributes; its first output.
Create = Callable[..., Any]


def _mean(create: Create, value: Any) -> Any:
    return create("mean", value, axes=list(range(len(value.shape))))


def _of_classes(create: Create, logarithms: Any, targets: Any) -> Any:
    shape = list(targets.shape)
    places = create("reshape", targets, shape=[*shape[:1], 1, *shape[1:]])
    return create("neg", _mean(create, create("gather_elements", logarithms, places, axis=1, from_end=False)))


def _cross_entropy(create: Create, found: Any, targets: Any) -> Any:
    return _of_classes(create, create("log_softmax", found, axis=1), targets)


def _mse(create: Create, found: Any, targets: Any) -> Any:
    apart = create("sub", found, targets)
    return _mean(create, create("mul", apart, apart))


def _l1(create: Create, found: Any, targets: Any) -> Any:
    return _mean(create, create("abs", create("sub", found, targets)))


def _bce_with_logits(create: Create, found: Any, targets: Any) -> Any:
    """max(x, 0) - x y + log(1 + exp(-|x|)), which no x makes infinite."""
    beyond = create("log1p", create("exp", create("neg", create("abs", found))))
    apart = create("sub", create("relu", found), create("mul", found, targets))
    return _mean(create, create("add", apart, beyond))


GRAPH_LOSSES: dict[str, Callable[[Create, Any, Any], Any]] = {
    "bce_with_logits": _bce_with_logits,
    "cross_entropy": _cross_entropy,
    "l1": _l1,
    "mse": _mse,
    "nll": _of_classes,
}
# Whose targets are numbers of classes.
OF_CLASSES = ("cross_entropy", "nll")


def target_type(loss: str, found: Any) -> tuple[str, list[Any]]:
    """Element type and shape of the targets of what a model gives. InvalidModel where the loss is not of such."""
    shape = list(found.shape)
    if loss not in OF_CLASSES:
        return found.dtype, shape
    if len(shape) < 2:
        raise InvalidModel(f"{loss} is of scores [N,C,...]; the model's output has the shape {shape}.")
    return "i64", [shape[0], *shape[2:]]
