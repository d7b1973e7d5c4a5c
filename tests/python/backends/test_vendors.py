"""Compilers that others ship, as devices: OpenVINO's and ONNX Runtime's, on networks whose eager answer is known."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hetnn
from hetnn import _core
from hetnn.backends.onnxruntime import OnnxRuntime
from hetnn.backends.onnxruntime.recorded import Recorded, can_record
from hetnn.element_types import numpy_type
from hetnn.errors import Unavailable
from models import nets
from mtcnn import networks

TARGETS = ["cpu+openvino-cpu", "cpu+onnxruntime-cpu"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["mobilenet_v2", "resnet18", "minilm"])
def test_networks_equal_eager(name: str, target: str, tmp_path: Path) -> None:
    module, args = nets.NETS[name]()
    exe = hetnn.compile(torch.export.export(module, args, strict=False), target, strategy="take-all")
    report = exe.report("dict")
    assert sum(report["macs_on"].values()) == report["macs_on"][target.removeprefix("cpu+")] > 0, exe.report()
    expected = module(*args).detach()
    assert torch.allclose(exe(*args), expected, atol=1e-4 * float(expected.abs().max()))
    exe.save(tmp_path / "net.hetnn")
    assert torch.equal(hetnn.load(tmp_path / "net.hetnn")(*args), exe(*args))


@pytest.mark.parametrize("target", TARGETS)
def test_the_networks_of_the_demo(target: str) -> None:
    for exported, plain in zip(networks.export_networks().values(), networks.load_networks(), strict=True):
        exe = hetnn.compile(exported, target, strategy="take-all")
        assert "cpu" not in {row["device"] for row in exe.report("dict")["graph"] if row["op"] == "conv2d"}
        (x,) = exported.example_inputs[0]
        for ours, theirs in zip(exe(x), plain(x), strict=True):
            assert torch.allclose(ours, theirs.detach(), atol=1e-4)


@pytest.mark.parametrize("target", TARGETS)
def test_by_cost_the_whole_is_right_wherever_nodes_go(target: str) -> None:
    module, args = nets.NETS["tiny"]()
    exe = hetnn.compile(torch.export.export(module, args, strict=False), target)
    expected = module(*args).detach()
    assert torch.allclose(exe(*args), expected, atol=1e-4 * float(expected.abs().max()))


@pytest.mark.parametrize("target", TARGETS)
def test_open_sizes_run(target: str) -> None:
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU()).eval()
    sizes = {"input": {0: torch.export.Dim("batch", min=1, max=8)}}
    exported = torch.export.export(net, (torch.randn(2, 3, 8, 8),), dynamic_shapes=sizes)
    exe = hetnn.compile(exported, target, strategy="take-all")
    for batch in (1, 3, 8):
        x = torch.randn(batch, 3, 8, 8)
        assert torch.allclose(exe(x), net(x).detach(), atol=1e-5)


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("cpu+openvino-npu", r"OpenVINO finds no NPU on this machine; it finds CPU"),
        ("cpu+onnxruntime-qnn", r"this ONNX Runtime has no provider 'qnn'; it has .*cpu"),
    ],
)
def test_a_device_that_is_not_there_says_what_is(target: str, sentence: str) -> None:
    with pytest.raises(Unavailable, match=sentence):
        hetnn.compile(nn.ReLU(), target, args=(torch.randn(4),))


@pytest.mark.parametrize("package", ["openvino", "onnxruntime"])
def test_a_package_that_is_not_installed_is_named(package: str) -> None:
    text = "graph @g {stage = imported} (%x: f32[4]) -> (%y) {\\n %y = relu(%x) : f32[4]\\n}"
    code = f"import sys; sys.modules['{package}'] = None\nimport hetnn\nhetnn.compile('{text}', 'cpu+{package}-cpu')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"Run pip install 'hetnn[{package}]'" in done.stderr
    assert "Unavailable" in done.stderr


def test_nothing_of_a_vendor_is_imported_before_it_is_named() -> None:
    code = "import sys, hetnn; hetnn.compile; hetnn.load; print({'openvino', 'onnxruntime', 'onnx'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_what_a_vendor_lacks_stays_on_the_cpu() -> None:
    class Sorted(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return torch.relu(torch.linalg.cholesky(x @ x.mT + 4 * torch.eye(4)))

    x = torch.randn(4, 4)
    exe = hetnn.compile(Sorted(), "cpu+openvino-cpu", args=(x,), strategy="take-all")
    assert "cholesky" in {row["op"] for row in exe.report("dict")["graph"] if row["device"] == "cpu"}
    assert "no_onnx_form" in exe.report("json")
    assert torch.allclose(exe(x), Sorted()(x), atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_what_has_no_elements_is_no_work_for_a_vendor(target: str) -> None:
    class Empty(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            cut = nn.functional.pad(torch.softmax(x, 1), (2, -1))[..., :-1]
            return nn.functional.group_norm(cut + 1, 2), x.new_ones(2, 3) * 2

    x = torch.ones(1, 0, 1)
    exe = hetnn.compile(torch.export.export(Empty(), (x,)), target)
    assert [tuple(y.shape) for y in exe(x)] == [tuple(y.shape) for y in Empty()(x)]
    assert "no_elements" in exe.report("json")


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_that_the_export_excludes_are_refused_there_too(target: str) -> None:
    """Of an odd length the halves have other sizes than torch's, which the export has for even ones alone."""

    class Halves(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tensor_split(x, 2, 0)[0] * 2

    even = torch.randn(6, 3)
    exported = torch.export.export(Halves(), (even,), dynamic_shapes=({0: torch.export.Dim.AUTO},))
    exe = hetnn.compile(exported, target, strategy="take-all")
    assert torch.equal(exe(even), Halves()(even))
    with pytest.raises(hetnn.InvalidModel, match="the model is for sizes"):
        exe(torch.randn(7, 3))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["frequencies", "gru", "lstm", "statistics of a batch"])
def test_what_a_vendor_computes_wrongly_is_no_work_for_it(kind: str, target: str) -> None:
    gru, lstm = nn.GRU(3, 16), nn.LSTM(3, 16)
    models: dict[str, tuple[Any, torch.Tensor]] = {
        "frequencies": (lambda x: torch.view_as_real(torch.fft.rfft(x, n=6)), torch.randn(2, 10)),
        "gru": (lambda x: gru(x)[0], torch.randn(5, 7, 3)),
        "lstm": (lambda x: lstm(x)[0], torch.randn(4, 2, 3)),
        "statistics of a batch": (lambda x: nn.functional.instance_norm(x, eps=0.1), torch.randn(1, 4, 6, 5)),
    }
    model, x = models[kind]
    exe = hetnn.compile(model, target, args=(x,), strategy="take-all")
    assert torch.allclose(exe(x), model(x), atol=1e-5)


def test_what_a_provider_has_compiled_is_the_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Providers here write no EPContext files; one that stands in for them writes and reads what ONNX Runtime's do."""
    onnxruntime, onnx = pytest.importorskip("onnxruntime"), pytest.importorskip("onnx")
    own, read = onnxruntime.InferenceSession, []

    def session(model: bytes, options: Any, **more: Any) -> Any:
        (node, *_) = nodes = onnx.load_from_string(model).graph.node
        if node.op_type == "EPContext":
            assert len(nodes) == 1
            read.append(model)
            (model,) = [part.s for part in node.attribute if part.name == "ep_cache_context"]
        made = own(model, options, **more)
        if _entry(options, "ep.context_enable") == "1":
            assert _entry(options, "ep.context_embed_mode") == "1"
            whole = onnx.load_from_string(model)
            ports = [[port.name for port in part] for part in (whole.graph.input, whole.graph.output)]
            kept = onnx.helper.make_node(
                *("EPContext", *ports), domain="com.microsoft", embed_mode=1, main_context=1, ep_cache_context=model
            )
            graph = onnx.helper.make_graph([kept], "context", whole.graph.input, whole.graph.output)
            onnx.save(onnx.helper.make_model(graph), _entry(options, "ep.context_file_path"))
        return made

    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    model, x = nn.Sequential(nn.Linear(6, 5), nn.ReLU()).eval(), torch.randn(3, 6)
    hetnn.compile(model, "cpu+onnxruntime-cpu", args=(x,), strategy="take-all").save(tmp_path / "context.hetnn")
    read.clear()
    exe = hetnn.load(tmp_path / "context.hetnn")
    assert torch.allclose(exe(x), model(x).detach(), atol=1e-6)
    assert len(read) == 1


def _entry(options: Any, key: str) -> str:
    try:
        return str(options.get_session_config_entry(key))
    except RuntimeError:
        return ""  # it was not given


@pytest.mark.parametrize("target", TARGETS)
def test_trials_leave_what_a_model_keeps(target: str) -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(1))
            self.layer = nn.Conv2d(3, 8, 3)

        def forward(self, x: torch.Tensor) -> Any:
            self.count += 1
            return torch.relu(self.layer(x)) + self.count

    model, x = Counting().eval(), torch.randn(1, 3, 32, 32)
    exe = hetnn.compile(torch.export.export(model, (x,)), target)
    assert exe.trials
    assert [value.item() for value in exe.state_dict().values()] == [0]
    assert torch.allclose(exe(x), torch.relu(model.layer(x)).detach() + 1, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_channels_in_another_order_stay_in_it(target: str) -> None:
    """OpenVINO 2026.4 computes such a convolution wrongly where it is given both."""

    class Rolled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Conv2d(4, 5, 1)

        def forward(self, x: torch.Tensor) -> Any:
            return self.layer(torch.relu(torch.roll(x, 1, 1)))

    model, x = Rolled().eval(), torch.randn(2, 4, 6, 7)
    exe = hetnn.compile(torch.export.export(model, (x,)), target, strategy="take-all")
    assert torch.allclose(exe(x), model(x).detach(), atol=1e-5)
    assert exe.report("dict")["macs_on"][target.removeprefix("cpu+")] > 0


def test_onnx_runtime_says_what_nodes_take() -> None:
    """The product of large matrices takes most of it, whatever ONNX Runtime makes of the nodes around."""
    backend = OnnxRuntime("mine", {})
    graph = _core.Graph.parse(
        "graph @g {stage = imported} (%x: f32[256,512], %w: f32[512,512]) -> (%y) {\n"
        "  %a = relu(%x) : f32[256,512]\n  %b = matmul(%a, %w) : f32[256,512]\n  %y = tanh(%b) : f32[256,512]\n}"
    )
    times = backend.times_us(graph)
    assert times is not None
    assert times.keys() == {node["name"] for node in graph.nodes()}
    product = next(node["name"] for node in graph.nodes() if node["op"] == "matmul")
    assert times[product] == max(times.values()) > 0
    assert 0 < backend.launch_us < 10_000
    builder = _core.GraphBuilder("open")
    builder.add_symbol("n", 1, 64, 8)
    builder.output(builder.create("relu", [builder.add_input("x", "f32", ["n"])])[0])
    assert backend.times_us(builder.finish()) is None


def test_products_on_cuda_are_of_the_models_type(monkeypatch: pytest.MonkeyPatch) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    asked: list[Any] = []

    class Session:
        def __init__(self, model: bytes, options: Any, providers: list[Any], enable_fallback: int) -> None:
            assert not enable_fallback  # else a failed run would be one on the CPU
            asked.append(providers)

        def get_providers(self) -> list[str]:
            return ["CUDAExecutionProvider"]

        def get_inputs(self) -> list[Any]:
            return []

        get_outputs = get_inputs

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: None, raising=False)
    monkeypatch.setattr(onnxruntime, "InferenceSession", Session)
    OnnxRuntime("gpu", {"variant": "cuda"}).open(b"", [], [])
    told = {"use_tf32": 1, "device_id": 1, "enable_cuda_graph": 0}
    OnnxRuntime("gpu", {"variant": "cuda", "options": told}).open(b"", [], [])
    assert [options for ((_, options),) in asked] == [
        {"use_tf32": "0"},
        {"use_tf32": "0", "enable_cuda_graph": "1"},  # runs are recorded where they can be
        {"use_tf32": "1", "device_id": "1", "enable_cuda_graph": "0"},
    ]


def test_recorded_runs_are_those_of_the_session() -> None:
    """Over arrays that stay, in memory that is here."""
    onnxruntime = pytest.importorskip("onnxruntime")
    graph = _core.Graph.parse(
        "graph @g {stage = imported} (%x: f32[2,3], %y: i64[3]) -> (%a, %b) {\n"
        "  %a = relu(%x) : f32[2,3]\n  %b = neg(%y) : i64[3]\n}"
    )
    session = onnxruntime.InferenceSession(OnnxRuntime("mine", {}).compile(graph), providers=["CPUExecutionProvider"])
    assert can_record(session)
    recorded = Recorded(session, "cpu", 0)
    for seed in range(3):
        numbers = np.random.default_rng(seed)
        given = [numbers.standard_normal((2, 3)).astype(np.float32), numbers.integers(-9, 9, 3)]
        for array in given:
            array.flags.writeable = False
        assert all(map(np.array_equal, recorded(given), [np.maximum(given[0], 0), -given[1]]))


@pytest.mark.parametrize(
    ("name", "device"), [("bf16", "onnxruntime-cpu"), ("f8e4m3fn", "onnxruntime-cpu"), ("bf16", "openvino-cpu")]
)
def test_types_that_numpy_lacks_cross_the_edges(name: str, device: str) -> None:
    node = f"%y = reshape(%x) {{shape = [15]}} : {name}[15]"
    graph = f"graph @g {{stage = imported}} (%x: {name}[3,5]) -> (%y) {{\n  {node}\n}}"
    exe = hetnn.compile(graph, f"cpu+{device}", strategy="take-all")
    assert [row["device"] for row in exe.report("dict")["subgraphs"]] == [device], exe.report()
    x = np.arange(15).astype(numpy_type(name)).reshape(3, 5)
    (y,) = exe.run([x])
    assert (y.dtype, y.tolist()) == (x.dtype, x.reshape(15).tolist())
