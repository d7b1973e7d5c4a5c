"""Figures and claims of data sheets: what is counted, and what nothing here makes true."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hetnn
from hetnn.cli import main
from hetnn.target import resolve_target

RELU = "graph @g {stage = imported} (%x: f32[1,4]) -> (%y) { %y = relu(%x) : f32[1,4] }"


def target_with(**changes: Any) -> dict[str, Any]:
    """cpu and an NPU as relu-only, its sheet changed."""
    devices = resolve_target("cpu+relu-only")["devices"]
    return {"name": "changed", "devices": [devices[0], {**devices[1], "spec": {**devices[1]["spec"], **changes}}]}


@pytest.mark.parametrize(("figures", "per_mac"), [({"f32": 4.0, "i8": 0.25}, 0.25), ({"f32": 4.0}, 0.0)])
def test_energy_of_products_is_that_of_their_type(
    figures: dict[str, float], per_mac: float, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    energy = {"mac": figures, "sram_byte": 0, "dram_byte": 0, "vector_op": 0, "source": "a test"}
    graph = """graph @q {stage = imported} (%x: i8{0.05}[1,8,16,16]) -> (%y) {
  %w = constant() {value = i8[8,8,1,1] {ONES}, q_scale = [0.01]} : i8{0.01}[8,8,1,1]
  %y = conv2d(%x, %w) {q_scale = [0.3]} : i8{0.3}[1,8,16,16]
}""".replace("ONES", ", ".join(["1"] * 64))
    path = tmp_path / "net.hetnn"
    hetnn.compile(graph, target_with(energy_pj=energy), strategy="take-all").save(path)
    capsys.readouterr()
    assert main(["simulate", str(path), "--json"]) == 0
    layers = [row for part in json.loads(capsys.readouterr().out)["subgraphs"] for row in part["layers"]]
    assert sum(row["energy_nj"] for row in layers) == pytest.approx(8 * 8 * 16 * 16 * per_mac / 1000)


@pytest.mark.parametrize(("figure", "of_i8"), [(0.5, 0.5), ({"f32": 4.0, "i8": 0.25}, 0.25), ({"f32": 4.0}, 0.0)])
def test_energy_of_other_work_is_that_of_its_type(
    figure: Any, of_i8: float, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    energy = {"vector_op": figure, "source": "a test"}
    graph = """graph @q {stage = imported} (%x: i8{0.05}[1,8,16,16]) -> (%y) {
  %y = max_pool2d(%x) {kernel = [2, 2], stride = [2, 2], q_scale = [0.05]} : i8{0.05}[1,8,8,8]
}"""
    path = tmp_path / "net.hetnn"
    hetnn.compile(graph, target_with(energy_pj=energy), strategy="take-all").save(path)
    capsys.readouterr()
    assert main(["simulate", str(path), "--json"]) == 0
    layers = [row for part in json.loads(capsys.readouterr().out)["subgraphs"] for row in part["layers"]]
    assert sum(row["energy_nj"] for row in layers) == pytest.approx(8 * 8 * 8 * 4 * of_i8 / 1000)


@pytest.mark.parametrize("key", ["mac", "vector_op"])
def test_energy_of_no_type_is_refused(key: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=rf"energy_pj\.{key} has the unknown element type 'i80'"):
        hetnn.check(RELU, target_with(energy_pj={key: {"i80": 1}, "source": "a test"}))


def test_a_machine_that_adds_no_map_computes_sums_by_themselves(tmp_path: Any) -> None:
    graph = """graph @q {stage = imported} (%x: i8{0.05}[1,8,16,16]) -> (%y) {
  %w = constant() {value = i8[8,8,1,1] {ONES}, q_scale = [0.01]} : i8{0.01}[8,8,1,1]
  %c = conv2d(%x, %w) {q_scale = [0.3]} : i8{0.3}[1,8,16,16]
  %y = add(%c, %x) {q_scale = [0.3]} : i8{0.3}[1,8,16,16]
}""".replace("ONES", ", ".join(["1"] * 64))
    mac = resolve_target("cpu+relu-only")["devices"][1]["spec"]["mac"]
    layers, values = {}, []
    x = np.arange(8 * 256, dtype=np.int64).reshape(1, 8, 16, 16).astype(np.int8)
    for adds in (True, False):
        built = hetnn.compile(graph, target_with(mac={**mac, "adds_map": adds}), strategy="take-all")
        layers[adds] = len(built.report("dict")["fusions"])
        values.append(built.run([x])[0])
    assert layers == {True: 1, False: 0}
    np.testing.assert_array_equal(values[0], values[1])


class Crossed(nn.Module):
    """A convolution that the NPU runs, and gelu, which it does not, of its sum with the input."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(16, 16, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.gelu(self.conv(x) + x)


def placed(target: Any, **options: Any) -> tuple[dict[str, str], hetnn.Executable]:
    """Where each node of Crossed runs; it computes what torch does wherever that is."""
    torch.manual_seed(2)
    module, x = Crossed().eval(), torch.randn(1, 16, 8, 8)
    executable = hetnn.compile(module, target, args=(x,), strategy="take-all", fusion=False, **options)
    np.testing.assert_allclose(executable(x), module(x).detach(), rtol=1e-4, atol=1e-5)
    return {row["node"]: row["device"] for row in executable.report(format="dict")["graph"]}, executable


@pytest.mark.parametrize(
    ("rows", "on_npu"),
    [
        ([], {"conv2d", "add"}),
        ([{"ops": ["add"]}], {"conv2d"}),
        # The convolution's only reader is on the NPU, where its result may stay.
        ([{"ops": ["conv2d"]}], {"conv2d", "add"}),
        ([{"dtypes": ["f32"]}], set()),
        ([{"dtypes": ["i8"]}], {"conv2d", "add"}),
        ([{"layouts": ["nhwc"]}], set()),
        ([{"ops": ["add"], "layouts": ["plain"]}], {"conv2d", "add"}),
    ],
)
def test_results_that_may_not_leave_keep_their_nodes_beside_the_readers(
    rows: list[dict[str, Any]], on_npu: set[str]
) -> None:
    target = target_with(non_exportable=rows)
    where, executable = placed(target)
    assert {node for node, device in where.items() if device == "relu-only"} == on_npu
    if "add" not in on_npu:
        (row,) = [r for r in executable.report(format="dict")["not_on_preferred"] if r["node"] == "add"]
        (reason,) = [r for r in row["reasons"] if r["label"] == "exportable"]
        assert reason["text"] == "its result may not leave 'relu-only'"


def test_results_may_be_kept_on_a_device_by_the_options() -> None:
    where, _ = placed("cpu+relu-only", non_exportable={"add": "relu-only"})
    assert where["add"] == "cpu"
    assert where["conv2d"] == "relu-only"
    where, _ = placed("cpu+relu-only", non_exportable=[{"op": "conv2d", "device": "relu-only"}])
    assert where["conv2d"] == "relu-only"
    where, _ = placed("cpu+relu-only", non_exportable=[{"regex": ".*", "device": "relu-only"}])
    assert set(where.values()) == {"cpu"}
    # A node of that name does not stand for an operator of that name.
    rules = [{"name": "conv2d", "device": "relu-only"}, {"module": "conv2d", "device": "relu-only"}]
    with pytest.raises(hetnn.InvalidModel, match="non_exportable 'conv2d' matches no node"):
        placed("cpu+relu-only", non_exportable=rules)
    with pytest.raises(hetnn.InvalidModel, match="non_exportable 'nothing' matches no node"):
        placed("cpu+relu-only", non_exportable={"nothing": "relu-only"})
    with pytest.raises(hetnn.InvalidModel, match="hard"):
        placed("cpu+relu-only", non_exportable=[{"name": "add", "device": "relu-only", "hard": True}])


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"ops": ["ad"]}], r"non_exportable\[0\].ops: ad is no operator of hetnn; the nearest names are add"),
        ([{"layouts": ["nchw"]}], "plain"),
        ([{"op": ["add"]}], "ops"),
    ],
)
def test_sheets_that_keep_what_does_not_exist_are_refused(rows: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(hetnn.InvalidModel, match=said):
        placed(target_with(non_exportable=rows))


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-mul"])
def test_identity_between_scales_rescales(target: str) -> None:
    graph = """graph @q {stage = imported} (%x: i8{0.1:3}[1,4,8,8]) -> (%y) {
  %y = identity(%x) {q_scale = [0.05], q_zero = -7} : i8{0.05:-7}[1,4,8,8]
}"""
    x = np.arange(-128, 128, dtype=np.int8).reshape(1, 4, 8, 8)
    want = np.clip(np.rint((x.astype(float) - 3) * 2) - 7, -128, 127)
    np.testing.assert_array_equal(hetnn.compile(graph, target, strategy="take-all")(x), want)


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only"])
def test_constants_of_equal_bytes_and_other_scales_stay_apart(target: str) -> None:
    graph = """graph @q {stage = imported} (%x: i8{0.05}[1,2,4,4]) -> (%y, %z) {
  %w = constant() {value = i8[2,2,1,1] {1, 2, 3, 4}, q_scale = [0.01]} : i8{0.01}[2,2,1,1]
  %v = constant() {value = i8[2,2,1,1] {1, 2, 3, 4}, q_scale = [0.02]} : i8{0.02}[2,2,1,1]
  %y = conv2d(%x, %w) {q_scale = [0.01]} : i8{0.01}[1,2,4,4]
  %z = conv2d(%x, %v) {q_scale = [0.01]} : i8{0.01}[1,2,4,4]
}"""
    x = np.arange(-16, 16, dtype=np.int8).reshape(1, 2, 4, 4)
    sums = np.einsum("oc,nchw->nohw", np.array([[1, 2], [3, 4]]), x.astype(int))
    y, z = hetnn.compile(graph, target, strategy="take-all")(x)
    np.testing.assert_array_less(np.abs(y - np.clip(sums * 0.05, -128, 127)), 0.51)
    np.testing.assert_array_less(np.abs(z - np.clip(sums * 0.1, -128, 127)), 0.51)
