"""Every call of the unchanged tritonclient, in its four forms."""

from __future__ import annotations

import asyncio
import inspect
import queue
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
from tritonclient.utils import InferenceServerException, shared_memory

import hetnn
from serve.server import Server

MODULES = {
    "http": tritonclient.http,
    "grpc": tritonclient.grpc,
    "http_aio": tritonclient.http.aio,
    "grpc_aio": tritonclient.grpc.aio,
}
X = np.linspace(-1, 1, 48, dtype=np.float32).reshape(3, 16)


class Client:
    """One of the four clients, awaited where it must be; answers of gRPC as JSON."""

    def __init__(self, kind: str, server: Server) -> None:
        self.module: Any = MODULES[kind]
        self.remote = kind.startswith("grpc")
        self._loop = asyncio.new_event_loop()
        address = server.grpc if self.remote else server.http
        self.client = self._done(self._made(address))

    async def _made(self, address: str) -> Any:
        return self.module.InferenceServerClient(address)

    def _done(self, value: Any) -> Any:
        return self._loop.run_until_complete(value) if inspect.isawaitable(value) else value

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.client, name)

        def call(*args: Any, **options: Any) -> Any:
            if self.remote and "as_json" in inspect.signature(method).parameters:
                options["as_json"] = True
            return self._done(method(*args, **options))

        return call

    def close(self) -> None:
        self._done(self.client.close())
        self._loop.close()

    def input(self, name: str, array: np.ndarray, datatype: str = "FP32", **options: Any) -> Any:
        made = self.module.InferInput(name, list(array.shape), datatype)
        made.set_data_from_numpy(array, **options)
        return made

    def output(self, name: str, **options: Any) -> Any:
        return self.module.InferRequestedOutput(name, **options)


@pytest.fixture(params=MODULES)
def client(request: pytest.FixtureRequest, server: Server) -> Iterator[Client]:
    made = Client(request.param, server)
    yield made
    made.close()


@pytest.fixture(scope="module")
def want(networks: dict[str, Path]) -> np.ndarray:
    """What `mlp` makes of X."""
    return np.asarray(hetnn.load(networks["mlp"])(X))


def first_output(networks: dict[str, Path], name: str) -> str:
    return hetnn.load(networks[name]).outputs[0].name


def test_health_and_metadata(client: Client, networks: dict[str, Path]) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("mlp")
    assert client.is_model_ready("mlp", "1")
    assert not client.is_model_ready("nobody")
    server = client.get_server_metadata()
    assert server["name"] == "hetnn"
    assert set(server["extensions"]) == {
        "binary_tensor_data",
        "statistics",
        "model_repository",
        "model_configuration",
        "sequence",
        "system_shared_memory",
        "parameters",
        "trace",
        "logging",
    }
    model = client.get_model_metadata("mlp")
    output = first_output(networks, "mlp")
    assert (model["name"], model["platform"], model["versions"]) == ("mlp", "hetnn", ["1"])
    sizes = [(row["name"], row["datatype"], [int(size) for size in row["shape"]]) for row in model["inputs"]]
    assert [row[1:] for row in sizes] == [("FP32", [-1, 16])]
    assert [(row["name"], [int(size) for size in row["shape"]]) for row in model["outputs"]] == [(output, [-1, 4])]
    config = client.get_model_config("mlp")
    config = config.get("config", config)
    assert (config["name"], config["max_batch_size"]) == ("mlp", 16)
    assert [int(size) for size in config["input"][0]["dims"]] == [16]
    assert config["input"][0]["data_type"] == "TYPE_FP32"


def test_infer(client: Client, want: np.ndarray, networks: dict[str, Path]) -> None:
    output = first_output(networks, "mlp")
    name = hetnn.load(networks["mlp"]).inputs[0].name
    for options in ({}, {"outputs": [client.output(output)]}, {"model_version": "1", "request_id": "r1"}):
        answer = client.infer("mlp", [client.input(name, X)], **options)
        np.testing.assert_array_equal(answer.as_numpy(output), want)
        response = answer.get_response()
        found = response["id"] if isinstance(response, dict) and "id" in response else getattr(response, "id", "")
        assert found == options.get("request_id", "")
    if not client.remote:
        answer = client.infer(
            "mlp", [client.input(name, X, binary_data=False)], outputs=[client.output(output, binary_data=False)]
        )
        np.testing.assert_array_equal(answer.as_numpy(output), want)
        for packed in ("gzip", "deflate"):
            algorithms = {"request_compression_algorithm": packed, "response_compression_algorithm": packed}
            answer = client.infer("mlp", [client.input(name, X)], **algorithms)
            np.testing.assert_array_equal(answer.as_numpy(output), want)
    else:
        for packed in ("gzip", "deflate"):
            answer = client.infer("mlp", [client.input(name, X)], compression_algorithm=packed)
            np.testing.assert_array_equal(answer.as_numpy(output), want)


def test_priority_timeout_and_parameters(client: Client, networks: dict[str, Path]) -> None:
    name = hetnn.load(networks["mlp"]).inputs[0].name
    answer = client.infer("mlp", [client.input(name, X)], priority=1, timeout=10_000_000, parameters={"mine": "x"})
    assert answer.as_numpy(first_output(networks, "mlp")).shape == (3, 4)


def test_errors(client: Client, networks: dict[str, Path]) -> None:
    name = hetnn.load(networks["mlp"]).inputs[0].name

    def refused(*args: Any, **options: Any) -> tuple[str, str]:
        with pytest.raises(InferenceServerException) as caught:
            client.infer(*args, **options)
        return caught.value.status(), caught.value.message()

    cases = [
        (("nobody", [client.input(name, X)]), {}, "404", "NOT_FOUND", "no network 'nobody'"),
        (("mlp", [client.input(name, X)]), {"model_version": "9"}, "404", "NOT_FOUND", "'mlp' version 9"),
        (("mlp", [client.input("z", X)]), {}, "400", "INVALID_ARGUMENT", f"the input '{name}' of 'mlp' is missing"),
        (("mlp", [client.input(name, X[0])]), {}, "400", "INVALID_ARGUMENT", "of another rank"),
        (("mlp", [client.input(name, X)] * 2), {}, "400", "INVALID_ARGUMENT", "is there twice"),
        (
            ("mlp", [client.input(name, X)]),
            {"outputs": [client.output("z")]},
            "400",
            "INVALID_ARGUMENT",
            "no output 'z'",
        ),
        (("a" * 129, [client.input(name, X)]), {}, "400", "INVALID_ARGUMENT", "id must match"),
        (
            ("mlp", [client.input(name, X)]),
            {"outputs": [client.output(first_output(networks, "mlp"), class_count=1)]},
            "501",
            "UNIMPLEMENTED",
            "classification",
        ),
    ]
    for args, options, status, code, words in cases:
        found, message = refused(*args, **options)
        assert found == (f"StatusCode.{code}" if client.remote else status)
        assert words in message


def test_repository(client: Client, networks: dict[str, Path]) -> None:
    rows = client.get_model_repository_index()
    rows = rows.get("models", []) if isinstance(rows, dict) else rows
    assert {row["name"]: row["state"] for row in rows} == dict.fromkeys(("mlp", "slow", "sum", "two"), "READY")
    client.unload_model("two")
    assert not client.is_model_ready("two")
    with pytest.raises(InferenceServerException, match="is unloaded"):
        client.infer("two", [client.input("a", X)])
    client.load_model("two")
    assert client.is_model_ready("two")
    with pytest.raises(InferenceServerException, match="no network 'nobody'"):
        client.load_model("nobody")
    with pytest.raises(InferenceServerException, match="takes no networks from clients"):
        client.load_model("mlp", config="{}", files={"file:1/model.hetnn": b"x"})


def test_statistics(client: Client, networks: dict[str, Path]) -> None:
    name = hetnn.load(networks["mlp"]).inputs[0].name

    def counted() -> tuple[int, int]:
        rows = client.get_inference_statistics("mlp")["model_stats"]
        rows = [row for row in rows if row["name"] == "mlp"]
        if not rows:
            return 0, 0
        return int(rows[0].get("inference_count", 0)), int(rows[0]["inference_stats"]["success"].get("count", 0))

    inferences, requests = counted()
    for _ in range(3):
        client.infer("mlp", [client.input(name, X)])
    assert counted() == (inferences + 9, requests + 3)
    assert client.get_inference_statistics()["model_stats"]


def test_sequences_have_states_of_their_own(client: Client, networks: dict[str, Path]) -> None:
    name, output = (
        ports[0].name for ports in (hetnn.load(networks["sum"]).inputs, hetnn.load(networks["sum"]).outputs)
    )
    one = np.ones(2, np.float32)

    def step(sequence: int | str, value: float, **options: bool) -> float:
        given = client.input(name, value * one)
        answer = client.infer("sum", [given], sequence_id=sequence, **options)
        return float(answer.as_numpy(output)[0])

    other = f"s-{uuid.uuid4()}"
    assert step(7, 1, sequence_start=True) == 1
    assert step(other, 10, sequence_start=True) == 10
    assert step(7, 1) == 2
    assert step(other, 10) == 20
    assert step(7, 1, sequence_end=True) == 3
    with pytest.raises(InferenceServerException, match="has not begun here"):
        step(7, 1)
    assert step(other, 1, sequence_start=True, sequence_end=True) == 1
    for _ in range(2):  # without a sequence each begins anew
        answer = client.infer("sum", [client.input(name, one)])
        assert answer.as_numpy(output)[0] == 1


def test_system_shared_memory(client: Client, want: np.ndarray, networks: dict[str, Path]) -> None:
    name, output = hetnn.load(networks["mlp"]).inputs[0].name, first_output(networks, "mlp")
    key = f"/hetnn-{uuid.uuid4().hex}"
    region = shared_memory.create_shared_memory_region("in and out", key, X.nbytes + want.nbytes)
    try:
        shared_memory.set_shared_memory_region(region, [X])
        client.register_system_shared_memory("r/1 %", key, X.nbytes + want.nbytes)
        status = client.get_system_shared_memory_status()
        rows = list(status["regions"].values()) if isinstance(status, dict) else status
        assert [(row["name"], row["key"], int(row["byte_size"])) for row in rows] == [
            ("r/1 %", key, X.nbytes + want.nbytes)
        ]
        given = client.module.InferInput(name, list(X.shape), "FP32")
        given.set_shared_memory("r/1 %", X.nbytes)
        wanted = client.output(output)
        wanted.set_shared_memory("r/1 %", want.nbytes, offset=X.nbytes)
        client.infer("mlp", [given], outputs=[wanted])
        found = shared_memory.get_contents_as_numpy(region, np.float32, want.shape, offset=X.nbytes)
        np.testing.assert_array_equal(found, want)
        with pytest.raises(InferenceServerException, match="registered already"):
            client.register_system_shared_memory("r/1 %", key, 8)
        given.set_shared_memory("r/1 %", X.nbytes, offset=want.nbytes + 1)
        with pytest.raises(InferenceServerException, match="is not within"):
            client.infer("mlp", [given])
        client.unregister_system_shared_memory("r/1 %")
        with pytest.raises(InferenceServerException, match="no shared memory region"):
            client.infer("mlp", [given])
        with pytest.raises(InferenceServerException, match="is not within"):
            client.register_system_shared_memory("long", key, 1 << 30)
        with pytest.raises(InferenceServerException, match="cannot open"):
            client.register_system_shared_memory("none", "/hetnn-no-such-region", 8)
        client.register_system_shared_memory("again", key, 8)
        client.unregister_system_shared_memory()
    finally:
        shared_memory.destroy_shared_memory_region(region)


def test_cuda_shared_memory_is_unsupported(client: Client) -> None:
    with pytest.raises(InferenceServerException, match="CUDA shared memory is not served"):
        client.get_cuda_shared_memory_status()
    with pytest.raises(InferenceServerException, match="CUDA shared memory is not served"):
        client.unregister_cuda_shared_memory("r")


def test_trace_and_log_settings(client: Client) -> None:
    def plain(answer: Any) -> Any:
        return {
            key: row.get("value", row) if isinstance(row, dict) else row
            for key, row in answer.get("settings", answer).items()
        }

    assert plain(client.get_trace_settings())["trace_level"] == ["OFF"]
    changed = plain(client.update_trace_settings("mlp", {"trace_level": ["TIMESTAMPS"], "trace_rate": "5"}))
    assert changed["trace_level"] == ["TIMESTAMPS"]
    assert plain(client.get_trace_settings("mlp"))["trace_rate"] in ("5", ["5"])
    assert plain(client.get_trace_settings())["trace_rate"] in ("1000", ["1000"])
    client.update_trace_settings("mlp", {"trace_level": None, "trace_rate": None})
    assert plain(client.get_trace_settings("mlp"))["trace_level"] == ["OFF"]
    with pytest.raises(InferenceServerException, match="no trace setting 'x'"):
        client.update_trace_settings(None, {"x": "1"})
    assert "log_verbose_level" in plain(client.get_log_settings())
    client.update_log_settings({"log_verbose_level": 1})
    level = plain(client.get_log_settings())["log_verbose_level"]
    assert level == 1 or level["uint32_param"] == 1
    client.update_log_settings({"log_verbose_level": 0})
    with pytest.raises(InferenceServerException, match="cannot be changed by clients"):
        client.update_log_settings({"log_file": "x"})


def test_async_infer(server: Server, want: np.ndarray, networks: dict[str, Path]) -> None:
    name, output = hetnn.load(networks["mlp"]).inputs[0].name, first_output(networks, "mlp")
    with tritonclient.http.InferenceServerClient(server.http, concurrency=4) as client:
        given = tritonclient.http.InferInput(name, list(X.shape), "FP32")
        given.set_data_from_numpy(X)
        for waiting in [client.async_infer("mlp", [given]) for _ in range(20)]:
            np.testing.assert_array_equal(waiting.get_result().as_numpy(output), want)
    answers: queue.Queue[Any] = queue.Queue()
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        given = tritonclient.grpc.InferInput(name, list(X.shape), "FP32")
        given.set_data_from_numpy(X)
        for _ in range(20):
            client.async_infer("mlp", [given], lambda result, error: answers.put((result, error)))
        for _ in range(20):
            result, error = answers.get(timeout=30)
            assert error is None
            np.testing.assert_array_equal(result.as_numpy(output), want)


def test_stream_infer(server: Server, networks: dict[str, Path]) -> None:
    """A sequence over a stream, an error among its answers, and the order of the answers."""
    ports = hetnn.load(networks["sum"])
    name, output = ports.inputs[0].name, ports.outputs[0].name
    given = tritonclient.grpc.InferInput(name, [2], "FP32")
    given.set_data_from_numpy(np.ones(2, np.float32))
    answers: queue.Queue[Any] = queue.Queue()
    with tritonclient.grpc.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        for k in range(10):
            client.async_stream_infer("sum", [given], sequence_id=3, sequence_start=k == 0, sequence_end=k == 9)
        client.async_stream_infer("nobody", [given])
        values = []
        for _ in range(10):
            result, error = answers.get(timeout=30)
            assert error is None
            values.append(result.as_numpy(output)[0])
        assert values == list(range(1, 11))
        _, error = answers.get(timeout=30)
        assert "no network 'nobody'" in error.message()
        client.stop_stream()


def test_stream_infer_of_the_aio_client(server: Server, networks: dict[str, Path]) -> None:
    ports = hetnn.load(networks["sum"])
    name, output = ports.inputs[0].name, ports.outputs[0].name

    async def ask() -> list[float]:
        given = tritonclient.grpc.aio.InferInput(name, [2], "FP32")
        given.set_data_from_numpy(np.ones(2, np.float32))

        async def requests() -> Any:
            for k in range(5):
                yield {
                    "model_name": "sum",
                    "inputs": [given],
                    "sequence_id": 9,
                    "sequence_start": k == 0,
                    "sequence_end": k == 4,
                }

        out = []
        async with tritonclient.grpc.aio.InferenceServerClient(server.grpc) as client:
            async for result, error in client.stream_infer(requests()):
                assert error is None
                out.append(float(result.as_numpy(output)[0]))
        return out

    assert asyncio.run(ask()) == [1, 2, 3, 4, 5]


def test_messages_are_numbered_as_the_client_numbers_them() -> None:
    """Every field that is served has the number, the type and the multiplicity that the client's messages give it."""
    from tritonclient.grpc import model_config_pb2, service_pb2

    from hetnn.serve.proto import MESSAGES

    inner = {
        "TensorMetadata": service_pb2.ModelMetadataResponse.TensorMetadata,
        "InferTensor": service_pb2.ModelInferRequest.InferInputTensor,
        "InferRequestedOutputTensor": service_pb2.ModelInferRequest.InferRequestedOutputTensor,
        "Latest": model_config_pb2.ModelVersionPolicy.Latest,
        "ModelIndex": service_pb2.RepositoryIndexResponse.ModelIndex,
        "RegionStatus": service_pb2.SystemSharedMemoryStatusResponse.RegionStatus,
        "TraceValue": service_pb2.TraceSettingRequest.SettingValue,
        "LogValue": service_pb2.LogSettingsRequest.SettingValue,
    }
    compared = 0
    for name, ours in MESSAGES.items():
        theirs = inner.get(name) or getattr(service_pb2, name, None) or getattr(model_config_pb2, name)
        for field in ours.DESCRIPTOR.fields:
            other = theirs.DESCRIPTOR.fields_by_name[field.name]
            assert (field.number, field.type) == (other.number, other.type), (name, field.name)
            compared += 1
    assert compared > 120
