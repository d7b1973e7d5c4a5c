"""Reading an exported program as it is: what writes in place as what it computes, what is unknown piece by piece."""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils._pytree import tree_flatten

from hetnn.errors import InvalidModel
from hetnn.importers.torch.gradient_formulas import DERIVED

_TORCH = str(Path(torch.__file__).parent)

# Composites of torch whose result shares no memory with an input, though nothing in their schema says so.
_FRESH = {
    *("aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default", "aten.batch_norm.default"),
    *("aten.linear.default", "aten.layer_norm.default", "aten.group_norm.default", "aten.matmul.default"),
    *("aten.softmax.int", "aten.max_pool2d.default", "aten.adaptive_avg_pool2d.default"),
}


@cache
def _is_fresh(target: Any) -> bool:
    """Whether results surely lie in memory of their own."""
    if str(target) in _FRESH:
        return True
    schema = getattr(target, "_schema", None)
    if schema is None or any(out.alias_info is not None for out in schema.returns):
        return False
    composite = "CompositeImplicitAutograd"
    return not torch._C._dispatch_has_kernel_for_dispatch_key(target.name(), composite)


def _is_mutable(node: Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is not None and bool(schema.is_mutable)


def in_place(node: Node) -> tuple[Node | None, str]:
    """The value that a node overwrites, if any, and the overload that computes the same without writing."""
    target = str(node.target)
    if not _is_mutable(node) or "_." not in target:
        return None, target
    return node.args[0], target.replace("_.", ".", 1)  # type: ignore[return-value]


def sharing(node: Node) -> list[Node]:
    """All values that lie in one memory because one was written in place into another; `node` is one of them."""
    written = in_place(node)[0]
    while written is not None:
        node, written = written, in_place(written)[0]
    found = [node]
    for value in found:
        found += [user for user in value.users if in_place(user)[0] is value]
    return found


def _is_safe(node: Node, knows: Callable[[str], bool], owners: set[Node]) -> bool:
    """Whether what a node overwrites is seen only through values that are written in place."""
    written, target = in_place(node)
    if written is None or not knows(target):
        return False
    shared = sharing(node)
    readers = {user for value in shared for user in value.users if user < node and user not in shared}
    return shared[0] in owners and all(_is_fresh(user.target) for user in readers)


def is_readable(program: torch.export.ExportedProgram, knows: Callable[[str], bool]) -> bool:
    """Whether no memory is written that anything sees through another value, all sizes come from the inputs, and
    weights are tensors by themselves, not several as one."""
    if any(is_traceable_wrapper_subclass(tensor) for tensor in program.state_dict.values()):
        return False
    owners: set[Node] = set()  # made in memory of their own
    for node in program.graph.nodes:
        if node.op != "call_function" or node.target is operator.getitem:
            continue
        if isinstance(node.target, torch._ops.HigherOrderOperator) or node.meta.get("unbacked_bindings"):
            return False
        if _is_mutable(node):
            if not _is_safe(node, knows, owners):
                return False
        elif _is_fresh(node.target):
            owners.add(node)
    return True


def expanded(node: Node, table: dict[Any, Any], found: dict[Any, GraphModule | None]) -> GraphModule | None:
    """What torch decomposes a call into, over the nodes that it reads; None where it cannot alone.

    `found` holds those of earlier calls.
    """
    inputs = node.all_input_nodes
    values: list[Any] = [value.meta.get("val") for value in inputs]
    if not isinstance(node.target, torch._ops.OpOverload) or not all(_is_static(value) for value in values):
        return None
    leaves, spec = tree_flatten((node.args, node.kwargs))
    places = tuple(f"input {inputs.index(leaf)}" if isinstance(leaf, Node) else repr(leaf) for leaf in leaves)
    types = tuple((value.dtype, tuple(value.shape), value.stride()) for value in values)
    key = (node.target, places, str(spec), types)
    if key not in found:
        found[key] = _traced(node, inputs, values, table)
    return found[key]


def _is_static(value: Any) -> bool:
    plain = isinstance(value, torch.Tensor) and value.layout is torch.strided
    return plain and all(isinstance(size, int) for size in (*value.shape, *value.stride()))


def _traced(node: Node, inputs: list[Node], values: list[Any], table: dict[Any, Any]) -> GraphModule | None:
    derives = node.target in DERIVED
    function: Any = DERIVED.get(node.target, node.target)

    def call(*tensors: Any) -> Any:
        found = dict(zip(inputs, tensors, strict=True))
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), found.__getitem__)
        return function(*args, **kwargs)

    traced = torch.func.functionalize(call) if derives else call
    body: GraphModule | None = None
    # A formula that makes tensors of numbers mixes them with those that have no values, unless none has any.
    for mode in (nullcontext(), *(value.fake_mode for value in values[:1])):
        try:
            with mode, torch.no_grad():
                body = make_fx(traced, decomposition_table=table)(*values)
            break
        except Exception:  # whatever torch finds wrong: it may decompose the whole program
            continue
    if body is None:
        return None
    calls = [inner for inner in body.graph.nodes if inner.op == "call_function"]
    return None if any(inner.target is node.target or _is_mutable(inner) for inner in calls) else body


def _source(path: str) -> str:
    """What messages call a source file: its name, or of a notebook that it is one of its cells."""
    name = Path(path).name
    in_notebook = "ipykernel_" in path or name.startswith(("<ipython-input-", "ipython-input-"))
    return "notebook cell" if in_notebook else name


def place_of(node: Node) -> tuple[str, str, int]:
    """A node's place in the model: its scope, its file and the line."""
    scope = ""
    stack = node.meta.get("nn_module_stack")
    if stack:
        path = list(stack.values())[-1][0]
        scope = str(path).removeprefix("L['self'].").removeprefix("L['self']")
    file, line = "", 0
    for row in reversed((node.meta.get("stack_trace") or "").splitlines()):
        row = row.strip()
        if row.startswith('File "') and _TORCH not in row:
            parts = row.split('"')
            file = _source(parts[1])
            line = int(parts[2].split("line ")[1].split(",")[0])
            break
    return scope, file, line


def refuse_training(program: torch.export.ExportedProgram) -> None:
    """InvalidModel for a layer of dropout or batch norm that behaves as in training, which somebody forgot to end.

    What a model asks for by itself, dropout by a function and statistics of given tensors, is computed.
    """
    buffers = program.graph_signature.inputs_to_buffers
    for node in program.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        names = [argument.name for argument in schema.arguments] if schema else []
        values = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
        if True not in (values.get("train"), values.get("training")):
            continue
        statistics = values.get("running_mean")
        drops = values.get("p") != 0 and _is_layer_of_dropout(node)
        if drops or getattr(statistics, "name", None) in buffers:
            raise InvalidModel(
                f"{str(node.target).split('.')[1]} '{node.name}' works as in training, so the model was "
                "exported in that mode; call model.eval() before torch.export.export."
            )


def _is_layer_of_dropout(node: Node) -> bool:
    stack = list(node.meta.get("nn_module_stack", {}).values())
    return bool(stack) and str(stack[-1][1]).startswith("torch.nn.modules.dropout.")


def refuse_shared_states(program: torch.export.ExportedProgram) -> None:
    """InvalidModel for a buffer that is written and shares memory with another: each is a state of its own here."""
    tensors = {**program.state_dict, **program.constants}
    given = {spec.arg.name: spec.target for spec in program.graph_signature.input_specs if spec.target in tensors}
    for node in program.graph.nodes:
        if node.op != "call_function" or not _is_mutable(node) or not node.args:
            continue
        root = node
        while root.op == "call_function" and root.args and isinstance(root.args[0], Node):
            root = root.args[0]  # what it views, or was written before
        written = given.get(root.name)
        others = (name for name in tensors if name != written and _meet(tensors[name], tensors.get(written)))
        if written is not None and (other := next(others, None)):
            raise InvalidModel(
                f"the buffers '{written}' and '{other}' lie in the same memory, and the model writes '{written}' "
                f"({place_text(node)}); each buffer must have memory of its own, as what is written into one is not "
                f"seen in the other. Register one of them as a copy (`.clone()`), or write both in forward."
            )


def _meet(a: Any, b: Any) -> bool:
    """Whether two tensors have bytes in common."""
    plain = all(isinstance(one, torch.Tensor) and one.layout is torch.strided and one.numel() for one in (a, b))
    if not plain or a.untyped_storage().data_ptr() != b.untyped_storage().data_ptr():
        return False
    (a_begin, a_end), (b_begin, b_end) = _bytes_of(a), _bytes_of(b)
    return a_begin < b_end and b_begin < a_end


def _bytes_of(tensor: torch.Tensor) -> tuple[int, int]:
    begin = int(tensor.storage_offset()) * tensor.element_size()
    last = sum((int(size) - 1) * int(stride) for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return begin, begin + (last + 1) * tensor.element_size()


def place_text(node: Node) -> str:
    """A node's line in the model, else its module or name."""
    scope, file, line = place_of(node)
    return f"at {file}:{line}" if file else f"in module '{scope}'" if scope else f"'{node.name}'"
