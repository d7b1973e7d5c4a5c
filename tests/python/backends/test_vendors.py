"""Compilers that others ship, as devices: OpenVINO's and ONNX Runtime's, on networks whose eager answer is known."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import hetnn
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
