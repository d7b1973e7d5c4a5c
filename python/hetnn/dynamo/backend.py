"""The backend of torch.compile. What hetnn does not take stays in torch's eager mode, graph by graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import GraphModule
from torch.nn.attention import SDPBackend, sdpa_kernel

from hetnn.api import compile
from hetnn.dynamo.program import exported
from hetnn.dynamo.report import Kind, TorchGraph, note
from hetnn.dynamo.weights import Run, Weights
from hetnn.element_types import tensor_of
from hetnn.errors import Error, InvalidModel
from hetnn.importers.torch.decompositions import beyond_rules
from hetnn.importers.torch.graph import import_exported_program
from hetnn.importers.torch.reading import place_of
from hetnn.options import read_options
from hetnn.target import resolve_target

_MODES: dict[str | None, dict[str, Any]] = {
    None: {},
    "default": {},
    "reduce-overhead": {},
    "max-autotune": {"tune": True},
    "max-autotune-no-cudagraphs": {"tune": True},
}


def backend(
    module: GraphModule,
    inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """What `torch.compile(model, backend="hetnn", options=...)` calls for a graph of the model and its inputs.

    options: "target", and the options of `hetnn.compile`; mode: "max-autotune" is the option "tune".
    InvalidModel for others, and for a target that is none.
    """
    if mode not in _MODES:
        raise InvalidModel(f"mode must be one of {', '.join(filter(None, _MODES))}; got {mode!r}.")
    settings = {**_MODES[mode], **(options or {})}
    target = settings.pop("target", "cpu")
    read_options(settings)
    resolve_target(target)
    held = {k: value for k, value in enumerate(inputs) if hasattr(value, "_dynamo_static_input_type")}
    compiling = partial(_compiled, target=target, options=settings)
    trains = torch.is_grad_enabled() and any(getattr(value, "requires_grad", False) for value in inputs)
    aot: Callable[..., Any] = aot_autograd(
        fw_compiler=partial(compiling, kind="forward", held={}),
        bw_compiler=partial(compiling, kind="backward", held={}),
        inference_compiler=partial(compiling, kind="inference", held=held),
        decompositions=beyond_rules(),
    )
    # Torch's own kernel of attention has a gradient that is a kernel too; the formula has one of operators.
    with sdpa_kernel(SDPBackend.MATH) if trains else nullcontext():
        return aot(module, inputs)  # type: ignore[no-any-return]


def _compiled(
    module: GraphModule,
    inputs: Sequence[Any],
    *,
    kind: Kind,
    held: Mapping[int, torch.Tensor],
    target: Any,
    options: Mapping[str, Any],
) -> Callable[[list[Any]], Any]:
    """A graph of ATen operators as a function of a list of its arguments: by hetnn, or by torch's eager mode."""

    def program(held: Mapping[int, torch.Tensor]) -> Run:
        with unset_fake_temporarily():  # weights have values
            executable = compile(import_exported_program(exported(module, held), functional=True), target, **options)
        executable._source = None  # which would keep the weights of a model that is gone
        return lambda args: executable(*args)

    nodes = [node for node in module.graph.nodes if node.op == "call_function"]
    places = [f"{file}:{line}" for _, file, line in map(place_of, nodes) if file]
    place = places[0] if places else ""
    try:
        run = Weights(program, held).run if held else program({})
    except Error as error:
        note(TorchGraph(kind, len(nodes), place, str(error)))
        return make_boxed_func(module.forward)
    note(TorchGraph(kind, len(nodes), place, ""))

    def boxed(args: list[Any]) -> Any:
        given = list(args)
        args.clear()  # torch frees what nobody holds any more
        # Of a graph without inputs arrays come.
        return [tensor_of(value) if isinstance(value, np.ndarray) else value for value in run(given)]

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed
