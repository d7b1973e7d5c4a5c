"""Whole layers with weights of integers: attention, embeddings, LSTMs."""

from __future__ import annotations

from typing import Any

from hetnn.importers.onnx.rules.call import Call
from hetnn.importers.onnx.rules.contrib.attention import (
    attention_of,
)
from hetnn.importers.onnx.rules.contrib.norms import embedded
from hetnn.importers.onnx.rules.contrib.quantized import (
    dynamic_product,
    real_matmul,
    reals,
)
from hetnn.importers.onnx.rules.declare import FLOAT, INT, LSTM, SOME_INT, contrib
from hetnn.importers.onnx.rules.recurrent import Layer, lstm


@contrib(
    "QAttention",
    "input weight bias input_scale weight_scale mask_index? input_zero_point? weight_zero_point? past?",
    unread="mask_filter_value",
    num_heads=SOME_INT,
    do_rotary=INT,
    mask_filter_value=FLOAT,
    past_present_share_buffer=INT,
    scale=FLOAT,
    unidirectional=0,
)
def _attention(call: Call) -> list[Any]:
    """As Attention; queries, keys and values are a product of integers."""
    factors = [call[0], call[1], call[3], call[4], call.optional(6), call.optional(7), call[2]]
    return attention_of(call, real_matmul(call, *factors), mask=5, past=8)


@contrib(
    "QEmbedLayerNormalization",
    "input_ids segment_ids? word_embedding_quant position_embedding_quant segment_embedding? gamma_quant beta_quant "
    "mask? word_embedding_scale position_embedding_scale segment_embedding_scale? gamma_scale beta_scale "
    "word_embedding_zero_point position_embedding_zero_point segment_embedding_zero_point? gamma_zero_point "
    "beta_zero_point",
    epsilon=1e-12,
)
def _embed(call: Call) -> list[Any]:
    """As EmbedLayerNormalization; the tables are integers."""
    tables = [reals(call, 2 + k, 8 + k, 13 + k) if call.given(2 + k) else None for k in range(5)]
    return embedded(call, tables, call.optional(7), None)[:2]


class _OfIntegers(Layer):
    """A direction whose weights are integers, [features, gates · hidden]; what they meet becomes integers as well."""

    inner = 1

    def __init__(self, call: Call, direction: int, gates: int, preset: list[str]) -> None:
        super().__init__(call, direction, gates, preset)
        self.weight, self.recurrence = (
            (weight, *(call.entry(call[index + k], direction) for k in range(2)))
            for weight, index in ((self.weight, 8), (self.recurrence, 10))
        )

    def product(self, x: Any, weight: Any, bias: Any) -> Any:
        """`weight`: integers, their step and what stands for 0."""
        integers, step, zero = weight
        return dynamic_product(self.call, x, integers, step, zero, bias)


@contrib(
    "DynamicQuantizeLSTM",
    "X W R B? sequence_lens? initial_h? initial_c? P? W_scale W_zero_point R_scale R_zero_point",
    **LSTM,
)
def _lstm(call: Call) -> list[Any]:
    return lstm(call, _OfIntegers)
