"""Operators that ONNX has no form for, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hetnn.exporters.onnx.rules.call import Call, exports
from hetnn.exporters.registry import operators

_REASONS: dict[str, Sequence[str]] = {
    "ONNX has no factors of matrices": (
        "apply_reflections",
        "cholesky",
        "eigh",
        "geqrf",
        "ldl",
        "ldl_solve",
        "lu",
        "permutation_of_pivots",
        "qr",
        "svd",
        "triangular_solve",
    ),
    "sequences are two tensors here, the elements and the shapes, which no sequence of ONNX is": (
        "sequence_at",
        "sequence_concat",
        "sequence_erase",
        "sequence_insert",
        "sequence_split",
    ),
    "texts are two tensors here, the bytes and where each text lies, which no text of ONNX is": (
        "numbers_to_text",
        "text_case",
        "text_concat",
        "text_equal",
        "text_find",
        "text_match",
        "text_order",
        "text_split",
        "text_to_numbers",
        "text_tokens",
    ),
    "engines draw numbers by generators of their own": ("draw",),
    "its body is calls of hetnn, as a text": ("loop",),
    "its trees lie in tables of hetnn's own, joined as ai.onnx.ml's are not": ("tree_ensemble",),
    "ONNX has no running extremes": ("cummax", "cummin"),
    "ONNX has no running sum of exponentials": ("logcumsumexp",),
    "ONNX has no common divisor": ("gcd",),
    "ONNX has no path through a matrix": ("cheapest_path",),
    "ONNX has no product with matrices that rows choose": ("grouped_matmul",),
}


def _refused(why: str, ops: Sequence[str]) -> None:
    @exports(*ops)
    def rule(call: Call) -> Any:
        call.refuse(why)


for _why, _ops in _REASONS.items():
    _refused(_why, _ops)
_refused("ONNX has no such function", [name for name, op in operators().items() if "special" in op["traits"]])
