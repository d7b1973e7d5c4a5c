"""Recurrent layers of ONNX and of exported programs against torch's own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import hetnn
from hetnn.importers import import_model

# For each kind: torch's layer, and where ONNX' gates stand among torch's.
LAYERS = {"RNN": (nn.RNN, [0]), "GRU": (nn.GRU, [1, 0, 2]), "LSTM": (nn.LSTM, [0, 3, 1, 2])}


def model_of(kind: str, layer: nn.RNNBase, order: list[int], lengths: bool, steps: int | str) -> onnx.ModelProto:
    """The layer as ONNX says it: gates in another order, both biases in one tensor."""
    hidden, directions = layer.hidden_size, 2 if layer.bidirectional else 1

    def gates(name: str) -> np.ndarray:
        made = []
        for suffix in ("", "_reverse")[:directions]:
            rows = np.split(getattr(layer, f"{name}_l0{suffix}").detach().numpy(), len(order))
            made.append(np.concatenate([rows[k] for k in order]))
        return np.stack(made)

    bias = np.concatenate([gates("bias_ih"), gates("bias_hh")], axis=1)
    weights = {"w": gates("weight_ih"), "r": gates("weight_hh"), "b": bias}
    outputs = ["y", "y_h", "y_c"] if kind == "LSTM" else ["y", "y_h"]
    node = helper.make_node(
        kind,
        ["x", "w", "r", "b", "lengths" if lengths else ""],
        outputs,
        hidden_size=hidden,
        direction="bidirectional" if layer.bidirectional else "forward",
        **({"linear_before_reset": 1} if kind == "GRU" else {}),
    )
    ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, "batch", layer.input_size])]
    if lengths:
        ports.append(helper.make_tensor_value_info("lengths", TensorProto.INT32, ["batch"]))
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph([node], "g", ports, results, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def same(found: Sequence[np.ndarray], wanted: Sequence[torch.Tensor]) -> None:
    """ONNX keeps directions apart: [steps, directions, batch, hidden]."""
    y = wanted[0]
    y = y.reshape(*y.shape[:2], len(wanted[1]), -1).permute(0, 2, 1, 3)
    for mine, theirs in zip(found, [y, *wanted[1:]], strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("steps", [5, "steps"])
@pytest.mark.parametrize("kind", list(LAYERS))
@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_layer_of_known_and_of_any_length(kind: str, bidirectional: bool, steps: int | str) -> None:
    torch.manual_seed(0)
    make, order = LAYERS[kind]
    layer = make(3, 4, bidirectional=bidirectional).eval()
    exe = hetnn.compile(model_of(kind, layer, order, lengths=False, steps=steps))
    assert exe.outputs[0].shape == (steps, 2 if bidirectional else 1, "batch", 4)
    for length, batch in [(5, 2)] if steps == 5 else [(5, 2), (1, 1), (9, 3)]:
        x = torch.randn(length, batch, 3)
        with torch.no_grad():
            y, last = layer(x)
        same(exe(x.numpy()), [y, *(last if kind == "LSTM" else [last])])


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("steps", [5, "steps"])
def test_a_layer_is_one_node(kind: str, steps: int | str) -> None:
    make, order = LAYERS[kind]
    layer = make(3, 4, bidirectional=True).eval()
    nodes = import_model(model_of(kind, layer, order, lengths=False, steps=steps)).graph.nodes()
    assert [node["op"] for node in nodes].count(kind.lower()) == 2


def test_first_states_have_the_batches_of_the_sequence() -> None:
    layer = nn.GRU(3, 4).eval()
    model = model_of("GRU", layer, LAYERS["GRU"][1], lengths=False, steps=5)
    model.graph.node[0].input.append("h")
    model.graph.input.append(helper.make_tensor_value_info("h", TensorProto.FLOAT, [1, "others", 4]))
    exe, x, state = hetnn.compile(model), torch.randn(5, 2, 3), torch.randn(1, 2, 4)
    with torch.no_grad():
        y, last = layer(x, state)
    same(exe(x.numpy(), state.numpy()), [y, last])
    with pytest.raises(
        hetnn.InvalidModel, match=r"must have the shape \[2,4\]; got f32\[3,4\]. Check the sizes that meet"
    ):
        exe(x.numpy(), np.zeros((1, 3, 4), np.float32))


@pytest.mark.parametrize("kind", list(LAYERS))
def test_a_layer_of_more_steps_than_are_unrolled(kind: str) -> None:
    torch.manual_seed(0)
    make, order = LAYERS[kind]
    layer, x = make(3, 4, bidirectional=True).eval(), torch.randn(1100, 2, 3)
    exe = hetnn.compile(model_of(kind, layer, order, lengths=False, steps=1100))
    assert exe.report(format="dict")["nodes_on"]["cpu"] < 100
    with torch.no_grad():
        y, last = layer(x)
    same(exe(x.numpy()), [y, *(last if kind == "LSTM" else [last])])


@pytest.mark.parametrize("steps", [5, "steps"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_sequences_end_at_their_lengths(bidirectional: bool, steps: int | str) -> None:
    torch.manual_seed(0)
    layer = nn.LSTM(3, 4, bidirectional=bidirectional).eval()
    x, lengths = torch.randn(5, 2, 3), torch.tensor([3, 5])
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
    with torch.no_grad():
        y, (state, cell) = layer(packed)
    y, _ = nn.utils.rnn.pad_packed_sequence(y)
    model = model_of("LSTM", layer, LAYERS["LSTM"][1], lengths=True, steps=steps)
    same(hetnn.compile(model)(x.numpy(), lengths.numpy().astype(np.int32)), [y, state, cell])


def test_sequences_without_a_step_have_no_outputs() -> None:
    layer = nn.GRU(3, 4).eval()
    exe = hetnn.compile(model_of("GRU", layer, LAYERS["GRU"][1], lengths=False, steps="steps"))
    y, last = exe(np.zeros((0, 2, 3), np.float32))
    assert y.shape == (0, 1, 2, 4)
    np.testing.assert_array_equal(last, np.zeros((1, 2, 4)))


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_layers_of_any_length_are_one_operator_that_threads_share(kind: str) -> None:
    torch.manual_seed(0)
    make, order = LAYERS[kind]
    layer = make(40, 130, bidirectional=True).eval()
    model = model_of(kind, layer, order, lengths=False, steps="steps")
    runs = []
    for threads in (1, 2):
        exe = hetnn.compile(model, threads=threads)
        assert kind.lower() in {node["op"] for node in import_model(model).graph.nodes()}
        for length, batch in ((0, 2), (1, 1), (30, 3)):
            x = torch.randn(length, batch, 40, generator=torch.Generator().manual_seed(length))
            found = exe(x.numpy())
            runs.append(found)
            if not length:
                continue
            with torch.no_grad():
                y, last = layer(x)
            same(found, [y, *(last if kind == "LSTM" else [last])])
    for one, two in zip(runs[:3], runs[3:], strict=True):
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a, b)


class Recurrent(nn.Module):
    def __init__(self, layer: nn.RNNBase) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor, states: object = None) -> object:
        return self.layer(x, states)


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only"])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize(
    ("options", "given"),
    [
        ({}, False),
        ({"bidirectional": True, "num_layers": 2}, True),
        ({"batch_first": True, "num_layers": 3, "dropout": 0.5}, True),
        ({"bidirectional": True, "batch_first": True, "bias": False}, False),
    ],
)
def test_an_exported_layer_stays_whole(
    kind: type[nn.RNNBase], options: dict[str, object], given: bool, target: str
) -> None:
    torch.manual_seed(4)
    layer = kind(6, 5, **options).eval()
    count = layer.num_layers * (2 if layer.bidirectional else 1)

    def arguments(steps: int) -> tuple[object, ...]:
        x = torch.randn(3, steps, 6) if layer.batch_first else torch.randn(steps, 3, 6)
        h, c = torch.randn(2, count, 3, 5)
        return (x, (h, c) if kind is nn.LSTM else h) if given else (x,)

    for steps in (1, 40):
        program = torch.export.export(Recurrent(layer), arguments(steps), strict=False)
        assert import_model(program).graph.print().count(f" {kind.__name__.lower()}(") == count
        exe = hetnn.compile(program, target)
        passed = arguments(steps)
        with torch.no_grad():
            found, wanted = (torch.utils._pytree.tree_leaves(f(*passed)) for f in (exe, Recurrent(layer)))
        for mine, theirs in zip(found, wanted, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)


def test_layers_with_projected_states_are_taken_apart() -> None:
    torch.manual_seed(5)
    layer = Recurrent(nn.LSTM(6, 5, proj_size=3)).eval()
    x = torch.randn(4, 2, 6)
    with torch.no_grad():
        wanted = torch.utils._pytree.tree_leaves(layer(x))
    for mine, theirs in zip(torch.utils._pytree.tree_leaves(hetnn.compile(layer, args=(x,))(x)), wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        *(
            (kind, {"clip": 0.4, "direction": way})
            for kind in LAYERS
            for way in ("forward", "reverse", "bidirectional")
        ),
        ("LSTM", {"input_forget": 1}),
        ("LSTM", {"input_forget": 1, "clip": 0.4}),
    ],
)
@pytest.mark.parametrize("lengths", [False, True])
def test_bounds_of_gates_and_coupled_gates_are_onnxruntimes(
    kind: str, attributes: dict[str, object], lengths: bool
) -> None:
    import onnxruntime

    numbers = np.random.default_rng(3)
    directions, hidden, gates = (
        2 if attributes.get("direction") == "bidirectional" else 1,
        4,
        {"RNN": 1, "GRU": 3, "LSTM": 4}[kind],
    )
    shapes = {
        "w": (directions, gates * hidden, 3),
        "r": (directions, gates * hidden, hidden),
        "b": (directions, 2 * gates * hidden),
        "p": (directions, 3 * hidden),
    }
    weights = {name: numbers.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    names = ["x", "w", "r", "b", "lengths" if lengths else "", *(["", "", "p"] if kind == "LSTM" else [])]
    outputs = ["y", "y_h", "y_c"][: 3 if kind == "LSTM" else 2]
    node = helper.make_node(kind, names, outputs, hidden_size=hidden, **attributes)
    fed = {"x": numbers.normal(size=(5, 2, 3)).astype(np.float32)}
    ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [5, 2, 3])]
    if lengths:
        fed["lengths"] = np.array([5, 2], np.int32)
        ports.append(helper.make_tensor_value_info("lengths", TensorProto.INT32, [2]))
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items() if name in names]
    graph = helper.make_graph([node], "g", ports, results, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, fed)
    found = hetnn.compile(model, "cpu")(*fed.values())
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
