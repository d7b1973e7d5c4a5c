"""Transposed convolutions: imported, computed by the CPU, and rewritten into plain ones for an NPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import hetnn

TARGETS = ["cpu", "cpu+relu-only"]
LAYERS: dict[str, dict[str, Any]] = {
    "doubled": {"kernel_size": 2, "stride": 2},
    "overlapping": {"kernel_size": 4, "stride": 2, "padding": 1},
    "output padding": {"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1},
    "groups": {"kernel_size": 3, "stride": 2, "groups": 3},
    "one axis": {"kernel_size": (3, 1), "stride": (3, 1), "bias": False},
    "gaps": {"kernel_size": 2, "stride": 3, "output_padding": 2},
    "dilated": {"kernel_size": 3, "stride": 2, "dilation": 2, "output_padding": 1},
    "plain": {"kernel_size": 3, "padding": 1},
    "cropped": {"kernel_size": 1, "stride": 2, "padding": 1},
}


def check(net: nn.Module, x: torch.Tensor, exe: Any) -> None:
    with torch.no_grad():
        want = net(x)
    got = exe(x)
    assert got.shape == want.shape
    assert float((got - want).abs().max()) <= 2e-6 * float(want.abs().max())


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", LAYERS)
def test_it_is_computed_as_torch_does(name: str, target: str) -> None:
    torch.manual_seed(3)
    net = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ConvTranspose2d(6, 9, **LAYERS[name]), nn.ReLU()).eval()
    x = torch.randn(2, 3, 9, 8)
    exe = hetnn.compile(torch.export.export(net, (x,), strict=False), target, rewrite="always", strategy="take-all")
    check(net, x, exe)
    if target != "cpu":
        report = exe.report(format="dict")
        assert report["nodes_on"]["cpu"] == 0
        (row,) = report["rewrites"]
        assert row["rule"] in ("transposed_as_phases", "transposed_as_dilated")


@pytest.mark.parametrize("rule", ["transposed_as_phases", "transposed_as_dilated"])
def test_either_form_is_right_on_the_npu(rule: str) -> None:
    torch.manual_seed(3)
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ConvTranspose2d(8, 4, 4, 2, 1)).eval()
    x = torch.randn(1, 3, 12, 10)
    (other,) = {"transposed_as_phases", "transposed_as_dilated"} - {rule}
    program = torch.export.export(net, (x,), strict=False)
    exe = hetnn.compile(program, "cpu+relu-only", rewrite="always", strategy="take-all", disabled_rules=[other])
    assert [row["rule"] for row in exe.report(format="dict")["rewrites"]] == [rule]
    check(net, x, exe)


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_known_only_at_run_time(target: str) -> None:
    torch.manual_seed(3)
    net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ConvTranspose2d(4, 2, 4, 2, 1)).eval()
    sizes = {0: torch.export.Dim.AUTO, 2: torch.export.Dim.AUTO, 3: torch.export.Dim.AUTO}
    program = torch.export.export(net, (torch.randn(2, 3, 8, 9),), dynamic_shapes=(sizes,), strict=False)
    exe = hetnn.compile(program, target, rewrite="always", strategy="take-all")
    for shape in ((2, 3, 8, 9), (3, 3, 11, 6)):
        check(net, torch.randn(shape), exe)


def test_a_norm_behind_it_goes_into_its_weights() -> None:
    torch.manual_seed(3)
    norm = nn.BatchNorm2d(6)
    nn.init.uniform_(norm.weight, 0.5, 2.0)
    nn.init.uniform_(norm.bias)
    assert norm.running_mean is not None
    nn.init.uniform_(norm.running_mean)
    net = nn.Sequential(nn.ConvTranspose2d(4, 6, 4, 2, 1, groups=2), norm).eval()
    x = torch.randn(1, 4, 5, 6)
    exe = hetnn.compile(torch.export.export(net, (x,), strict=False))
    assert [row["op"] for row in exe.report(format="dict")["graph"]] == ["conv_transpose2d"]
    check(net, x, exe)


def test_a_program_that_torch_has_decomposed_already() -> None:
    torch.manual_seed(3)
    net = nn.Sequential(nn.Conv2d(3, 4, 3, 2), nn.ConvTranspose2d(4, 2, 3, 2, output_padding=1)).eval()
    x = torch.randn(1, 3, 9, 9)
    program = torch.export.export(net, (x,), strict=False).run_decompositions()
    assert "aten.convolution.default" in {str(node.target) for node in program.graph.nodes}
    check(net, x, hetnn.compile(program))


def test_a_stride_beyond_the_device() -> None:
    """Patches of 20 x 20 pixels: the device's stride ends at 16, so the pixels of a patch become channels."""
    torch.manual_seed(3)
    net = nn.Sequential(nn.Conv2d(3, 8, 20, 20), nn.ReLU(), nn.Conv2d(8, 4, 1)).eval()
    x = torch.randn(1, 3, 85, 100)
    exe = hetnn.compile(
        torch.export.export(net, (x,), strict=False), "cpu+relu-only", rewrite="always", strategy="take-all"
    )
    report = exe.report(format="dict")
    assert report["nodes_on"]["cpu"] == 0
    assert [row["rule"] for row in report["rewrites"]] == ["strided_as_channels"]
    check(net, x, exe)
