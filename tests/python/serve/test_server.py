"""A server as an operator meets it: bad input, overload, deadlines, tokens, versions, workers that die, its end."""

from __future__ import annotations

import gzip
import json
import os
import signal
import socket
import struct
import threading
import time
import uuid
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.utils

import hetnn
from serve.server import Server, serving

TWO = [
    {"name": "a", "datatype": "FP32", "shape": [2, 3], "data": [1, 2, 3, 4, 5, 6]},
    {"name": "b", "datatype": "FP32", "shape": [2, 3], "data": [[2, 2, 2], [2, 2, 2]]},
]
INFER = "/v2/models/two/infer"


def changed(row: int = 0, **values: Any) -> dict[str, Any]:
    """A request of `two` with keys of one input replaced; None takes one away."""
    rows = [dict(one) for one in TWO]
    rows[row] |= values
    rows[row] = {key: value for key, value in rows[row].items() if value is not None}
    return {"inputs": rows}


def test_json_in_json_out(server: Server) -> None:
    status, headers, body = server.ask("POST", INFER, {"inputs": TWO, "id": "x"})
    answer = json.loads(body)
    assert (status, headers["content-type"]) == (200, "application/json")
    assert (answer["model_name"], answer["model_version"], answer["id"]) == ("two", "1", "x")
    assert [row["data"] for row in answer["outputs"]] == [[3, 4, 5, 6, 7, 8], [2, 4, 6, 8, 10, 12]]
    assert [row["shape"] for row in answer["outputs"]] == [[2, 3], [2, 3]]


BAD = [
    (b"{", "the request: not JSON"),
    (b"\xff", "the request: not JSON"),
    (b"[" * 1_000_000, "is nested too deep"),
    (b'{"id": "a", "id": "b"}', "has the key 'id' twice"),
    (b"[]", "the request must be an object; got list"),
    ({}, "must have a list 'inputs'"),
    ({"inputs": [], "x": 1}, "unknown key 'x'"),
    ({"inputs": TWO[:1]}, "the input 'b' of 'two' is missing"),
    ({"inputs": [*TWO, TWO[0]]}, "the input 'a' is there twice"),
    ({"inputs": [*TWO, {**TWO[0], "name": "c"}]}, "has no input 'c'; it takes a, b"),
    (changed(shape=[2, 4]), "takes 8 values; got 6"),
    (changed(shape=[-2, -3]), "none negative"),
    (changed(shape=[2.0, 3]), "a list of integers"),
    (changed(shape=[1 << 62, 1 << 62]), "more elements than any request may"),
    (changed(shape="23"), "must be a list of sizes"),
    (changed(datatype="FP64"), "input 'a' must be FP32; got FP64"),
    (changed(datatype="FP33"), "unknown datatype 'FP33'"),
    (changed(data=[1, 2, 3, 4, 5, "6"]), "must be values of FP32"),
    (changed(data=[[1, 2], [3, 4, 5, 6]]), "no regular list of FP32"),
    (changed(data=6), "must be a list; got int"),
    (changed(data=None), "must have one of data, binary_data_size and shared_memory_region"),
    (changed(parameters={"binary_data_size": 24}), "must have one of data, binary_data_size and shared_memory_region"),
    (changed(data=None, parameters={"binary_data_size": 24}), "binary_data_size is 24; 0 bytes are left"),
    (changed(data=None, parameters={"binary_data_size": -1}), "must be an integer that is not negative"),
    (changed(data=None, parameters={"shared_memory_region": "r"}), "shared_memory_byte_size must be an integer"),
    ({"inputs": TWO, "parameters": {"sequence_id": 1}}, "has not begun here"),
    ({"inputs": TWO, "parameters": {"sequence_start": True}}, "need a sequence_id"),
    ({"inputs": TWO, "parameters": {"timeout": "soon"}}, "timeout must be an integer"),
    ({"inputs": TWO, "parameters": []}, "its parameters must be an object"),
    ({"inputs": TWO, "outputs": [{"name": "z"}]}, "has no output 'z'"),
]


@pytest.mark.parametrize(("body", "words"), BAD, ids=range(len(BAD)))
def test_bad_requests_are_400_and_say_why(server: Server, body: Any, words: str) -> None:
    status, text = server.error("POST", INFER, body)
    assert status == 400
    assert words in text


def test_bad_paths_and_encodings(server: Server) -> None:
    assert server.error("GET", "/v3")[0] == 404
    assert server.error("GET", "/v2/models/..%2Ftwo")[0] == 400
    assert server.error("GET", "/v2/models/" + "a" * 10_000)[0] == 400
    assert server.error("GET", "/v2/models/two/versions/x") == (400, "a version is a number; got 'x'.")
    assert server.error("GET", "/v2/models/two/versions/2")[0] == 404
    assert server.error("POST", INFER, b"x", {"Content-Encoding": "br"})[0] == 501
    assert server.error("POST", INFER, b"x", {"Content-Encoding": "gzip"})[0] == 400
    assert server.error("POST", INFER, gzip.compress(b"x" * 100)[:20], {"Content-Encoding": "gzip"})[0] == 400
    bomb = zlib.compress(b"\0" * (1 << 21))
    assert server.error("POST", INFER, bomb, {"Content-Encoding": "deflate"})[0] == 400
    assert server.error("POST", INFER, b"{}", {"Inference-Header-Content-Length": "9"})[0] == 400
    assert server.error("POST", INFER, b"{}", {"Inference-Header-Content-Length": "x"})[0] == 400
    # A percent-encoded name is the same name.
    assert server.ask("GET", "/v2/models/%74wo")[0] == 200


@pytest.mark.parametrize(
    ("path", "allow"),
    [
        ("/v2", "GET"),
        ("/v2/health/live", "GET"),
        ("/v2/hetnn/workers", "GET"),
        ("/v2/models/stats", "GET"),
        ("/v2/models/two", "GET"),
        ("/v2/models/two/versions/1", "GET"),
        ("/v2/models/two/versions/1/config", "GET"),
        (INFER, "POST"),
        ("/v2/models/two/versions/1/infer", "POST"),
        ("/v2/models/nobody/infer", "POST"),
        ("/v2/models/two/trace/setting", "GET, POST"),
        ("/v2/logging", "GET, POST"),
        ("/v2/repository/index", "POST"),
        ("/v2/repository/models/two/unload", "POST"),
        ("/v2/systemsharedmemory/region/a/b/register", "POST"),
        ("/v2/systemsharedmemory/status", "GET"),
    ],
)
def test_methods_that_a_path_does_not_have_are_405(server: Server, path: str, allow: str) -> None:
    for method in {"GET", "POST", "PUT", "DELETE"} - {*allow.split(", ")}:
        status, headers, body = server.ask(method, path, b"{}")
        assert (status, headers["allow"]) == (405, allow)
        assert f"is not answered here; ask by {allow}." in json.loads(body)["error"]


def test_a_header_without_end_and_a_client_that_leaves_cost_nothing(server: Server) -> None:
    half = f"POST {INFER} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{{"
    for data in (b"GET / HTTP/1.1\r\n" + b"a" * 200_000, half.encode()):
        with socket.create_connection(("127.0.0.1", server.ready["http"])) as connection:
            connection.sendall(data)
    assert server.ask("GET", "/v2/health/ready")[0] == 200
    assert server.ask("POST", INFER, {"inputs": TWO})[0] == 200


def test_raw_tensors_follow_the_json(server: Server) -> None:
    rows = [{key: value for key, value in row.items() if key != "data"} for row in TWO]
    for row in rows:
        row["parameters"] = {"binary_data_size": 24}
    head = json.dumps({"inputs": rows, "parameters": {"binary_data_output": True}}).encode()
    tensors = struct.pack("<12f", *range(12))
    headers = {"Inference-Header-Content-Length": str(len(head))}
    status, got, body = server.ask("POST", INFER, head + tensors, headers)
    size = int(got["inference-header-content-length"])
    assert status == 200
    assert struct.unpack("<6f", body[size : size + 24]) == (6, 8, 10, 12, 14, 16)
    assert [row["parameters"]["binary_data_size"] for row in json.loads(body[:size])["outputs"]] == [24, 24]
    assert "follow the last tensor" in server.error("POST", INFER, head + tensors + b"x", headers)[1]


def test_a_region_that_its_client_cuts_short_is_an_error(server: Server) -> None:
    memory = Path("/dev/shm") / f"hetnn-{uuid.uuid4().hex}"
    place = {"shared_memory_region": "cut", "shared_memory_byte_size": 24}
    rows = [
        {"name": name, "datatype": "FP32", "shape": [2, 3], "parameters": {**place, "shared_memory_offset": offset}}
        for name, offset in (("a", 0), ("b", 24))
    ]
    name = json.loads(server.ask("GET", "/v2/models/two")[2])["outputs"][0]["name"]
    wanted = [{"name": name, "parameters": {**place, "shared_memory_offset": 48}}]
    region = "/v2/systemsharedmemory/region/cut"
    try:
        memory.write_bytes(struct.pack("<18f", *range(18)))
        asked = {"key": memory.name, "byte_size": 72}
        assert server.ask("POST", f"{region}/register", asked)[0] == 200
        assert server.ask("POST", INFER, {"inputs": rows, "outputs": wanted})[0] == 200
        assert struct.unpack("<18f", memory.read_bytes())[12:] == (6, 8, 10, 12, 14, 16)
        os.truncate(memory, 50)
        assert server.error("POST", INFER, {"inputs": rows, "outputs": wanted}) == (
            400,
            "shared memory region 'cut' was cut short.",
        )
        assert memory.stat().st_size == 50
        os.truncate(memory, 40)
        assert server.error("POST", INFER, {"inputs": rows}) == (400, "shared memory region 'cut' was cut short.")
        assert server.ask("POST", f"{region}/unregister")[0] == 200
        assert "no shared memory region" in server.error("POST", INFER, {"inputs": rows})[1]
        half = server.error("POST", f"{region}/register", {"key": "\ud800", "byte_size": 1})
        assert half[0] == 400
        assert "half of a surrogate pair" in half[1]
    finally:
        memory.unlink()


def test_metrics_have_the_names_that_are_scraped(server: Server) -> None:
    server.ask("POST", INFER, {"inputs": TWO})
    status, headers, body = server.ask("GET", "/metrics", port="metrics")
    text = body.decode()
    assert status == 200
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'hetnn_requests_total{model="two",version="1",outcome="success"}' in text
    for name in ("request_seconds", "queue_seconds", "batch_size"):
        assert f'hetnn_{name}_bucket{{model="two",version="1",le="+Inf"}}' in text
    assert "hetnn_pending 0" in text
    assert 'hetnn_device_busy_seconds_total{device="cpu"}' in text
    assert server.ask("GET", "/other", port="metrics")[0] == 404


def ask_slow(server: Server, **parameters: Any) -> tuple[int, float, bytes]:
    data = np.zeros((2048, 512), np.float32).tobytes()
    rows = [{"name": "input", "datatype": "FP32", "shape": [2048, 512], "parameters": {"binary_data_size": len(data)}}]
    head = json.dumps({"inputs": rows, "parameters": {"binary_data_output": True, **parameters}}).encode()
    begun = time.perf_counter()
    headers = {"Inference-Header-Content-Length": str(len(head))}
    status, _, body = server.ask("POST", "/v2/models/slow/infer", head + data, headers)
    return status, time.perf_counter() - begun, body


def test_overload_is_refused_at_once(networks: dict[str, Path]) -> None:
    with serving("--model", f"slow={networks['slow']}", "--queue", 4) as server, ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: ask_slow(server), range(16)))
        served = [row for row in answers if row[0] == 200]
        refused = [row for row in answers if row[0] == 503]
        assert len(served) >= 4
        assert len(refused) == 16 - len(served) > 0
        assert "4 requests wait or run already" in json.loads(refused[0][2])["error"]
        assert server.ask("GET", "/v2/health/live")[0] == 200


def test_a_timeout_in_the_queue_is_503_and_priority_goes_first(networks: dict[str, Path]) -> None:
    with serving("--model", f"slow={networks['slow']}") as server, ThreadPoolExecutor(16) as pool:
        waiting = [pool.submit(ask_slow, server) for _ in range(6)]
        time.sleep(0.05)
        late = pool.submit(ask_slow, server, timeout=1000)
        first = pool.submit(ask_slow, server, priority=1)
        status, took, body = late.result()
        assert status == 503
        assert "timeout passed" in json.loads(body)["error"]
        ordinary = [future.result()[1] for future in waiting]
        assert first.result()[0] == 200
        assert took < max(ordinary)


def test_tokens(networks: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("secret-1\nsecret-2\n")
    with serving("--model", f"two={networks['two']}", "--token-file", tmp_path / "tokens") as server:
        assert server.ask("GET", "/v2/health/ready")[0] == 200
        for port, path in (("http", "/v2"), ("http", "/v2/hetnn/workers"), ("metrics", "/metrics")):
            assert server.ask("GET", path, port=port)[0] == 401
            assert server.ask("GET", path, None, {"Authorization": "Bearer wrong"}, port)[0] == 401
            assert server.ask("GET", path, None, {"Authorization": "Bearer secret-2"}, port)[0] == 200
        assert server.error("POST", INFER, {"inputs": TWO})[0] == 401
        import tritonclient.grpc as client
        from tritonclient.utils import InferenceServerException

        with client.InferenceServerClient(server.grpc) as remote:
            assert remote.is_server_ready()
            with pytest.raises(InferenceServerException, match="UNAUTHENTICATED"):
                remote.get_server_metadata()
            assert remote.get_server_metadata(headers={"authorization": "Bearer secret-1"}).name == "hetnn"


def scaled(factor: int) -> hetnn.Executable:
    """y = factor x, for x ≥ 0."""
    terms = "".join(f"  %y{k} = add(%x, %y{k - 1}) : f32[2]\n" for k in range(1, factor))
    return hetnn.compile(
        f"graph @s {{stage = imported}} (%x: f32[2]) -> (%y) {{\n  %y0 = relu(%x) : f32[2]\n{terms}"
        f"  %y = relu(%y{factor - 1}) : f32[2]\n}}\n"
    )


ONES = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 1]}]}


def test_a_version_rolls_over_and_back_without_loss(tmp_path: Path) -> None:
    store = hetnn.Store(tmp_path / "store")
    store.add("s", scaled(1))
    with serving("--store", tmp_path / "store", "--workers", 2) as server:
        stop = threading.Event()
        seen: list[tuple[int, str, float]] = []
        answered = threading.Condition()

        def ask() -> None:
            while not stop.is_set():
                status, _, body = server.ask("POST", "/v2/models/s/infer", ONES)
                answer = json.loads(body)
                with answered:
                    seen.append(
                        (status, answer.get("model_version"), answer.get("outputs", [{"data": [0]}])[0]["data"][0])
                    )
                    answered.notify()

        def answer_more() -> None:
            """Between changes more than ten requests are answered, however slow the machine is."""
            with answered:
                before = len(seen)
                assert answered.wait_for(lambda: len(seen) > before + 10, 60)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            answer_more()
            for version in (2, 3):
                store.add("s", scaled(version))
                assert server.ask("POST", "/v2/repository/models/s/load")[0] == 200
                assert json.loads(server.ask("POST", "/v2/models/s/infer", ONES)[2])["model_version"] == str(version)
                answer_more()
            for version in (3, 2):
                store.remove("s", version)
                assert server.ask("POST", "/v2/repository/models/s/load")[0] == 200
                assert json.loads(server.ask("POST", "/v2/models/s/infer", ONES)[2])["model_version"] == str(
                    version - 1
                )
                answer_more()
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert {status for status, _, _ in seen} == {200}
        assert {(version, value) for _, version, value in seen} <= {("1", 1), ("2", 2), ("3", 3)}
        assert len(seen) > 50


def test_a_sequence_stays_on_its_version(networks: dict[str, Path], tmp_path: Path) -> None:
    store = hetnn.Store(tmp_path / "store")
    store.add("sum", networks["sum"])
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 1]}]}

    def step(sequence: int, **options: bool) -> tuple[str, float]:
        body["parameters"] = {"sequence_id": sequence, **options}
        answer = json.loads(server.ask("POST", "/v2/models/sum/infer", body)[2])
        return answer["model_version"], answer["outputs"][0]["data"][0]

    with serving("--store", tmp_path / "store") as server:
        assert step(1, sequence_start=True) == ("1", 1)
        store.add("sum", networks["sum"])
        assert server.ask("POST", "/v2/repository/models/sum/load")[0] == 200
        assert step(2, sequence_start=True) == ("2", 1)
        assert step(1) == ("1", 2)
        time.sleep(0.1)
        assert step(1, sequence_end=True) == ("1", 3)


def test_workers_share_sequences_statistics_and_changes(networks: dict[str, Path]) -> None:
    models = [f"--model={name}={networks[name]}" for name in ("sum", "two")]
    with serving(*models, "--workers", 2) as server:
        assert len(server.ready["workers"]) == 2
        body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 1]}]}
        for sequence in (1, 2, "three", "four"):
            for k in range(4):  # each over a connection of its own
                body["parameters"] = {"sequence_id": sequence, "sequence_start": k == 0, "sequence_end": k == 3}
                status, _, answer = server.ask("POST", "/v2/models/sum/infer", body)
                assert (status, json.loads(answer)["outputs"][0]["data"]) == (200, [k + 1, k + 1])
        for _ in range(5):
            _, _, statistics = server.ask("GET", "/v2/models/sum/stats")
            assert json.loads(statistics)["model_stats"][0]["inference_count"] == 16
        server.ask("POST", "/v2/repository/models/two/unload")
        assert {server.ask("GET", "/v2/models/two/ready")[0] for _ in range(12)} == {404}
        server.ask("POST", "/v2/repository/models/two/load")
        assert {server.ask("GET", "/v2/models/two/ready")[0] for _ in range(12)} == {200}
        rows = json.loads(server.ask("GET", "/v2/hetnn/workers")[2])["workers"]
        assert [row["pid"] for row in rows] == server.ready["workers"]


def test_a_killed_worker_is_replaced(networks: dict[str, Path]) -> None:
    with serving("--model", f"two={networks['two']}") as server:
        (worker,) = server.ready["workers"]
        assert server.ask("POST", INFER, {"inputs": TWO})[0] == 200
        os.kill(worker, signal.SIGKILL)
        begun = time.monotonic()
        while True:
            try:
                status = server.ask("POST", INFER, {"inputs": TWO})[0]
                break
            except OSError:
                assert time.monotonic() - begun < 10
        assert status == 200
        assert json.loads(server.ask("GET", "/v2/hetnn/workers")[2])["workers"][0]["pid"] != worker


def test_sigterm_lets_requests_end(networks: dict[str, Path]) -> None:
    with serving("--model", f"slow={networks['slow']}") as server, ThreadPoolExecutor(4) as pool:
        pending = 0
        while not pending:  # until one is seen while it runs
            asked = pool.submit(ask_slow, server)
            while not asked.done() and not pending:
                pending = json.loads(server.ask("GET", "/v2/hetnn/workers")[2])["workers"][0]["pending"]
        assert server.end() == 0
        assert asked.result()[0] == 200


def test_the_deployed_version_runs(tmp_path: Path) -> None:
    """y = x + N in version N."""
    store = hetnn.Store(tmp_path / "store")
    for number in (1, 2, 3):
        terms = ["  %y0 = relu(%x) : f32[2]\n", *(f"  %y{k} = add(%x, %y{k - 1}) : f32[2]\n" for k in range(1, number))]
        body = f"{''.join(terms)}  %y = relu(%y{number - 1}) : f32[2]\n"
        store.add("net", hetnn.compile(f"graph @g {{stage = imported}} (%x: f32[2]) -> (%y) {{\n{body}}}\n"))
    store.deploy("net", version=1)
    inputs = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 1]}]}
    with serving("--store", store.path) as server:

        def answered(path: str = "/v2/models/net/infer") -> tuple[str, float]:
            document = json.loads(server.ask("POST", path, inputs)[2])
            return document["model_version"], document["outputs"][0]["data"][0]

        # The deployed version alone was opened.
        statistics = json.loads(server.ask("GET", "/v2/models/stats")[2])["model_stats"]
        assert [row["version"] for row in statistics] == ["1"]
        assert answered() == ("1", 1)
        assert answered("/v2/models/net/versions/3/infer") == ("3", 3)
        store.deploy("net", version=2)
        assert answered() == ("1", 1)
        server.ask("POST", "/v2/repository/models/net/load")
        assert answered() == ("2", 2)
        store.undeploy("net")
        server.ask("POST", "/v2/repository/models/net/load")
        assert answered() == ("3", 3)


def test_a_damaged_network_is_no_fault_of_the_client(tmp_path: Path) -> None:
    store = hetnn.Store(tmp_path / "store")
    for name in ("cut", "gone"):
        text = f"graph @{name} {{stage = imported}} (%x: f32[2]) -> (%y) {{\n  %y = relu(%x) : f32[2]\n}}\n"
        store.add(name, hetnn.compile(text))
    cut, gone = (Path(store.find(name)["path"]) for name in ("cut", "gone"))
    cut.write_bytes(cut.read_bytes()[:-100])
    gone.unlink()
    with serving("--store", store.path) as server:
        for name in ("cut", "gone"):
            for ask in (("POST", f"/v2/models/{name}/infer", ONES), ("GET", f"/v2/models/{name}")):
                status, text = server.error(*ask)
                assert (status, f"the kept network '{name}' cannot be opened: " in text) == (500, True)
            with (
                tritonclient.grpc.InferenceServerClient(server.grpc) as client,
                pytest.raises(tritonclient.utils.InferenceServerException, match="DATA_LOSS"),
            ):
                client.get_model_metadata(name)
        assert server.error("GET", "/v2/models/other")[0] == 404


def test_a_client_may_send_a_network_where_that_is_allowed(tmp_path: Path) -> None:
    import base64

    text = "graph @r {stage = imported} (%x: f32[2]) -> (%y) {\n  %y = relu(%x) : f32[2]\n}\n"
    with serving("--store", tmp_path / "store", "--allow-compile") as server:
        files = {"file:1/model.ir": base64.b64encode(text.encode()).decode()}
        status, _, body = server.ask("POST", "/v2/repository/models/sent/load", {"parameters": files})
        assert status == 200, body
        assert server.ask("POST", "/v2/models/sent/infer", ONES)[0] == 200
        shown = hetnn.Store(tmp_path / "store").association("sent")
        assert shown["subgraphs"][0]["deployed_on"] == ["cpu"]
        files = {"file:1/model.ir": base64.b64encode(b"graph @").decode()}
        assert server.error("POST", "/v2/repository/models/bad/load", {"parameters": files})[0] == 400


def test_the_workers_import_no_torch(server: Server) -> None:
    """What a process imported as a library is mapped into it."""
    for pid in server.ready["workers"]:
        mapped = Path(f"/proc/{pid}/maps").read_text()
        assert "hetnn/_runtime" in mapped
        assert "torch" not in mapped
        assert "hetnn/_core" not in mapped
