"""ONNX tensors of strings: what is computed with texts, and what moves them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx

from hetnn.element_types import is_float
from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.equal_sizes import unified
from hetnn.importers.lowering.sizes import LONGEST, product
from hetnn.importers.onnx.model import dtype_name
from hetnn.importers.onnx.rules.call import ONNX, Call, rule
from hetnn.importers.onnx.values import Text
from hetnn.texts import SPAN

# Operators that move elements: of texts their spans, whatever those mean.
MOVES = frozenset(
    [
        "Compress",
        "Concat",
        "DepthToSpace",
        "Expand",
        "Flatten",
        "Gather",
        "GatherElements",
        "GatherND",
        "Reshape",
        "ScatterElements",
        "ScatterND",
        "Slice",
        "SpaceToDepth",
        "Split",
        "Squeeze",
        "Tile",
        "Transpose",
        "Trilu",
        "Unsqueeze",
        "Where",
        "com.microsoft.ExpandDims",
        "com.microsoft.GatherND",
    ]
)
# Operators that do not look at elements at all.
MEASURES = frozenset(("Shape", "Size"))
CASTS = frozenset(("Cast", "CastLike"))


def joined(call: Call, texts: Sequence[Text]) -> tuple[Any, list[Any]]:
    """The bytes of several tensors of texts as one, and the spans of each in it."""
    parts: list[Any] = []
    spans = []
    for text in texts:
        if not any(text.bytes is part for part in parts):
            parts.append(text.bytes)
        before = parts[: next(k for k, part in enumerate(parts) if part is text.bytes)]
        moved = text.spans
        for part in before:
            begin = call.reshape(call.whole(part.shape[0]), [])
            moved = call.create("add", [moved, call.create("mul", [begin, call.constant(SPAN, "i64")])])
        spans.append(moved)
    return call.joined(parts, 0), spans


def moved(call: Call, move: Callable[[list[Any]], list[Any]]) -> list[Any]:
    """What an operator that moves elements makes of texts."""
    places = [k for k, value in enumerate(call.inputs) if isinstance(value, Text)]
    data, spans = joined(call, [call.inputs[k] for k in places])
    inputs = list(call.inputs)
    for k, span in zip(places, spans, strict=True):
        inputs[k] = span
    outputs = move(inputs)
    return outputs if call.node.op_type in MEASURES else [Text(data, value) for value in outputs]


def text_of(call: Call, index: int) -> Text:
    """An input that must be texts."""
    found = call.inputs[index] if call.given(index) else None
    if not isinstance(found, Text):
        raise InvalidModel(f"{call.node.op_type} needs strings as input {index}")
    return found


def _made(call: Call, op: str, inputs: Sequence[Any], **attrs: Any) -> Text:
    data, spans = call.create_all(op, list(inputs), {**attrs, "total": call.found_size()})
    return Text(data, spans)


def cast_of_texts(call: Call) -> Any | None:
    """What a cast from or to strings gives; None where it is one of numbers."""
    x, like = call.inputs[0], call.inputs[1] if call.node.op_type == "CastLike" else None
    to_text = isinstance(like, Text) or (like is None and call.attr("to") == onnx.TensorProto.STRING)
    if isinstance(x, Text) and to_text:
        return x
    if to_text:
        return _made(call, "numbers_to_text", [call.cast(call[0], _spelled(call[0].dtype))])
    if isinstance(x, Text):
        dtype = dtype_name(call.attr("to")) if like is None else call[1].dtype
        numbers = call.create("text_to_numbers", [x.bytes, x.spans], to=_spelled(dtype))
        return call.cast(numbers, dtype)
    return None


def _spelled(dtype: str) -> str:
    """The type as which numbers of this one are read and written."""
    if is_float(dtype):
        return "f64" if dtype == "f64" else "f32"
    return "u64" if dtype == "u64" else "i64"


def equal(call: Call) -> Any:
    """Whether texts are equal, element by element, of shapes that broadcast."""
    a, b = text_of(call, 0), text_of(call, 1)
    spans = unified(call, [a.spans, b.spans], broadcast=True)
    return call.create("text_equal", [a.bytes, spans[0], b.bytes, spans[1]])


def coded(call: Call, text: Text) -> tuple[Any, Text]:
    """Integers that are in order and equal as the texts are: places in a row of texts, which is the second."""
    count = product(text.shape)
    flat = Text(text.bytes, call.reshape(text.spans, [count]))
    order = call.create("text_order", [flat.bytes, flat.spans])
    row = Text(text.bytes, call.create("gather", [flat.spans, order], axis=0))
    return call.create("text_find", [text.bytes, text.spans, row.bytes, row.spans]), row


@rule("StringConcat")
def _concat(call: Call) -> Any:
    a, b = text_of(call, 0), text_of(call, 1)
    spans = unified(call, [a.spans, b.spans], broadcast=True)
    return [_made(call, "text_concat", [a.bytes, spans[0], b.bytes, spans[1]])]


@rule("RegexFullMatch")
def _match(call: Call) -> Any:
    x = text_of(call, 0)
    return call.create("text_match", [x.bytes, x.spans], pattern=call.attr("pattern", ""))


@rule("StringSplit")
def _split(call: Call) -> Any:
    x = text_of(call, 0)
    most = call.attr("maxsplit")
    told = {
        "delimiter": call.attr("delimiter") or "",
        "most": -1 if most is None else int(most),
        "parts": call.found_size(),
    }
    spans, counts = call.create_all("text_split", [x.bytes, x.spans], told)
    return [Text(x.bytes, spans), counts]


@rule("StringNormalizer")
def _normalize(call: Call) -> Any:
    """Stop words are taken out, of what is left the case is changed; where nothing is left stands an empty text."""
    x = text_of(call, 0)
    if len(x.shape) not in (1, 2) or (len(x.shape) == 2 and x.shape[0] != 1):
        raise InvalidModel(f"StringNormalizer of strings {list(x.shape)}, which must be [C] or [1,C]")
    rows, x = len(x.shape) == 2, Text(x.bytes, call.reshape(x.spans, x.shape[-1:]))
    stop = call.attr("stopwords") or []
    if stop:
        table = call.texts(stop)
        if not call.attr("is_case_sensitive", 0):
            table = _made(call, "text_case", [table.bytes, table.spans], upper=False)
        like = x if call.attr("is_case_sensitive", 0) else _made(call, "text_case", [x.bytes, x.spans], upper=False)
        found = call.create("text_find", [like.bytes, like.spans, table.bytes, table.spans])
        kept = call.create("eq", [found, call.constant(len(stop), "i64")])
        none = call.create("logical_not", [call.create("any", [kept], axes=[0], keepdim=True)])
        kept = call.create("concat", [kept, none], axis=0)
        spans = call.create("concat", [x.spans, call.constant([0], "i64")], axis=0)
        x = Text(x.bytes, call.create("compress", [spans, kept], axis=0, count=call.found_size()))
    locale = str(call.attr("locale") or "C")
    if not locale.startswith(("C", "POSIX", "en")):
        raise Unsupported(f"letters' case in the locale '{locale}'; hetnn has that of English")
    change = call.attr("case_change_action")
    if change in ("LOWER", "UPPER"):
        x = _made(call, "text_case", [x.bytes, x.spans], upper=change == "UPPER")
    return [Text(x.bytes, call.reshape(x.spans, [1, *x.shape])) if rows else x]


_CODED = {"strings": "s", "int64s": "i64", "floats": "f32"}


def _table(call: Call, which: str) -> Any:
    """The keys or the values of a LabelEncoder."""
    for name, dtype in _CODED.items():
        values = call.attr(f"{which}_{name}") or (call.attr("classes_strings") if name == "strings" else None)
        if values:
            return call.texts(values) if name == "strings" else call.constant(values, dtype)
    tensor = call.attr(f"{which}_tensor")
    if tensor is None:
        raise InvalidModel(f"LabelEncoder without {which}")
    found = call.tensor(tensor)
    return found


def _default(call: Call, values: Any) -> Any:
    """What stands for keys that are not in the table, in one element."""
    if isinstance(values, Text):
        return call.texts([call.attr("default_string")])
    if call.attr("default_tensor") is not None and call.attr("values_tensor") is not None:
        return call.reshape(call.tensor(call.attr("default_tensor")), [1])
    number = call.attr("default_float" if values.dtype == "f32" else "default_int64")
    return call.constant([number], values.dtype)


@ONNX.rule("ai.onnx.ml.LabelEncoder")
def _label(call: Call) -> Any:
    if call.version < 2:
        classes = call.attr("classes_strings") or []
        return _either_way(call, classes, list(range(len(classes))))
    keys, values = _table(call, "keys"), _table(call, "values")
    x = call.inputs[0]
    count = keys.shape[0]
    if list(keys.shape) != list(values.shape) or not isinstance(count, int):
        raise InvalidModel(f"LabelEncoder with keys {list(keys.shape)} and values {list(values.shape)}")
    if isinstance(keys, Text) != isinstance(x, Text):
        raise InvalidModel("LabelEncoder with keys of another type than its input")
    if isinstance(x, Text):
        place = call.create("text_find", [x.bytes, x.spans, keys.bytes, keys.spans])
    else:
        place = _place(call, call.value(x), keys, count)
    default = _default(call, values)
    if isinstance(values, Text):
        data, (spans, other) = joined(call, [values, default])
        return [Text(data, _picked(call, spans, other, place))]
    return _picked(call, values, default, place)


@ONNX.rule("ai.onnx.ml.CategoryMapper")
def _category(call: Call) -> Any:
    names, numbers = call.attr("cats_strings") or [], call.attr("cats_int64s") or []
    if not names or len(names) != len(numbers):
        raise InvalidModel(f"CategoryMapper with {len(names)} cats_strings and {len(numbers)} cats_int64s")
    return _either_way(call, names, numbers)


def _either_way(call: Call, names: Sequence[str | bytes], numbers: Sequence[int]) -> Any:
    """Of texts their numbers, of numbers their texts; what is none gets what the node says for it."""
    texts, known, x = call.texts(names), call.constant(numbers, "i64"), call.inputs[0]
    other = call.texts([call.attr("default_string")]), call.constant([call.attr("default_int64")], "i64")
    if isinstance(x, Text):
        place = call.create("text_find", [x.bytes, x.spans, texts.bytes, texts.spans])
        return _picked(call, known, other[1], place)
    data, (spans, none) = joined(call, [texts, other[0]])
    return Text(data, _picked(call, spans, none, _place(call, call.value(x), known, len(names))))


def _place(call: Call, x: Any, keys: Any, count: int) -> Any:
    """Where numbers stand among the keys; NaN is one of them where the keys have it."""
    if x.dtype != keys.dtype:
        raise InvalidModel(f"LabelEncoder with keys of {keys.dtype} and an input of {x.dtype}")
    column = call.reshape(x, [*x.shape, 1])
    same = call.create("eq", [column, keys])
    known = call.known_of(keys)
    if known is not None and known.dtype.kind == "f" and np.isnan(known).any():
        both = call.create("logical_and", [call.create("ne", [value, value]) for value in (column, keys)])
        same = call.create("logical_or", [same, both])
    last = call.broadcast_to(call.constant([True], "bool"), [*x.shape, 1])
    return call.create(
        "argmax",
        [call.cast(call.create("concat", [same, last], axis=len(x.shape)), "i32")],
        axis=len(x.shape),
        keepdim=False,
    )


def _picked(call: Call, values: Any, default: Any, place: Any) -> Any:
    return call.create("gather", [call.create("concat", [values, default], axis=0), place], axis=0)


def constant_texts(tensor: onnx.TensorProto) -> tuple[list[bytes], list[int]]:
    """The texts of a tensor and its shape. InvalidModel where they do not fit."""
    shape = [int(size) for size in tensor.dims]
    if (
        min(shape, default=0) < 0
        or max(shape, default=0) > LONGEST
        or int(np.prod(shape, dtype=object)) != len(tensor.string_data)
    ):
        raise InvalidModel(
            f"the tensor '{tensor.name}' of strings has the shape {shape}, but {len(tensor.string_data)} strings."
        )
    return list(tensor.string_data), shape
