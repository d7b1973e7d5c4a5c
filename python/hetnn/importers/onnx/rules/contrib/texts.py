"""Texts as tokens, as ONNX Runtime has them."""

from __future__ import annotations

from functools import partial
from typing import Any

from hetnn.errors import InvalidModel
from hetnn.importers.lowering.sizes import minimum, product
from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.declare import SOME_INT, SOME_STRING, STRING, STRINGS, contrib
from hetnn.importers.onnx.rules.text import joined, text_of
from hetnn.importers.onnx.values import Text

_BEGIN, _END = "\x02", "\x03"


@contrib(
    "Tokenizer", "X", mark=SOME_INT, mincharnum=SOME_INT, pad_value=SOME_STRING, separators=STRINGS, tokenexp=STRING
)
def _tokens(call: Call) -> Any:
    """Along a new last axis; where a text has fewer than another, what fills it up."""
    x, separators, expression = text_of(call, 0), call.attr("separators") or [], call.attr("tokenexp")
    if bool(separators) == bool(expression) or len(x.shape) not in (1, 2):
        raise InvalidModel(
            f"Tokenizer of {list(x.shape)} texts, with {len(separators)} separators and tokenexp '{expression or ''}'; "
            "texts are [C] or [N,C], and one of both is given"
        )
    least = int(call.attr("mincharnum"))
    if least < 1:
        raise InvalidModel(f"Tokenizer of tokens of {least} characters at least; it must be 1 or more")
    find = partial(_found, call, least=least)
    if expression in (".", None) and [text for text in separators if text] == []:
        spans, counts = find(x, "(?s).", between=False)
    elif expression:
        spans, counts = find(x, expression, between=False)
    else:
        spans, counts = find(x, separators[0], between=True)
        for separator in separators[1:]:
            spans, counts = _joined_parts(call, *find(Text(x.bytes, spans), separator, between=True))
    width = spans.shape[-1]
    parts = [x, *(call.texts([text]) for text in (call.attr("pad_value"), _BEGIN, _END))]
    data, (_, pad, begin, end) = joined(call, parts)
    counts = call.reshape(counts, [*x.shape, 1])
    spans = call.create("where", [call.create("ge", [call.create("arange", [], end=width), counts]), pad, spans])
    if call.attr("mark"):
        edge = minimum(width, 1)  # none where there are no tokens at all
        sides = [call.broadcast_to(side, [*x.shape, edge]) for side in (begin, pad)]
        spans = call.create("concat", [sides[0], spans, sides[1]], axis=len(x.shape))
        number = call.create("sub", [call.create("arange", [], end=width + edge + edge), call.constant(1, "i64")])
        spans = call.create("where", [call.create("eq", [number, counts]), end, spans])
    return Text(data, spans)


def _found(call: Call, x: Text, pattern: str, between: bool, least: int) -> list[Any]:
    """Spans, and how many each text has."""
    told = {"pattern": pattern, "between": between, "least": least, "parts": call.found_size()}
    return call.create_all("text_tokens", [x.bytes, x.spans], told)


def _joined_parts(call: Call, spans: Any, counts: Any) -> tuple[Any, Any]:
    """Of parts of parts, [..., m, n], those that there are, one behind the other."""
    *rest, m, n = spans.shape
    row, axis = [*rest, product([m, n])], len(rest)
    counts = call.create("sum", [counts], axes=[axis])
    spans = call.reshape(spans, row)
    none = call.cast(call.create("eq", [spans, call.constant(0, "i64")]), "i32")
    _, order = call.create_all("sort", [none], {"axis": axis})
    spans = call.create("gather_elements", [spans, order], axis=axis)
    most = call.found_size()
    flat = call.create("concat", [call.constant([0], "i64"), call.reshape(counts, [product(rest)])], axis=0)
    call.create("read_size", [call.create("reduce_max", [flat], axes=[0])], sizes=[most])
    return call.create("slice", [spans], axis=axis, start=0, end=most, inside=True), counts
