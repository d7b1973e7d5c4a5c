"""Small decoders of random weights, and models of one node that searches with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]


class Graph:
    """The nodes and weights of a graph."""

    def __init__(self, weights: dict[str, Array]) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights = dict(weights)

    def op(self, name: str, inputs: Sequence[str], output: str, **attrs: Any) -> str:
        self.nodes.append(helper.make_node(name, inputs, [output], **attrs))
        return output

    def finish(self, name: str, inputs: list[Any], outputs: list[Any]) -> onnx.GraphProto:
        weights = [numpy_helper.from_array(np.asarray(array), key) for key, array in self.weights.items()]
        return helper.make_graph(self.nodes, name, inputs, outputs, weights)

    def heads(self, x: str, weight: str, output: str) -> str:
        """[rows, words, hidden] by a weight as [rows, heads, words, width]."""
        self.op("MatMul", [x, weight], f"{output}_all")
        self.op("Reshape", [f"{output}_all", "split"], f"{output}_split")
        return self.op("Transpose", [f"{output}_split"], output, perm=[0, 2, 1, 3])

    def attend(self, query: str, key: str, value: str, seen: str, output: str) -> str:
        self.op("Transpose", [key], f"{output}_turned", perm=[0, 1, 3, 2])
        scores = self.op("MatMul", [query, f"{output}_turned"], f"{output}_scores")
        if seen:
            scores = self.op("Where", [seen, scores, "unseen"], f"{output}_masked")
        self.op("Softmax", [scores], f"{output}_shares", axis=-1)
        self.op("MatMul", [f"{output}_shares", value], f"{output}_heads")
        self.op("Transpose", [f"{output}_heads"], f"{output}_words", perm=[0, 2, 1, 3])
        return self.op("Reshape", [f"{output}_words", "joined"], output)


def port(name: str, shape: Sequence[Any], kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _constants(heads: int, width: int) -> dict[str, Array]:
    return {
        "split": np.array([0, 0, heads, width]),
        "joined": np.array([0, 0, heads * width]),
        "unseen": np.float32(-1e4),
        "first": np.array(0),
        "second": np.array(1),
        "inner": np.array([1, 2]),
        "front": np.array([0]),
        "columns": np.array([1]),
        "none": np.array(0, np.int32),
        "last": np.array([-1]),
        "all": np.array([2**40]),
    }


def past_decoder(vocabulary: int = 17, layers: int = 2, seed: int = 0, scale: float = 0.4) -> onnx.GraphProto:
    """Of GPT-2's kind."""
    rng, heads, width = np.random.default_rng(seed), 2, 4
    hidden = heads * width

    def weight(*shape: int) -> Array:
        return (rng.standard_normal(shape) * scale).astype(np.float32)

    g = Graph(_constants(heads, width))
    g.weights |= {"words": weight(vocabulary, hidden), "places": weight(64, hidden), "head": weight(hidden, vocabulary)}
    g.op("Gather", ["words", "input_ids"], "of_words")
    g.op("Gather", ["places", "position_ids"], "of_places")
    x = g.op("Add", ["of_words", "of_places"], "x")
    for name, of in (("total", "attention_mask"), ("now", "input_ids")):
        g.op("Shape", [of], f"{name}_shape")
        g.op("Gather", [f"{name}_shape", "second"], name, axis=0)
    g.op("Sub", ["total", "now"], "before")
    g.op("Range", ["before", "total", "second"], "rows")
    g.op("Range", ["first", "total", "second"], "seen")
    g.op("Unsqueeze", ["rows", "columns"], "rows_2d")
    g.op("LessOrEqual", ["seen", "rows_2d"], "causal")
    g.op("Equal", ["attention_mask", "none"], "padding")
    g.op("Not", ["padding"], "word")
    g.op("Unsqueeze", ["word", "inner"], "word_4d")
    g.op("And", ["causal", "word_4d"], "mask")
    for k in range(layers):
        for part in "qkv":
            g.weights[f"{part}_weight{k}"] = weight(hidden, hidden)
            g.heads(x, f"{part}_weight{k}", f"{part}{k}")
        for part, place in (("k", "first"), ("v", "second")):
            g.op("Gather", [f"past_{k}", place], f"past_{part}{k}", axis=0)
            g.op("Concat", [f"past_{part}{k}", f"{part}{k}"], f"all_{part}{k}", axis=2)
            g.op("Unsqueeze", [f"all_{part}{k}", "front"], f"new_{part}{k}")
        g.op("Concat", [f"new_k{k}", f"new_v{k}"], f"present_{k}", axis=0)
        x = g.op("Add", [x, g.attend(f"q{k}", f"all_k{k}", f"all_v{k}", "mask", f"attended{k}")], f"x{k}")
    g.op("MatMul", [x, "head"], "logits")
    kinds = (("input_ids", "words"), ("position_ids", "words"), ("attention_mask", "total"))
    return g.finish(
        "decoder",
        [
            *(port(name, ["rows", size], TensorProto.INT32) for name, size in kinds),
            *(port(f"past_{k}", [2, "rows", heads, "past", width]) for k in range(layers)),
        ],
        [
            port("logits", ["rows", "words", vocabulary]),
            *(port(f"present_{k}", [2, "rows", heads, "total", width]) for k in range(layers)),
        ],
    )


def pair(
    vocabulary: int = 13,
    layers: int = 2,
    seed: int = 0,
    scale: float = 0.5,
    *,
    begins: bool = True,
    sees_encoded: bool = True,
    takes_all: bool = False,
    hears: bool = False,
) -> dict[str, Any]:
    """An encoder and a decoder as T5's, or with `hears` as Whisper's.

    `begins`: the encoder decodes the first word; `sees_encoded`: the decoder is given what is encoded; `takes_all`: it
    is given all words each time.
    """
    rng, heads, width = np.random.default_rng(seed), 2, 4
    hidden = heads * width
    shapes = {"words": (vocabulary, hidden), "heard": (vocabulary, hidden), "head": (hidden, vocabulary)}
    for k in range(layers):
        shapes |= {f"{part}_weight{k}": (hidden, hidden) for part in ("q", "k", "v", "cq", "ck", "cv")}
    weights = {name: (rng.standard_normal(shape) * scale).astype(np.float32) for name, shape in shapes.items()}
    mask = [] if hears else ["encoder_attention_mask"]

    def graph() -> Graph:
        g = Graph(_constants(heads, width) | weights)
        if mask:
            g.op("Equal", [*mask, "none"], "padding")
            g.op("Not", ["padding"], "word")
            g.op("Unsqueeze", ["word", "inner"], "mask")
        return g

    def decode(g: Graph, ids: str, past: bool, of_encoder: str) -> list[str]:
        x, kept = g.op("Gather", ["words", ids], "x"), []
        if takes_all and past:
            x = g.op("Slice", [x, "last", "all", "columns"], "x_last")
        for k in range(layers):
            for part in "qkv":
                g.heads(x, f"{part}_weight{k}", f"{part}{k}")
            for part, name in (("k", "key"), ("v", "value")):
                kept.append(f"present_{name}_self_{k}")
                if past:
                    g.op("Concat", [f"past_{name}_self_{k}", f"{part}{k}"], kept[-1], axis=2)
                else:
                    g.op("Identity", [f"{part}{k}"], kept[-1])
            x = g.op("Add", [x, g.attend(f"q{k}", *kept[-2:], "", f"own{k}")], f"x_own{k}")
            query = g.heads(x, f"cq_weight{k}", f"cq{k}")
            crossed = [of_encoder.format(name=name, k=k) for name in ("key", "value")]
            attended = g.attend(query, crossed[0], crossed[1], "mask" if mask else "", f"cross{k}")
            x = g.op("Add", [x, attended], f"x_cross{k}")
        g.op("MatMul", [x, "head"], "logits")
        return kept

    def states(kind: str, kept: str, size: str) -> list[onnx.ValueInfoProto]:
        names = [f"{kept}_{name}_{kind}_{k}" for k in range(layers) for name in ("key", "value")]
        return [port(name, ["rows", heads, size, width]) for name in names]

    encoded = port("encoder_hidden_states", ["rows", "heard", hidden])
    of_mask = [port(name, ["rows", "heard"], TensorProto.INT32) for name in mask]
    g = graph()
    if hears:
        g.op("Transpose", ["encoder_input_ids"], "encoder_hidden_states", perm=[0, 2, 1])
        given = [port("encoder_input_ids", ["rows", hidden, "heard"])]
    else:
        g.op("Gather", ["heard", "encoder_input_ids"], "encoder_hidden_states")
        given = [port("encoder_input_ids", ["rows", "heard"], TensorProto.INT32)]
    for k in range(layers):
        for part, name in (("ck", "key"), ("cv", "value")):
            g.heads("encoder_hidden_states", f"{part}_weight{k}", f"present_{name}_cross_{k}")
    given += of_mask
    made: list[onnx.ValueInfoProto] = []
    if begins:
        decode(g, "decoder_input_ids", False, "present_{name}_cross_{k}")
        given.append(port("decoder_input_ids", ["rows", "begun" if hears else 1], TensorProto.INT32))
        logits = port("logits", ["rows", "begun" if hears else 1, vocabulary])
        made = [logits, encoded, *states("self", "present", "begun")]
    encoder = g.finish("encoder", given, [*made, *states("cross", "present", "heard")])
    g = graph()
    decode(g, "input_ids", True, "past_{name}_cross_{k}")
    decoder = g.finish(
        "decoder",
        [
            port("input_ids", ["rows", "words" if takes_all else 1], TensorProto.INT32),
            *of_mask,
            *([encoded] if sees_encoded else []),
            *states("self", "past", "past"),
            *states("cross", "past", "heard"),
        ],
        [port("logits", ["rows", 1, vocabulary]), *states("self", "present", "total")],
    )
    return {"encoder": encoder, "decoder": decoder, "model_type": 2 if hears else 1}


def search(
    op: str, inputs: dict[str, Array | None], *, known: Sequence[str] = (), outputs: int = 1, **attrs: Any
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model of one node, of whose inputs those `known` are constants; and what it is fed."""
    names = [name if array is not None else "" for name, array in inputs.items()]
    while not names[-1]:
        names.pop()
    made = ["sequences", "sequences_scores", "scores"][:outputs]
    given = {name: array for name, array in inputs.items() if array is not None}
    feeds = {name: array for name, array in given.items() if name not in known}
    ports = [
        port(name, array.shape if array.ndim < 2 else [f"{name}_{k}" for k in range(array.ndim)],
             helper.np_dtype_to_tensor_dtype(array.dtype))
        for name, array in feeds.items()
    ]  # fmt: skip
    graph = helper.make_graph(
        [helper.make_node(op, names, made, domain="com.microsoft", name="search", **attrs)],
        "g",
        ports,
        [onnx.ValueInfoProto(name=name) for name in made],
        [numpy_helper.from_array(array, name) for name, array in given.items() if name in known],
    )
    for k, output in enumerate(graph.output):
        output.CopyFrom(helper.make_tensor_value_info(made[k], TensorProto.FLOAT if k else TensorProto.INT32, None))
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=8), feeds
