"""TFLite's products of matrices."""

from __future__ import annotations

from typing import Any

from hetnn.errors import InvalidModel, Unsupported
from hetnn.importers.lowering.sizes import Size, divide, product
from hetnn.importers.tflite.rules.call import Call, are_typed, rule
from hetnn.importers.tflite.rules.weights import takes_integers, weight_and_bias


@rule("FULLY_CONNECTED", integers=takes_integers)
def _fully_connected(call: Call) -> Any:
    """Rows of as many features as the weights [out, in] have; `KeepNumDims` keeps the axes before them."""
    if call.option("WeightsFormat"):
        raise Unsupported("weights in an order of their own")
    call.ranked(1, 2)
    x, features = call[0], call.shape(1)[1]
    if features == 0:
        raise InvalidModel(f"weights {call.shape(1)}")
    if not (call.option("KeepNumDims") and x.shape and x.shape[-1] == features):
        x = call.reshape(x, [divide(product(x.shape), features), features])
    weight, bias = weight_and_bias(call, 0, 1, 2, (0, 1))
    if call.known(1) is not None:
        q = {**call.q(), "q_rounding": "single"} if call.typed else {}  # LiteRT rounds a row's product once
        y = call.create("linear", [x, weight, bias], **q)
    else:
        y = call.create("matmul", [x, call.permuted(weight, (1, 0))])
        y = y if bias is None else call.create("add", [y, bias])
    y = call.activated(y)
    lead: list[Size] = list(call.shape(0)[:-1])
    keeps = call.option("KeepNumDims") and product(lead) * features == product(call.shape(0))
    return call.reshape(y, [*lead, call.shape(1)[0]]) if keeps else y


@rule("BATCH_MATMUL", integers=are_typed(0, 1))
def _batch_matmul(call: Call) -> Any:
    a, b = (_turned(call, k) if call.option(name) else call[k] for k, name in ((0, "AdjX"), (1, "AdjY")))
    return call.create("matmul", [a, b], **call.q())


def _turned(call: Call, index: int) -> Any:
    rank = call.ranked(index, 2, 8)
    return call.permuted(call[index], [*range(rank - 2), rank - 1, rank - 2])


@rule("EMBEDDING_LOOKUP")
def _embedding_lookup(call: Call) -> Any:
    return call.create("gather", [call[1], call[0]], axis=0, from_end=False)
