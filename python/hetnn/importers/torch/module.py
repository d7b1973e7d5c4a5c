"""From a torch module, or a function of tensors, and what it is called with, to an ExportedProgram."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.export import ExportedProgram

from hetnn.errors import InvalidModel


def export(
    model: torch.nn.Module | Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> ExportedProgram:
    """The program that torch.export makes of `model` in evaluation mode; every layer's own mode is restored.

    args, kwargs: what the model is called with; dynamic_shapes: as torch.export.export takes them.
    InvalidModel where they make no call, or where torch cannot export the model.
    """
    module = _as_module(model)
    if args is not None and not isinstance(args, (tuple, list)):
        raise InvalidModel(
            f"args must be a tuple of the model's arguments; got {type(args).__name__}. Write args=(x,)."
        )
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise InvalidModel(f"kwargs must be a dict of the model's arguments by name; got {type(kwargs).__name__}.")
    if args is None and kwargs is None:
        raise InvalidModel("dynamic_shapes are those of example arguments; give them too: args=(x,).")
    name = getattr(model, "__qualname__", type(model).__qualname__)
    with _evaluating(module):
        try:
            return torch.export.export(module, tuple(args or ()), dict(kwargs or {}), dynamic_shapes=dynamic_shapes)
        except Exception as error:  # torch raises many kinds for what it cannot trace
            raise InvalidModel(
                f"torch.export cannot export {name}: {str(error).strip() or type(error).__name__}. "
                "Call it with these arguments once to see whether they fit it."
            ) from error


def _as_module(model: Any) -> torch.nn.Module:
    model = getattr(model, "_orig_mod", model)  # what torch.compile was given
    if isinstance(model, torch.jit.ScriptModule):
        raise InvalidModel("a model of torch.jit has no Python to export; give the module that it was made from.")
    if isinstance(model, torch.nn.Module):
        return model
    if not callable(model) or isinstance(model, ExportedProgram):
        raise InvalidModel(
            f"args, kwargs and dynamic_shapes are for a torch module or a function; got {type(model).__name__}. "
            "What is exported already goes in alone."
        )
    module = torch.nn.Module()
    module.forward = model if _has_signature(model) else lambda *args, **kwargs: model(*args, **kwargs)
    return module


def _has_signature(function: Callable[..., Any]) -> bool:
    """Not so of torch's own functions that are built in."""
    try:
        inspect.signature(function)
    except ValueError:
        return False
    return True


@contextmanager
def _evaluating(module: torch.nn.Module) -> Iterator[None]:
    modes = [(layer, layer.training) for layer in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for layer, training in modes:
            layer.training = training
