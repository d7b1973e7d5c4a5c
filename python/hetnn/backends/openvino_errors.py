"""What OpenVINO computes otherwise than a model says, and does not tell (seen in 2026.4.1 on the CPU)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hetnn.backends.backend import Reason

# What every model has at its edges, whatever the device.
EDGES = {"Parameter", "Result", "Constant"}
# Which input says where; what it says is not checked.
_INDICES = {
    "Gather": 1,
    "GatherElements": 1,
    "GatherND": 1,
    "ScatterElementsUpdate": 1,
    "ScatterNDUpdate": 1,
    "ScatterUpdate": 1,
}
# What only moves values, or reads them as truth.
_MOVES = {
    *EDGES,
    *_INDICES,
    "Broadcast",
    "Concat",
    "Convert",
    "DepthToSpace",
    "FakeQuantize",
    "Pad",
    "Reshape",
    "ReverseSequence",
    "Roll",
    "Select",
    "Slice",
    "SpaceToDepth",
    "Split",
    "Squeeze",
    "StridedSlice",
    "Tile",
    "Transpose",
    "Unsqueeze",
    "VariadicSplit",
}
_REALS = {"f32", "f16", "bf16"}
_WIDE = {"f64": "f32", "i64": "i32", "u64": "i32", "u32": "i32"}

_MISORDERED = "OpenVINO folds an order of channels into the weights of the convolution behind it, by its inverse"
# The axis of a DFT is an input from operator set 20 on.
_AXIS = "OpenVINO reads the axis of DFT as operator sets before 20 had it, and takes another"
# Of more than one image and step.
_BATCHES = "OpenVINO computes other states for a batch from code that was exported and imported"
_EQUALS = "OpenVINO leaves equal elements in no fixed order"
_UNCHECKED = "OpenVINO reads and writes where an index says, also beyond the axis"


def errors_in(model: Any, outputs: Sequence[tuple[str, str, Sequence[Any]]]) -> Iterator[Reason]:
    """Reasons against a model of OpenVINO's of a graph with such outputs."""
    for output, (name, _, shape) in zip(model.outputs, outputs, strict=True):
        found = output.get_partial_shape()
        if found.is_static and all(isinstance(size, int) for size in shape) and list(found.to_shape()) != list(shape):
            sentence = f"OpenVINO makes {name} a value of {list(found.to_shape())}"
            yield Reason("openvino_errs", name, f"a value of {list(shape)}", sentence)
    if _may_be_misordered(model):
        yield Reason("openvino_misorders", "Gather of all channels", "channels in their order", _MISORDERED)
    given: set[Any] = set()  # values that come from inputs, but for their sizes
    for op in model.get_ordered_ops():
        kind = op.get_type_name()
        read = [k for k, source in enumerate(op.input_values()) if source in given and kind != "ShapeOf"]
        if kind == "Parameter" or read:
            given.update(op.outputs())
        if kind not in EDGES and (why := _error_in(op, read)):
            yield Reason("openvino_errs", kind, "what the model says", why)


def _error_in(op: Any, read: list[int]) -> str:
    kind = op.get_type_name()
    if kind in ("DFT", "IDFT", "RDFT", "IRDFT"):
        return _AXIS
    if kind in ("LSTMSequence", "GRUSequence"):
        batch = op.get_input_partial_shape(0)[0]
        return _BATCHES if batch.is_dynamic or batch.get_length() != 1 else ""
    if kind == "TopK":
        return _EQUALS
    if _INDICES.get(kind) in read:
        return _UNCHECKED
    types = [_name(op.input_value(k)) for k in read]
    types += [_name(op.output(0))] if types else []  # a pooling layer's further one are places that nobody reads
    for name in types:
        if name in _WIDE:
            return f"OpenVINO holds {name} as {_WIDE[name]}"
        if name not in _REALS | {"boolean"} and kind not in _MOVES:
            return f"OpenVINO computes {name} as f32, and bounds what would wrap"
    return ""


def _name(value: Any) -> str:
    return str(value.get_element_type().get_type_name())


def _may_be_misordered(model: Any) -> bool:
    # A 1x1 convolution behind Gather(x, [3, 0, 1, 2], axis=1) reads the inverse order.
    return any(
        op.get_type_name() == "Gather"
        and op.input_value(1).get_node().get_type_name() == "Constant"
        and len(op.get_output_partial_shape(0)) > 2
        and op.get_input_partial_shape(0) == op.get_output_partial_shape(0)
        for op in model.get_ops()
    )
