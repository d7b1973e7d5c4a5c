"""What the ONNX standard says of a node and of a value: schema, attributes, definition by others, type."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import cache
from typing import Any

import onnx
from onnx import AttributeProto, defs

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.complexes import Complex
from hetnn.importers.onnx.model import NUMBERS, PARTS
from hetnn.importers.onnx.rules import load_rare
from hetnn.importers.onnx.rules.declare import ADDED, UNREAD
from hetnn.importers.onnx.values import Fork, Items, Maybe, Nothing, Refused, Rows, Tensors, Text
from hetnn.report.text import count

# Attributes that decide nothing in a run, or nothing in some forms of their node: by name, or by operator and name.
_UNREAD = frozenset(
    {
        "consumed_inputs",  # a hint for the memory of operator set 1
        "output_sequence",  # so is it; the outputs that are named say it
        "pads",  # where auto_pad stands
        "storage_order",  # of a second output
        "num_outputs",  # as many as are named
        "allowzero",  # of shapes that have a 0
        "BatchNormalization.momentum",  # of training, as the next ones
        "Dropout.is_test",  # models are for inference
        "Dropout.ratio",
        "Dropout.seed",
        "TopK.sorted",  # sorted is an order too
        "Gemm.broadcast",  # as every operand
        "Optional.type",  # as its element
        "StringNormalizer.is_case_sensitive",  # of words to leave out
        "TfIdfVectorizer.weights",  # of a mode
        "QuantizeLinear.axis",  # of several scales, as the next ones
        "QuantizeLinear.block_size",
        "DequantizeLinear.axis",
        "DequantizeLinear.block_size",
        "QuantizeLinear.saturate",  # of floats of 8 bits
        "QuantizeLinear.output_dtype",  # as the zero point
        *(f"ai.onnx.ml.LabelEncoder.default_{kind}" for kind in ("float", "int64", "string", "tensor")),  # so has it
        "ai.onnx.ml.LinearClassifier.multi_class",  # how it was trained
        # Of a classifier by vectors.
        *(f"ai.onnx.ml.SVMClassifier.{name}" for name in ("kernel_params", "kernel_type", "prob_a", "prob_b")),
        "nodes_hitrates",  # how often training came by
        "nodes_hitrates_as_tensor",
        "past_present_share_buffer",  # of memory; rules that cannot take it ask
        "rotary_embedding_dim",  # as wide as its tables
    }
)


@cache
def schema_of(op_type: str, domain: str, opset: int) -> Any:
    """The standard's schema, or that of an operator that ONNX Runtime adds to it; None for any other.

    Where a file names an older operator set than has the operator, as ONNX Runtime takes it too: its first version.
    """
    try:
        return defs.get_schema(op_type, opset, domain)
    except defs.SchemaError:
        load_rare()
        return ADDED.get((domain, op_type)) or _firsts().get((domain, op_type))


@cache
def _firsts() -> dict[tuple[str, str], Any]:
    """Of every operator of the standard the version that introduced it, by domain and name."""
    versions = sorted(defs.get_all_schemas_with_history(), key=lambda schema: -schema.since_version)
    return {(schema.domain, schema.name): schema for schema in versions}


def check_node(node: onnx.NodeProto, opsets: Mapping[str, int]) -> None:
    """InvalidModel for inputs or attributes that the operator does not have, or lacks."""
    added = ADDED.get((node.domain, node.op_type))
    if added is not None and schema_of(node.op_type, node.domain, opsets.get(node.domain, 1)) is added:
        _check_added(node, added)
        return
    if has_graph(node):
        return  # reads names of the graph around it
    if node.op_type == "GroupNormalization" and opsets.get("", 1) < 21:
        return  # onnx calls its first definition, a factor a group, deprecated; onnxruntime runs it
    if node.domain == "ai.onnx":  # another name of the standard's, which the checker does not know
        node = onnx.NodeProto.FromString(node.SerializeToString())
        node.domain = ""
    context = type(onnx.checker.DEFAULT_CONTEXT)()
    context.ir_version = onnx.IR_VERSION
    context.opset_imports = {**opsets}
    try:
        onnx.checker.check_node(_without_files(node), context)
    except onnx.checker.ValidationError as error:
        why, known = str(error).split("\n")[0], defs.onnx_opset_version()
        if not node.domain and opsets.get("", 1) > known:
            raise Unsupported(
                f"{why}: the package onnx {onnx.__version__} knows operator sets up to {known}. Install a newer one"
            ) from error
        raise InvalidModel(why) from error


def _without_files(node: onnx.NodeProto) -> onnx.NodeProto:
    """The node with other data of its own in tensors that lie in files, which the checker seeks in the current folder;
    it asks for no sizes of them."""
    apart = [attr.name for attr in node.attribute if attr.t.data_location == onnx.TensorProto.EXTERNAL]
    if not apart:
        return node
    made = onnx.NodeProto()
    made.CopyFrom(node)
    for attr in made.attribute:
        if attr.name in apart:
            attr.t.ClearField("data_location")
            del attr.t.external_data[:]
            attr.t.raw_data = b"\0"
    return made


def has_graph(node: onnx.NodeProto) -> bool:
    """Whether an attribute is a graph."""
    return any(attr.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for attr in node.attribute)


def _check_added(node: onnx.NodeProto, schema: Any) -> None:
    """The same for an operator that the standard lacks; Unsupported for attributes that are newer than this."""
    unknown = [attr.name for attr in node.attribute if attr.name not in schema.attributes]
    if unknown:
        raise Unsupported(f"the attribute {unknown[0]}, which hetnn does not know")
    must = [k for k, each in enumerate(schema.inputs) if each.option == defs.OpSchema.FormalParameterOption.Single]
    absent = [schema.inputs[k].name for k in must if k >= len(node.input) or not node.input[k]]
    if absent:
        raise InvalidModel(f"{node.op_type} needs the input {absent[0]}, which is absent. Export the model again")
    if len(node.input) > schema.max_input:
        raise InvalidModel(f"{node.op_type} has {count(schema.max_input, 'input')} at most; got {len(node.input)}")


@cache
def presets_of(schema: Any) -> dict[str, AttributeProto]:
    """What attributes are that a node does not give."""
    return {key: attr.default_value for key, attr in schema.attributes.items() if attr.default_value.name}


@cache
def _kinds_of(schema: Any) -> dict[str, tuple[int, bool]]:
    """Every attribute's kind, and whether it must be there."""
    return {key: (int(attr.type.value), attr.required) for key, attr in schema.attributes.items()}


def check_attributes(node: onnx.NodeProto, schema: Any, attrs: Mapping[str, AttributeProto]) -> None:
    """InvalidModel for a node that lacks an attribute, or has one of another kind in its place."""
    for key, (kind, required) in _kinds_of(schema).items():
        if key in attrs and attrs[key].type == kind:
            continue
        if key in attrs or required:
            found = AttributeProto.AttributeType.Name(attrs[key].type).lower() if key in attrs else "none"
            wanted = AttributeProto.AttributeType.Name(kind).lower()
            raise InvalidModel(
                f"{node.op_type} needs the attribute {key}, a {wanted}; got {found}. Export the model again"
            )


def check_read(name: str, attrs: Mapping[str, AttributeProto], schema: Any, asked: Container[str]) -> None:
    """Unsupported for an attribute that says something else than the schema presets, and that no rule looked at."""
    presets = presets_of(schema)
    for key, attr in attrs.items():
        if key in asked or {key, f"{name}.{key}"} & _UNREAD or f"{name}.{key}" in UNREAD:
            continue
        is_preset = value_of(attr) == value_of(presets[key]) if key in presets else not value_of(attr)
        if not is_preset:
            raise Unsupported(f"the attribute {key}, of which hetnn knows no meaning; got {value_of(attr)!r:.40}")


def refusal(node: onnx.NodeProto, schema: Any, opsets: Mapping[str, int], inputs: Sequence[Any]) -> str:
    """Why the standard has no such node: what its own inference says of these inputs. Empty where it takes it."""
    if ADDED.get((node.domain, node.op_type)) is schema:
        found = [str(getattr(value, "shape", "none")) for value in inputs]
        return f"its inputs do not fit one another: they have the shapes {', '.join(found)}"
    types = {name: type_of(value) for name, value in zip(node.input, inputs, strict=True) if value is not None}
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    try:
        onnx.shape_inference.infer_node_outputs(schema, node, types, opset_imports=imports, ir_version=onnx.IR_VERSION)
    except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, ValueError, TypeError) as error:
        return " ".join(str(error).split()).removeprefix("[ShapeInferenceError] ")
    return ""


def value_of(attr: AttributeProto) -> Any:
    """An attribute's value; tensors and graphs as protos."""
    if attr.type == AttributeProto.STRING:
        return attr.s.decode("utf-8", "replace")
    if attr.type == AttributeProto.STRINGS:
        return [text.decode("utf-8", "replace") for text in attr.strings]
    value = onnx.helper.get_attribute_value(attr)
    return list(value) if attr.type in (AttributeProto.INTS, AttributeProto.FLOATS) else value


def with_attributes(node: onnx.NodeProto, attrs: Mapping[str, AttributeProto]) -> onnx.NodeProto:
    """The node with what its attributes refer to in their place."""
    made = onnx.NodeProto()
    made.CopyFrom(node)
    del made.attribute[:]
    for name, attr in attrs.items():
        own = made.attribute.add()
        own.CopyFrom(attr)
        own.name = name
    return made


def has_body(schema: Any) -> bool:
    """Whether the standard defines an operator by others."""
    return bool(schema.has_function or schema.has_context_dependent_function)


def body_of(
    schema: Any, node: onnx.NodeProto, opset: int, types: Sequence[onnx.TypeProto]
) -> onnx.FunctionProto | None:
    """The operator's definition by others: that of this operator set, else of the first one that has any."""
    versions = sorted({*schema.function_opset_versions, *schema.context_dependent_function_opset_versions})
    if not versions:
        return None
    version = max((v for v in versions if v <= opset), default=versions[0])
    body = onnx.FunctionProto()
    if version in schema.function_opset_versions:
        body.ParseFromString(schema.get_function_with_opset_version(version))
        return body
    try:
        data = schema.get_context_dependent_function_with_opset_version(
            version, node.SerializeToString(), [entry.SerializeToString() for entry in types]
        )
    except ValueError as error:  # a node that the standard does not have
        raise InvalidModel(f"{node.op_type}: {error}. Export the model again") from error
    except RuntimeError as error:  # a name that the text of a definition cannot hold
        raise Unsupported(f"the standard's definition cannot be made: {str(error).splitlines()[-1]}") from error
    if not data:
        return None
    body.ParseFromString(data)
    return body


def type_of(value: Any) -> onnx.TypeProto:
    """The type of a value as ONNX says it; none where it is absent."""
    if value is None or isinstance(value, (Nothing, Refused)):
        return onnx.TypeProto()
    if isinstance(value, Fork):
        return type_of(value.sides[0])
    if isinstance(value, Rows):
        return onnx.helper.make_tensor_type_proto(NUMBERS[value.rows.dtype], [str(size) for size in value.sizes])
    if isinstance(value, Items):
        empty = onnx.helper.make_tensor_type_proto(NUMBERS[value.dtype], None)
        return onnx.helper.make_sequence_type_proto(type_of(value.values[0]) if value.values else empty)
    if isinstance(value, Tensors):
        item = onnx.helper.make_tensor_type_proto(NUMBERS[value.values.dtype], value.sizes)
        return onnx.helper.make_sequence_type_proto(item)
    if isinstance(value, Text):
        sizes = [size if isinstance(size, int) else str(size) for size in value.shape]
        return onnx.helper.make_tensor_type_proto(onnx.TensorProto.STRING, sizes)
    if isinstance(value, Complex):
        sizes = [size if isinstance(size, int) else str(size) for size in value.shape]
        number = next(number for number, part in PARTS.items() if part == value.real.dtype)
        return onnx.helper.make_tensor_type_proto(number, sizes)
    if isinstance(value, Maybe):
        return onnx.helper.make_optional_type_proto(type_of(value.value))
    shape = [size if isinstance(size, int) else str(size) for size in value.shape]
    return onnx.helper.make_tensor_type_proto(NUMBERS[value.dtype], shape)
