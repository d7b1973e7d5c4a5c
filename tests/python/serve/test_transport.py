"""What carries requests: TLS, messages above 4 MB, types that JSON lacks, strings."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

import hetnn
from serve.server import Server, serving

GRAPHS = {
    "large": (
        "graph @l {stage = imported, symbols = [n: 1..4194304 = 4]} (%x: f32[n]) -> (%y) {\n"
        "  %y = relu(%x) : f32[n]\n}\n"
    ),
    "f8": (
        "graph @f {stage = imported} (%x: f8e4m3fn[4]) -> (%y) {\n"
        "  %y = reshape(%x) {shape = [2,2]} : f8e4m3fn[2,2]\n}\n"
    ),
    "bf16": "graph @b {stage = imported} (%x: bf16[4]) -> (%y) {\n  %y = relu(%x) : bf16[4]\n}\n",
    "names": 'graph @n {stage = imported} (%"入力:0": f32[2], %"a \\"b\\"/c": f32[2]) -> (%"和") {\n'
    '  %"和" = sub(%"入力:0", %"a \\"b\\"/c") : f32[2]\n}\n',
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("transport")
    for name, text in GRAPHS.items():
        hetnn.compile(text).save(made / f"{name}.hetnn")
    return made


@pytest.fixture(scope="module")
def plain(folder: Path) -> Iterator[Server]:
    hetnn.Store(folder / "store").add("f8", folder / "f8.hetnn")
    models = [f"--model={name}={folder / name}.hetnn" for name in ("large", "bf16", "names")]
    with serving("--store", folder / "store", *models) as running:
        yield running


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_messages_above_4_mb(plain: Server, kind: str) -> None:
    module = tritonclient.http if kind == "http" else tritonclient.grpc
    x = np.random.default_rng(0).standard_normal(3 << 20).astype(np.float32)
    with module.InferenceServerClient(plain.http if kind == "http" else plain.grpc) as client:
        given = module.InferInput("x", [len(x)], "FP32")
        given.set_data_from_numpy(x)
        np.testing.assert_array_equal(client.infer("large", [given]).as_numpy("y"), np.maximum(x, 0))


def test_bf16_travels_as_raw_bytes(plain: Server) -> None:
    x = np.array([-1, 0.5, 3, -0.25], ml_dtypes.bfloat16)
    with tritonclient.grpc.InferenceServerClient(plain.grpc) as client:
        given = tritonclient.grpc.InferInput("x", [4], "BF16")
        given.set_data_from_numpy(x)
        answer = client.infer("bf16", [given])
        np.testing.assert_array_equal(answer.as_numpy("y").astype(np.float32), [0, 0.5, 3, 0])
    with tritonclient.http.InferenceServerClient(plain.http) as http:
        assert http.get_model_metadata("bf16")["inputs"] == [{"name": "x", "datatype": "BF16", "shape": [4]}]
        other = tritonclient.http.InferInput("x", [4], "BF16")
        other.set_data_from_numpy(x)
        found = http.infer("bf16", [other]).as_numpy("y").astype(np.float32)
        np.testing.assert_array_equal(found, [0, 0.5, 3, 0])
        wanted = tritonclient.http.InferRequestedOutput("y", binary_data=False)
        with pytest.raises(InferenceServerException, match="BF16 has no form in JSON"):
            http.infer("bf16", [other], outputs=[wanted])


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_names_of_every_script(plain: Server, kind: str) -> None:
    module = tritonclient.http if kind == "http" else tritonclient.grpc
    with module.InferenceServerClient(plain.http if kind == "http" else plain.grpc) as client:
        given = [module.InferInput(name, [2], "FP32") for name in ('a "b"/c', "入力:0")]
        for one, numbers in zip(given, ([1, 2], [5, 7]), strict=True):
            one.set_data_from_numpy(np.float32(numbers))
        np.testing.assert_array_equal(client.infer("names", given).as_numpy("和"), np.float32([4, 5]))


def test_strings_for_a_network_of_numbers_are_refused(plain: Server) -> None:
    texts = np.array([b"a", b"bc", b"", b"d"], np.object_)
    with tritonclient.http.InferenceServerClient(plain.http) as client:
        given = tritonclient.http.InferInput("x", [4], "BYTES")
        for binary in (True, False):
            given.set_data_from_numpy(texts, binary_data=binary)
            with pytest.raises(InferenceServerException, match="input 'x' must be BF16; got BYTES"):
                client.infer("bf16", [given])


def test_types_that_the_protocol_lacks_are_said(plain: Server) -> None:
    status, text = plain.error("GET", "/v2/models/f8")
    assert (status, text) == (501, "'x' of 'f8' is f8e4m3fn, which the protocol has no name for.")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_tls(folder: Path, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*command, *names, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    tls = ["--tls-cert", certificate, "--tls-key", key]
    x = np.arange(4, dtype=np.float32) - 2
    with serving("--model", f"large={folder / 'large.hetnn'}", *tls) as server:
        trusted = ssl.create_default_context(cafile=str(certificate))
        for module, address in ((tritonclient.http, server.http), (tritonclient.grpc, server.grpc)):
            options = (
                {"ssl": True, "ssl_context_factory": lambda: trusted}
                if module is tritonclient.http
                else {"ssl": True, "root_certificates": str(certificate)}
            )
            with module.InferenceServerClient(address, **options) as client:
                given = module.InferInput("x", [4], "FP32")
                given.set_data_from_numpy(x)
                np.testing.assert_array_equal(client.infer("large", [given]).as_numpy("y"), np.maximum(x, 0))
        with socket.create_connection(("127.0.0.1", server.ready["http"])) as stranger, pytest.raises(ssl.SSLError):
            ssl.create_default_context().wrap_socket(stranger, server_hostname="localhost")
