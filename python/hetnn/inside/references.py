"""What an executable is compared with: eager torch, an ONNX model, another executable, or what the model means."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hetnn.errors import InvalidModel
from hetnn.inside.names import Names
from hetnn.progress import Progress, announce, counted, teller
from hetnn.states import read_states

if TYPE_CHECKING:
    from hetnn.executable import Executable

Array = NDArray[Any]


@dataclass(frozen=True)
class Reference:
    """`values` gives those of the names that it has, in its own order; `called` says what it is."""

    called: str
    names: list[str]
    values: Callable[[Sequence[str]], dict[str, Array]]


def reference_of(
    reference: Any, executable: Executable, inputs: Sequence[Any], arrays: Sequence[Array], progress: Progress
) -> Reference:
    """What `Executable.compare` takes, run on the same inputs. InvalidModel for anything else."""
    from hetnn.executable import Executable as AnExecutable

    if reference is None:
        if executable._source is None:
            raise InvalidModel("a loaded executable has no model to be compared with: give one, or another executable.")
        first = read_states(executable.states, executable._engine.session()) if executable.states else {}
        graph, given = executable._source.graph, iter(arrays)
        inputs = [first[name] if name in first else next(given) for name, _, _ in graph.inputs]
        return _meaning(graph, inputs, "the model by its meaning", progress)
    if isinstance(reference, AnExecutable):
        return _executable(reference, arrays, progress)
    kind = f"{type(reference).__module__}.{type(reference).__qualname__}"
    if kind == "torch.export.exported_program.ExportedProgram":
        return _torch(reference, arrays, progress)
    if any(base.__module__.startswith("torch.nn.modules") for base in type(reference).__mro__):
        from hetnn.importers.torch.module import export

        with counted(progress, "export"):
            exported = export(reference, tuple(inputs), None, None)
        return _torch(exported, arrays, progress)
    if _is_onnx(reference, kind):
        found = _by_onnxruntime(reference, executable, arrays, progress)
        if found is not None:
            return found
    from hetnn.importers import import_model

    with counted(progress, "import"):
        graph = import_model(reference).graph
    return _meaning(graph, arrays, "the reference by its meaning", progress)


def remembered(reference: Reference) -> Reference:
    """The same, which is asked for each value once."""
    known: dict[str, Array] = {}

    def values(names: Sequence[str]) -> dict[str, Array]:
        missing = [name for name in names if name not in known]
        if missing:
            known.update(reference.values(missing))
        return {name: known[name] for name in names}

    return Reference(reference.called, reference.names, values)


def _is_onnx(reference: Any, kind: str) -> bool:
    if isinstance(reference, (str, os.PathLike)):
        return os.fspath(reference).endswith(".onnx")
    return isinstance(reference, bytes) or kind.split(".")[0] == "onnx"


def _executable(other: Executable, arrays: Sequence[Array], progress: Progress) -> Reference:
    from hetnn.inside.values import names_of, values_of

    def values(names: Sequence[str]) -> dict[str, Array]:
        return {name: one.array for name, one in values_of(other, arrays, names, None, progress)[1].items()}

    return Reference("the other executable", names_of(other).order, values)


def _meaning(graph: Any, arrays: Sequence[Array], called: str, progress: Progress) -> Reference:
    from hetnn import _core

    rows = [(row["name"], "", row["outputs"]) for row in graph.nodes()]
    order = Names(rows, _core.repeated_values(graph)).order
    quants = {name: one["quant"] for name, one in graph.types().items() if one["quant"]}

    def values(names: Sequence[str]) -> dict[str, Array]:
        from hetnn.inside.values import real

        with counted(progress, "reference"):
            results = _core.interpret(_core.with_outputs(graph, list(names)), list(arrays), teller())[-len(names) :]
        return {name: real(array, quants.get(name)) for name, array in zip(names, results, strict=True)}

    return Reference(called, order, values)


def _torch(program: Any, arrays: Sequence[Array], progress: Progress) -> Reference:
    """An exported program, node by node in eager torch; each value by its name in the graph that is imported from it.

    What runs is the program as it was read, so that the names are its nodes' own where torch had to decompose some.
    """
    import torch

    from hetnn.importers import import_model

    with counted(progress, "import"):
        imported = import_model(program)
    numbers = {node.name: k for k, node in enumerate(imported.program.graph.nodes)}
    there = {value for row in imported.graph.nodes() for value in row["outputs"]}
    found: dict[str, Array] = {}

    class Recording(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> Any:
            announce(numbers.get(n.name, 0), len(numbers))
            result = super().run_node(n)
            name = imported.values.get(n.name)
            if name is not None and name in there and isinstance(result, torch.Tensor) and not result.is_complex():
                found.setdefault(name, _array(result))  # what only names a value again comes behind it
            return result

    with torch.no_grad(), counted(progress, "reference"):
        Recording(imported.program.graph_module).run(*_arguments(imported.program, arrays))
    return Reference("eager torch", list(found), lambda names: {name: found[name] for name in names})


def _array(tensor: Any) -> Array:
    from hetnn.element_types import array_of

    return np.array(array_of(tensor))  # a copy, as later nodes may write it


def _arguments(program: Any, arrays: Sequence[Array]) -> list[Any]:
    """What a program's graph takes in order: its parameters, buffers and constants, and the caller's arrays."""
    from hetnn.element_types import tensor_of

    given = iter(arrays)
    out = []
    for spec in program.graph_signature.input_specs:
        target, kind = spec.target, spec.kind.name
        if kind == "USER_INPUT":
            constant = getattr(spec.arg, "value", None)
            out.append(constant if not hasattr(spec.arg, "name") or constant is not None else tensor_of(next(given)))
        elif target in program.state_dict:
            out.append(program.state_dict[target].detach().clone())
        else:
            out.append(program.constants[target])
    return out


def _by_onnxruntime(
    model: Any, executable: Executable, arrays: Sequence[Array], progress: Progress
) -> Reference | None:
    """An ONNX model by ONNX Runtime, with every tensor as an output; None where it or `onnx` is not installed."""
    try:
        import onnx
        import onnxruntime
    except ImportError:
        return None
    from hetnn.importers import import_model

    if isinstance(model, (str, os.PathLike)):
        loaded = onnx.load(os.fspath(model))
    else:
        loaded = onnx.ModelProto.FromString(model if isinstance(model, bytes) else model.SerializeToString())
    with counted(progress, "import"):
        values_of_tensors = import_model(model).values
    names = [name for node in loaded.graph.node for name in node.output if name]
    there = {value.name for value in loaded.graph.output}
    loaded.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in there)
    try:
        session = onnxruntime.InferenceSession(loaded.SerializeToString(), providers=["CPUExecutionProvider"])
    except Exception:  # it has many kinds; a model that it does not take is compared by meaning
        return None
    feeds = dict(zip([port.name for port in session.get_inputs()], arrays, strict=False))

    tensors: dict[str, str] = {}  # by value
    for name in names:
        tensors.setdefault(values_of_tensors.get(name, name), name)

    def values(wanted: Sequence[str]) -> dict[str, Array]:
        with counted(progress, "reference"):
            results = session.run([tensors[name] for name in wanted], feeds)
        return dict(zip(wanted, map(np.asarray, results), strict=True))

    return Reference("ONNX Runtime", list(tensors), values)
