"""An NVIDIA GPU as a device, by ONNX Runtime's provider: `make test-cuda`, where there is one and `onnxruntime-gpu`."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hetnn
from backends.vendor_networks import BENCH, assert_equals_eager
from exporters.exported import OPERATORS, assert_equal, made
from hetnn import _core
from hetnn.exporters.onnx import refusal

pytestmark = pytest.mark.cuda
GPU = "onnxruntime-cuda"
TARGET = f"cpu+{GPU}"


@pytest.fixture(scope="module")
def told() -> Any:
    """By operator, how many samples were on the GPU and how many it left."""
    counted: dict[str, Counter[str]] = {}
    yield counted
    whole = sorted(name for name, row in counted.items() if not row["left"])
    part = sorted(name for name, row in counted.items() if row["taken"] and row["left"])
    none = sorted(name for name, row in counted.items() if not row["taken"])
    print(f"\non the GPU: {len(whole)} operators whole, {len(part)} in part ({', '.join(part)}), none of {none}")


@pytest.mark.parametrize("name", sorted(OPERATORS.keys() - {"constant"}))
def test_samples_equal_their_meaning(name: str, told: dict[str, Counter[str]]) -> None:
    for sample in OPERATORS[name]["samples"]:
        case = made(name, sample, is_open=False)
        if case is None or refusal(case[0]):
            continue
        graph, feeds = case
        exe = hetnn.compile(graph.print(), TARGET, strategy="take-all")
        told.setdefault(name, Counter())["left" if all_on_cpu(exe) else "taken"] += 1
        try:
            wanted = _core.interpret(graph, feeds)
        except hetnn.InvalidModel:  # where integers are sizes
            feeds = [np.abs(feed) for feed in feeds]
            wanted = _core.interpret(graph, feeds)
        found = exe.run(feeds)
        assert_equal([np.asarray(y) for y in found], wanted, OPERATORS[name]["tolerance"], sample)


def all_on_cpu(exe: hetnn.Executable) -> bool:
    return {row["device"] for row in exe.report("dict")["subgraphs"]} == {"cpu"}


@pytest.mark.parametrize("name", BENCH.MAIN)
def test_networks_of_the_bench_equal_eager(name: str) -> None:
    assert_equals_eager(name, TARGET)


def test_products_are_of_the_models_type_unless_it_is_said_otherwise() -> None:
    """The provider's own default, TF32, keeps 10 bits."""
    torch.manual_seed(0)
    model, x = nn.Linear(4096, 512).eval(), torch.randn(64, 4096)
    expected = model.double()(x.double()).detach()
    model.float()

    def error(options: dict[str, Any]) -> float:
        spec = {"variant": "cuda", "options": options}
        devices = [{"name": "cpu", "kind": "cpu"}, {"name": "gpu", "kind": "onnxruntime", "spec": spec}]
        exe = hetnn.compile(model, {"name": "mine", "devices": devices}, args=(x,), strategy="take-all")
        assert not all_on_cpu(exe)
        return float((exe(x) - expected).abs().max() / expected.abs().max())

    assert error({}) < 3e-6
    assert 3e-5 < error({"use_tf32": 1}) < 3e-3


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_other_element_types(dtype: torch.dtype) -> None:
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8)).eval().to(dtype)
    x = torch.randn(5, 64, dtype=dtype)
    exe = hetnn.compile(model, TARGET, args=(x,), strategy="take-all")
    assert not all_on_cpu(exe)
    bound = {torch.float16: 4e-3, torch.float64: 1e-12}[dtype]
    assert torch.allclose(exe(x), model(x).detach(), atol=bound, rtol=bound)


def test_by_cost_a_large_network_is_on_the_gpu_and_a_small_one_is_not(tmp_path: Path) -> None:
    torch.manual_seed(0)
    layers = [layer for _ in range(8) for layer in (nn.Conv2d(256, 256, 3, padding=1), nn.ReLU())]
    large, x = nn.Sequential(*layers).eval(), torch.randn(8, 256, 56, 56)
    exe = hetnn.compile(large, TARGET, args=(x,))
    assert exe.report("dict")["macs_on"][GPU] > 0.99 * sum(exe.report("dict")["macs_on"].values()), exe.trials
    exe.save(tmp_path / "large.hetnn")
    assert torch.allclose(hetnn.load(tmp_path / "large.hetnn")(x), large(x).detach(), atol=1e-4)
    small = hetnn.compile(nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval(), TARGET, args=(torch.randn(1, 8),))
    assert all_on_cpu(small), small.trials


def test_several_threads_at_once() -> None:
    model, xs = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU()).eval(), [torch.randn(1, 3, 64, 64) for _ in range(8)]
    exe = hetnn.compile(model, TARGET, args=(xs[0],), strategy="take-all")
    expected = [model(x).detach() for x in xs]
    wrong: list[int] = []

    def ask(k: int) -> None:
        for _ in range(50):
            if not torch.allclose(exe(xs[k]), expected[k], atol=1e-5):
                wrong.append(k)

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_gpu_of_another_process(tmp_path: Path) -> None:
    model, x = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 8, 3)).eval(), torch.randn(1, 3, 64, 64)
    exe = hetnn.compile(model, TARGET, args=(x,), strategy="take-all")
    exe.save(tmp_path / "net.hetnn")
    token = tmp_path / "token"
    token.write_text("known to both\n")
    words = ["--device", GPU, "--listen", "127.0.0.1:0", "--token-file", str(token)]
    server = subprocess.Popen(
        [sys.executable, "-m", "hetnn", "device", "serve", *words], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline().partition('"port": ')[2].rstrip("}\n "))
        place = {"at": f"127.0.0.1:{port}", "token_file": token, "timeout_s": 60}
        far = hetnn.load(tmp_path / "net.hetnn", devices={GPU: place})
        assert torch.equal(far(x), exe(x))
        assert {row["at"] for row in far.last_times if row["device"] == GPU} == {f"127.0.0.1:{port}"}
    finally:
        server.terminate()
        server.wait()
