"""Texts as BYTES: one tensor in and out, through every form of the unchanged tritonclient."""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException, serialize_byte_tensor, shared_memory

import hetnn
from serve.server import Server, serving
from serve.test_clients import MODULES, Client

WORDS = np.array([["Guten", "Morgen"], ["", "Straße 日本 🙂"], ["a b\n", "\0"]], np.object_)
WANT = np.array([[f"{word}, {other}" for word, other in WORDS]], np.object_)


def greeting() -> onnx.ModelProto:
    """Of texts [n,2] both joined, [1,n], whether they are one word, and the gain that comes beside them."""
    strings = TensorProto.STRING
    nodes = [
        helper.make_node("Split", ["texts"], ["first", "second"], axis=1, num_outputs=2),
        helper.make_node("StringConcat", ["first", "comma"], ["begun"]),
        helper.make_node("StringConcat", ["begun", "second"], ["column"]),
        helper.make_node("Transpose", ["column"], ["joined"]),
        helper.make_node("RegexFullMatch", ["texts"], ["plain"], pattern="[A-Za-z]+"),
        helper.make_node("Mul", ["gain", "gain"], ["squared"]),
    ]
    graph = helper.make_graph(
        nodes,
        "greeting",
        [
            helper.make_tensor_value_info("texts", strings, ["n", 2]),
            helper.make_tensor_value_info("gain", TensorProto.FLOAT, [1]),
        ],
        [
            helper.make_tensor_value_info("joined", strings, [1, "n"]),
            helper.make_tensor_value_info("plain", TensorProto.BOOL, ["n", 2]),
            helper.make_tensor_value_info("squared", TensorProto.FLOAT, [1]),
        ],
        [helper.make_tensor("comma", strings, [1], [b", "])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("texts") / "greeting.hetnn"
    hetnn.compile(greeting().SerializeToString(), "cpu").save(out)
    return out


@pytest.fixture(scope="module")
def server(path: Path) -> Iterator[Server]:
    with serving("--model", f"greeting={path}") as running:
        yield running


@pytest.fixture(params=MODULES)
def client(request: pytest.FixtureRequest, server: Server) -> Iterator[Client]:
    made = Client(request.param, server)
    yield made
    made.close()


def coded(texts: np.ndarray) -> np.ndarray:
    """As `as_numpy` gives them."""
    return np.array([text.encode() for text in texts.reshape(-1)], np.object_).reshape(texts.shape)


def test_texts_are_one_tensor_of_the_metadata(client: Client) -> None:
    model = client.get_model_metadata("greeting")
    rows = {row["name"]: (row["datatype"], [int(k) for k in row["shape"]]) for row in model["inputs"]}
    assert rows == {"texts": ("BYTES", [-1, 2]), "gain": ("FP32", [1])}
    rows = {row["name"]: (row["datatype"], [int(k) for k in row["shape"]]) for row in model["outputs"]}
    assert rows == {"joined": ("BYTES", [1, -1]), "plain": ("BOOL", [-1, 2]), "squared": ("FP32", [1])}
    config = client.get_model_config("greeting")
    config = config.get("config", config)
    assert config["input"][0]["data_type"] == "TYPE_STRING"


def test_texts_go_in_and_come_out(client: Client) -> None:
    gain = client.input("gain", np.array([3], np.float32))
    for texts in (WORDS, coded(WORDS)):
        answer = client.infer("greeting", [client.input("texts", texts, "BYTES"), gain])
        np.testing.assert_array_equal(answer.as_numpy("joined"), coded(WANT))
        assert answer.as_numpy("plain").tolist() == [[True, True], [False, False], [False, False]]
        assert answer.as_numpy("squared") == 9
    for count in (0, 1):
        answer = client.infer("greeting", [client.input("texts", WORDS[:count], "BYTES"), gain])
        np.testing.assert_array_equal(answer.as_numpy("joined"), coded(WANT[:, :count]))
    if not client.remote:
        asked = [client.output("joined", binary_data=False)]
        given = [client.input("texts", WORDS, "BYTES", binary_data=False), gain]
        found = client.infer("greeting", given, outputs=asked).as_numpy("joined")
        np.testing.assert_array_equal(found, WANT)


def test_texts_lie_in_shared_memory(client: Client) -> None:
    content, room = serialize_byte_tensor(coded(WORDS)), 4096
    key = f"/hetnn-{uuid.uuid4().hex}"
    handle = shared_memory.create_shared_memory_region("texts", key, 2 * room)
    try:
        shared_memory.set_shared_memory_region(handle, [content])
        client.register_system_shared_memory("texts", key, 2 * room)
        texts = client.module.InferInput("texts", list(WORDS.shape), "BYTES")
        texts.set_shared_memory("texts", len(content.item()))
        joined = client.output("joined")
        joined.set_shared_memory("texts", room, room)
        gain = client.input("gain", np.array([3], np.float32))
        client.infer("greeting", [texts, gain], outputs=[joined])
        found = shared_memory.get_contents_as_numpy(handle, np.object_, list(WANT.shape), room)
        np.testing.assert_array_equal(found, coded(WANT))
        client.unregister_system_shared_memory("texts")
    finally:
        shared_memory.destroy_shared_memory_region(handle)


def test_other_types_are_refused(client: Client) -> None:
    gain = client.input("gain", np.array([3], np.float32))
    with pytest.raises(InferenceServerException, match="input 'texts' must be BYTES; got FP32"):
        client.infer("greeting", [client.input("texts", np.zeros((1, 2), np.float32)), gain])
    with pytest.raises(InferenceServerException, match="input 'gain' must be FP32; got BYTES"):
        client.infer("greeting", [client.input("texts", WORDS, "BYTES"), client.input("gain", WORDS[0], "BYTES")])
    with pytest.raises(InferenceServerException, match=r"has no input 'texts\.bytes'; it takes texts, gain"):
        client.infer(
            "greeting",
            [client.input("texts", WORDS, "BYTES"), gain, client.input("texts.bytes", np.zeros(1, np.uint8), "UINT8")],
        )


def raw(*texts: bytes) -> bytes:
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (raw(b"a") + struct.pack("<I", 2) + b"b", "the length of text 1 of BYTES is 2; 1 bytes are left"),
        (raw(b"a") + struct.pack("<I", 0xFFFFFFFF) + b"b", "is 4294967295; 1 bytes are left"),
        (raw(b"abcdefgh") + b"\1\0", "begins with its length in 4 bytes; before text 1 2 are left"),
        (raw(b"abcdefgh"), r"BYTES[1, 2] takes 2 values; got 1."),
        (raw(b"a", b"b", b"c"), r"BYTES[1, 2] takes 2 values; got more."),
        (b"", "takes 2 values; got no more than 0 in 0 bytes"),
    ],
)
def test_malformed_texts_are_refused_with_their_place(server: Server, content: bytes, says: str) -> None:
    row = {"name": "texts", "datatype": "BYTES", "shape": [1, 2], "parameters": {"binary_data_size": len(content)}}
    gain = {"name": "gain", "datatype": "FP32", "shape": [1], "data": [1]}
    head = json.dumps({"inputs": [row, gain]}).encode()
    path, headers = "/v2/models/greeting/infer", {"Inference-Header-Content-Length": str(len(head))}
    status, error = server.error("POST", path, head + content, headers)
    assert status == 400
    assert error.startswith("input 'texts': ")
    assert says in error


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (["a", 1], "must be values of BYTES; got int"),
        (["a"], "BYTES[1, 2] takes 2 values; got 1."),
        (["a", ["b"]], "no regular list of BYTES"),
        ("ab", "its data must be a list; got text"),
    ],
)
def test_written_texts_are_texts(server: Server, data: object, says: str) -> None:
    row = {"name": "texts", "datatype": "BYTES", "shape": [1, 2], "data": data}
    gain = {"name": "gain", "datatype": "FP32", "shape": [1], "data": [1]}
    status, error = server.error("POST", "/v2/models/greeting/infer", {"inputs": [row, gain]})
    assert (status, says in error) == (400, True), error


def test_what_is_no_utf8_has_no_form_in_json(server: Server) -> None:
    row = {"name": "texts", "datatype": "BYTES", "shape": [1, 2], "parameters": {"binary_data_size": 10}}
    gain = {"name": "gain", "datatype": "FP32", "shape": [1], "data": [1]}
    head = json.dumps({"inputs": [row, gain], "outputs": [{"name": "joined"}]}).encode()
    path, headers = "/v2/models/greeting/infer", {"Inference-Header-Content-Length": str(len(head))}
    status, error = server.error("POST", path, head + raw(b"\xff", b"a"), headers)
    assert (status, "output 'joined': its text 0 is no UTF-8" in error) == (501, True), error
