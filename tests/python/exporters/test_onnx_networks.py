"""Whole networks as ONNX models: ONNX Runtime computes what torch does, and so does what is imported again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

import hetnn
from exporters.exported import again, assert_equal, by_runtime, checked
from functions import Function
from hetnn import _core
from hetnn.exporters.onnx import export, refusal, unsupported
from hetnn.importers import import_model
from importers.test_onnx_quantized import Network, integers_only
from models import nets
from mtcnn import networks


def runs_alike(graph: _core.Graph, feeds: list[Any], wanted: list[Any], tolerance: float) -> onnx.ModelProto:
    model = checked(graph)
    theirs = by_runtime(model, feeds)
    assert not isinstance(theirs, str), theirs
    assert_equal(theirs, wanted, tolerance, "ONNX Runtime")
    assert_equal(again(model, feeds), wanted, tolerance, "imported again")
    return model


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiny", "mobilenet_v2", "resnet18", "minilm"])
def test_networks_equal_torch(name: str) -> None:
    module, inputs = nets.NETS[name]()
    graph = import_model(torch.export.export(module, inputs, strict=False)).graph
    with torch.no_grad():
        wanted = [module(*inputs).numpy()]
    for given in (graph, _core.canonicalize(graph)):
        runs_alike(given, [value.numpy() for value in inputs], wanted, 1e-4)


def test_open_sizes_stay_open() -> None:
    exported = networks.export_networks()["P-Net"]
    graph = _core.canonicalize(import_model(exported).graph)
    model = checked(graph)
    for height, width in ((24, 31), (40, 13)):
        x = np.random.default_rng(0).random((1, 3, height, width), np.float32)
        got = by_runtime(model, [x])
        assert_equal(got, _core.interpret(graph, [x]), 1e-5, f"{height} x {width}")


def test_integers_between_quantized_steps() -> None:
    """Within one step of ONNX Runtime, whose kernels of integers may round sums otherwise."""
    graph = _core.canonicalize(import_model(Network(signed=True, shared_bias=False).model).graph)
    x = np.random.default_rng(3).standard_normal((2, 3, 12, 12)).astype(np.float32)
    model = checked(graph)
    assert {"QuantizeLinear", "DequantizeLinear", "Conv"} <= {node.op_type for node in model.graph.node}
    wanted = _core.interpret(graph, [x])
    assert_equal(again(model, [x]), wanted, 0, "imported again")
    (got,) = by_runtime(model, [x])
    assert float(np.abs(got - wanted[0]).max()) <= 0.05 * 1.001


def test_a_plans_subgraphs_leave_alone(tmp_path: Path) -> None:
    """Each part computes its share: run one after the other they are the network."""
    module, (x,) = nets.tiny()
    exported = torch.export.export(module, (x,), strict=False)
    plan = hetnn.plan(exported, "cpu+relu-only", strategy="topological")
    values = {plan.graph().inputs[0][0]: x.numpy()}
    parts = plan._plan.subgraphs()
    assert len(parts) > 1
    for part in parts:
        graph = part["graph"]
        model = checked(graph)
        got = by_runtime(model, [values[name] for name, _, _ in graph.inputs])
        values.update(zip(graph.output_names, got, strict=True))
        file = tmp_path / f"{part['name']}.onnx"
        hetnn.export(exported, file, target="cpu+relu-only", subgraph=part["name"], strategy="topological")
        assert onnx.load(file) == model
    with torch.no_grad():
        np.testing.assert_allclose(values[plan.graph().output_names[0]], module(x).numpy(), atol=1e-5)


def test_quantized_subgraphs_of_an_npu() -> None:
    network = Network(signed=True, shared_bias=False)
    plan = hetnn.plan(network.model, integers_only())
    x = np.random.default_rng(3).standard_normal((2, 3, 12, 12)).astype(np.float32)
    for part in plan._plan.subgraphs():
        assert refusal(part["graph"]) is None
        checked(part["graph"])
    graph = plan.graph()
    assert_equal(again(checked(graph), [x]), _core.interpret(graph, [x]), 0, "imported again")


def test_rewritten_for_a_device_that_lacks_prelu(tmp_path: Path) -> None:
    """A tool of its own: what it writes has no PRelu and computes what the original does."""
    exported = networks.export_networks()["P-Net"]
    hetnn.export(exported, tmp_path / "as_is.onnx")
    hetnn.export(exported, tmp_path / "rewritten.onnx", target="cpu+relu-only", rewrite="always")
    models = [onnx.load(tmp_path / f"{name}.onnx") for name in ("as_is", "rewritten")]
    assert [any(node.op_type == "PRelu" for node in model.graph.node) for model in models] == [True, False]
    x = np.random.default_rng(0).standard_normal((1, 3, 48, 37)).astype(np.float32)
    wanted, got = (by_runtime(model, [x]) for model in models)
    assert not isinstance(wanted, str)
    assert_equal(got, wanted, 1e-5, "rewritten")
    assert [port.name for port in models[0].graph.input] == [port.name for port in models[1].graph.input]
    assert [port.name for port in models[0].graph.output] == [port.name for port in models[1].graph.output]


def test_states_are_inputs_and_outputs() -> None:
    builder = _core.GraphBuilder("counts")
    x, state = builder.add_input("x", "f32", [2]), builder.add_input("sum", "f32", [2])
    (total,) = builder.create("add", [x, state])
    builder.output(total, "next")
    builder.mutation("sum", "next", np.zeros(2, np.float32))
    model = checked(builder.finish())
    assert [port.name for port in model.graph.input] == ["x", "sum"]
    (prop,) = model.metadata_props
    assert (prop.key, json.loads(prop.value)) == ("hetnn.states", [{"input": "sum", "output": "next"}])


def test_a_file_states_the_oldest_set_that_has_its_operators() -> None:
    exported = torch.export.export(Function(torch.relu), (torch.ones(3),))
    model = export(import_model(exported).graph)
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", 14)]
    assert model.producer_name == "hetnn"


def test_what_has_no_form_is_told_with_node_operator_and_place() -> None:
    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.special.i0(torch.relu(torch.linalg.qr(x).R))

    graph = import_model(torch.export.export(Module(), (torch.ones(3, 3),))).graph
    (first,) = unsupported(graph)  # what lies behind it cannot be asked
    assert (first.op, first.why) == ("qr", "ONNX has no factors of matrices")
    assert "test_onnx_networks.py:" in first.loc
    with pytest.raises(hetnn.Unsupported, match=r"1 of \d nodes have no form in ONNX.*\nqr '\w+': ONNX has no factors"):
        export(graph)


def test_a_single_node_is_asked_by_a_graph_of_it() -> None:
    def graph(op: str, dtype: str, attrs: dict[str, Any]) -> _core.Graph:
        builder = _core.GraphBuilder("node")
        count = 2 if op == "shift_left" else 1
        (y, *_) = builder.create(op, [builder.add_input(f"x{k}", dtype, [2, 3]) for k in range(count)], attrs)
        builder.output(y)
        return builder.finish()

    assert refusal(graph("relu", "f32", {})) is None
    told = refusal(graph("shift_left", "i64", {}))
    assert told == "shift_left 'shift_left': of i64: ONNX's BitShift takes unsigned integers"
