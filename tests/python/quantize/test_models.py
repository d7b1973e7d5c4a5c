"""What hetnn.quantize takes: every kind of model that hetnn.compile takes, open sizes and nested inputs too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import hetnn

Array = NDArray[Any]


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def onnx_model() -> onnx.ModelProto:
    """y = relu(conv(x)) with an open batch, height and width, and a dense layer behind the mean."""
    weights = {"w": normal(8, 3, 3, 3), "b": normal(8, seed=1), "v": normal(8, 4, seed=2)}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["m"]),
        helper.make_node("Flatten", ["m"], ["f"]),
        helper.make_node("MatMul", ["f", "v"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "h", "w"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def db(want: Array, got: Array) -> float:
    return float(10 * np.log10((want**2).sum() / ((want - got) ** 2).sum()))


def test_onnx_with_open_sizes(tmp_path: Path) -> None:
    onnx.save(onnx_model(), tmp_path / "net.onnx")
    samples = [normal(1 + k % 2, 3, 8 + k, 12, seed=k) for k in range(6)]
    quantized = hetnn.compile(hetnn.quantize(tmp_path / "net.onnx", samples))
    plain = hetnn.compile(tmp_path / "net.onnx")
    for shape in ((1, 3, 9, 9), (3, 3, 16, 8)):
        x = normal(*shape, seed=20)
        assert db(plain(x), quantized(x)) > 25


def test_a_size_is_fixed(tmp_path: Path) -> None:
    samples = [{"x": normal(2, 3, 8, 8, seed=k)} for k in range(3)]
    quantized = hetnn.quantize(onnx_model(), samples, fix={"n": 2, "h": 8, "w": 8}, target="cpu")
    assert quantized.inputs[0].shape == (2, 3, 8, 8)


class Nested(torch.nn.Module):
    """Takes a dict and a number of ids, and gives a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.one, self.two = torch.nn.Embedding(10, 8), torch.nn.Linear(8, 8), torch.nn.Linear(8, 3)

    def forward(self, pair: dict[str, torch.Tensor], ids: torch.Tensor) -> dict[str, torch.Tensor]:
        hidden = torch.relu(self.one(pair["a"] + self.table(ids)))
        return {"scores": self.two(hidden), "hidden": hidden + pair["b"]}


@pytest.mark.parametrize("scheme", ["int8", "int16x8", "int4", "f16", "bf16"])
def test_a_module_of_nested_inputs(scheme: str) -> None:
    torch.manual_seed(0)
    module = Nested().eval()

    def inputs(seed: int) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        torch.manual_seed(seed)
        return {"a": torch.randn(4, 8), "b": torch.randn(4, 8)}, torch.randint(0, 10, (4,))

    executable = hetnn.quantize(module, [inputs(k) for k in range(8)], scheme, target="cpu", args=inputs(0))
    pair, ids = inputs(30)
    got = executable(pair, ids)
    want = module(pair, ids)
    assert set(got) == {"scores", "hidden"}
    for name, value in want.items():
        assert db(value.detach().numpy(), got[name].numpy()) > 14


def test_state_goes_on() -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dense = torch.nn.Linear(4, 4)
            self.register_buffer("total", torch.zeros(1, 4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total += self.dense(x)
            out: torch.Tensor = self.total * 1.0
            return out

    torch.manual_seed(0)
    program = torch.export.export(Counting().eval(), (torch.randn(1, 4),))
    samples = [normal(1, 4, seed=k) for k in range(6)]
    quantized, plain = hetnn.quantize(program, samples, target="cpu"), hetnn.compile(program)
    for x in samples:
        want, got = plain(x), quantized(x)
    assert db(want, got) > 20


def test_ir_text_and_graphs() -> None:
    program = torch.export.export(torch.nn.Linear(4, 2).eval(), (torch.randn(3, 4),))
    text = hetnn.quantize(program, [normal(3, 4)]).graph.print()
    with pytest.raises(hetnn.InvalidModel, match="the model is quantized already"):
        hetnn.quantize(text, [normal(3, 4)])
    assert hetnn.compile(text)(normal(3, 4)).shape == (3, 2)
