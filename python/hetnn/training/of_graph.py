"""Training of models that are not torch's: hetnn differentiates their graphs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hetnn import _core
from hetnn.errors import InvalidModel
from hetnn.importers import Imported, import_model, is_onnx
from hetnn.importers.lowering.updates import Optimizer, Updates, require_finite
from hetnn.training.losses import GRAPH_LOSSES, target_type

Array = np.ndarray[Any, Any]
TARGETS = "targets"
# Inputs of operators that hold what was measured, not learnt.
_STATISTICS = ("mean", "variance")


def _nodes(graph: _core.Graph, wanted: Collection[str]) -> set[str]:
    """Values that some of a graph's values are computed from."""
    found = set(wanted)
    for row in reversed(graph.nodes()):
        if found.intersection(row["outputs"]):
            found.update(name for name in row["inputs"] if name is not None)
    return found


def _statistics(graph: _core.Graph) -> set[str]:
    inputs = {op["name"]: [given["name"] for given in op["inputs"]] for op in _core.operators()}
    return {
        name
        for row in graph.nodes()
        for given, name in zip(inputs[row["op"]], row["inputs"], strict=False)
        if given in _STATISTICS
    }


class Trained:
    """A model whose parameters are inputs of its graph, or constants in it, by name with their values."""

    def __init__(
        self,
        imported: Imported,
        values: Mapping[str, Array],
        train: Sequence[str] | None,
        loss: str,
        running: Mapping[str, str] | None = None,
        evaluated: Callable[[], Imported] | None = None,
    ) -> None:
        """loss: as `step` makes it: what an output that is the loss does not read is not trained.
        running: of values that are no parameters but change, the last outputs, which are what they become.
        evaluated: imports the model as it is for inference, where that is another one.
        """
        self._of = loss
        self.imported, self.values = imported, dict(values)
        self.running = dict(running or {})
        self._evaluated = evaluated or (lambda: imported)
        graph = imported.graph
        parameters = [name for name in values if name not in self.running]
        unknown = [name for name in train or () if name not in parameters]
        if unknown:
            raise InvalidModel(
                f"the model has no parameter '{unknown[0]}' of f32; it has {', '.join(parameters) or 'none'}."
            )
        fixed = _statistics(graph) if train is None else set()
        chosen = [name for name in parameters if name not in fixed] if train is None else list(train)
        outputs = [name for name, _, _ in graph.outputs]
        reached = _nodes(
            graph, [name for name, called in zip(outputs, graph.output_names, strict=True) if called == loss]
        )
        reached = reached or _nodes(graph, outputs)
        self.names = [name for name in chosen if name in reached]
        if not self.names:
            raise InvalidModel("nothing in the model is trained: no parameter of f32 reaches its output.")

    @property
    def learnt(self) -> Learnt:
        """The model for inference, to be given parameters."""
        return Learnt(self._evaluated, self.values)

    def step(self, update: Optimizer) -> Imported:
        """The graph of a step: the loss, and what its states are after it."""
        builder = _core.GraphBuilder("step")
        states = _States(builder)
        given = {name: states.state(self.values[name], "f32", name) for name in self.names}
        changing = {name: states.state(self.values[name], "f32", name) for name in self.running}
        known = {**given, **changing}
        fixed = {name: builder.constant(value, name) for name, value in self.values.items() if name not in known}
        results = builder.include(self.imported.graph, {**known, **fixed})
        count = len(results) - len(changing)
        value = self._loss(builder, self._of, results[:count])
        require_finite(builder, value)
        gradients = builder.differentiate(value, list(given.values()))
        builder.output(value, "loss")
        for state, after in zip(changing.values(), results[count:], strict=True):
            states.keep(state, after)
        named = {name: (state, part) for (name, state), part in zip(given.items(), gradients, strict=True)}
        update(Updates(builder, states.state, states.keep), named)
        return Imported(builder.finish())

    def _loss(self, builder: Any, loss: str, results: Sequence[Any]) -> Any:
        names = self.imported.graph.output_names[: len(results)]
        if loss in names:
            value = results[names.index(loss)]
        elif loss in GRAPH_LOSSES:
            if len(results) != 1:
                raise InvalidModel(
                    f"the model gives {', '.join(names)}; {loss} is of one. Name the output that is the loss."
                )
            dtype, shape = target_type(loss, results[0])
            targets = builder.add_input(TARGETS, dtype, shape)
            value = GRAPH_LOSSES[loss](_create(builder), results[0], targets)
        else:
            known = ", ".join(GRAPH_LOSSES)
            raise InvalidModel(
                f"loss must be one of {known}, or an output of the model ({', '.join(names)}); got {loss!r}."
            )
        if value.dtype != "f32" or list(value.shape):
            raise InvalidModel(f"the loss must be one number of f32; it is {value.dtype}{list(value.shape)}.")
        return value


class Learnt:
    """A model for inference with parameters that are constants: those that a call gives, and as they were at first."""

    def __init__(self, evaluated: Callable[[], Imported], values: Mapping[str, Array]) -> None:
        self._evaluated, self._values = evaluated, dict(values)

    def __call__(self, learnt: Mapping[str, Array]) -> tuple[Imported, None]:
        """The model with these parameters, and no arguments that it was shown."""
        imported = self._evaluated()
        builder = _core.GraphBuilder(imported.graph.name)
        given = {name: builder.constant(value, name) for name, value in {**self._values, **learnt}.items()}
        found = builder.include(imported.graph, given)
        for value, name in zip(found, imported.graph.output_names, strict=False):
            builder.output(value, name)
        return replace(imported, graph=builder.finish()), None

    def __reduce__(self) -> tuple[Any, ...]:
        return _read_again, (self._evaluated().graph.print(), self._values)


def _read_again(text: str, values: Mapping[str, Array]) -> Learnt:
    return Learnt(lambda: Imported(_core.Graph.parse(text)), values)


def _create(builder: Any) -> Callable[..., Any]:
    return lambda op, *inputs, **attrs: builder.create(op, list(inputs), attrs, "loss")[0]


class _States:
    """States of a step."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self._initial: dict[str, Array] = {}

    def state(self, initial: Array, dtype: str, name: str) -> Any:
        value = self._builder.add_input(name, dtype, list(initial.shape))
        self._initial[value.name] = np.ascontiguousarray(initial).reshape(initial.shape)
        return value

    def keep(self, before: Any, after: Any) -> Any:
        name = f"{before.name}.next"
        self._builder.output(after, name)
        self._builder.mutation(before.name, name, self._initial[before.name])
        return after


def trained(model: Any, loss: str, train: Sequence[str] | None, fix: Mapping[str, Any] | None) -> Trained:
    """A model with its parameters: of an ONNX model its initializers of f32, of another the constants of its graph.

    train: the names of those that are trained; None: all that have an axis and reach the result, but statistics of
        batch norms.
    """
    if is_onnx(model):
        from hetnn.importers.onnx.opened import import_opened

        opened = import_opened(model, fix)
        return Trained(opened.imported, opened.values, train, loss, opened.running, opened.evaluated)
    imported = import_model(model, fix)
    values = imported.graph.constants()
    taken = {name: array for name, array in values.items() if array.dtype == np.float32 and (array.ndim or train)}
    return Trained(imported, taken, train, loss)
