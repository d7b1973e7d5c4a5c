"""Networks from torch, canonicalized and legalized for a device with little, still compute what torch computes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

import hetnn
from functions import Function
from hetnn import _core
from hetnn.importers import import_model

# What an accelerator without PReLU, multiplication, subtraction, clamp or lookup tables has, and rough prices.
LITTLE = {
    "conv2d": 3.0,
    "linear": 3.0,
    "add": 1.0,
    "relu": 0.5,
    "max_pool2d": 1.0,
    "avg_pool2d": 1.0,
    "concat": 0.5,
    "slice": 0.5,
    "reshape": 0.01,
    "identity": 0.1,
}


def between(activation: nn.Module, channels: int = 6) -> nn.Module:
    """The activation between two convolutions."""
    return nn.Sequential(nn.Conv2d(3, channels, 3), activation, nn.Conv2d(channels, 4, 1))


def prelu(*slopes: float) -> nn.PReLU:
    module = nn.PReLU(len(slopes))
    module.weight.data = torch.tensor(slopes)
    return module


class Residual(nn.Module):
    """Batch norm before, inside and after a residual block with PReLU, flattened into a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), prelu(*[0.4] * 4, *[1.3] * 4)
        )
        self.main = nn.Sequential(
            nn.BatchNorm2d(8),
            nn.Conv2d(8, 8, 3, padding=1, bias=False),
            nn.BatchNorm2d(8),
            prelu(*[-0.2 * k for k in range(8)]),
        )
        self.head = nn.Sequential(
            nn.BatchNorm2d(8), nn.Dropout(), nn.Flatten(), nn.Linear(8 * 36, 5), nn.BatchNorm1d(5)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        return self.head(x + self.main(x))  # type: ignore[no-any-return]


def randomize(module: nn.Module) -> nn.Module:
    """Statistics of batch norms that are not the identity's."""
    for part in module.modules():
        if isinstance(part, (nn.BatchNorm1d, nn.BatchNorm2d)):
            for tensor, low, high in (
                (part.weight.data, 0.5, 2.0),
                (part.bias.data, -1.0, 1.0),
                (part.running_mean, -1.0, 1.0),
                (part.running_var, 0.3, 3.0),
            ):
                assert tensor is not None
                tensor.uniform_(low, high)
    return module.eval()


def operators(graph: _core.Graph) -> list[str]:
    return [node["op"] for node in graph.nodes()]


def legal_and_right(
    module: nn.Module, x: torch.Tensor, inputs_within: dict[str, float] | None = None
) -> tuple[_core.Graph, list[dict[str, object]]]:
    """The legal graph and its rewrites, after checking that every node is the device's and the results are torch's."""
    torch.manual_seed(3)
    randomize(module)
    graph = import_model(torch.export.export(module, (x,), strict=False)).graph
    legal, rewrites = _core.legalize(_core.canonicalize(graph), LITTLE, [], inputs_within or {})
    assert set(operators(legal)) <= set(LITTLE)
    with torch.no_grad():
        want = module(x).numpy()
    (got,) = _core.interpret(legal, [x.numpy()])
    assert np.abs(got - want).max() <= 2e-6 * np.abs(want).max()
    return legal, rewrites


ACTIVATIONS: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "prelu, mixed slopes": (lambda: prelu(-2.0, 0.0, 0.25, 1.0, 1.5, 1e-6), "prelu_two_sides"),
    "prelu, slopes below one": (lambda: prelu(-1.0, 0.0, 0.1, 0.25, 0.5, 1.0), "prelu_two_sides"),
    "prelu, slopes above one": (lambda: prelu(1.5, 2.0, 3.0, 4.0, 5.0, 6.0), "prelu_depthwise_branches"),
    "prelu, one slope": (lambda: nn.PReLU(1), "prelu_scaled_and_rest"),
    "leaky relu": (lambda: nn.LeakyReLU(0.2), "leaky_relu_as_prelu"),
    "rrelu": (nn.RReLU, "leaky_relu_as_prelu"),
    "relu6": (nn.ReLU6, "clamp_from_relu"),
    "hardtanh": (lambda: nn.Hardtanh(-0.4, 0.2), "clamp_from_relu"),
    "hardsigmoid": (nn.Hardsigmoid, "hardsigmoid_from_clamp"),
    "clamp from below": (lambda: Function(lambda x: x.clamp(min=-0.1)), "clamp_below_from_relu"),
    "clamp from above": (lambda: Function(lambda x: x.clamp(max=0.1)), "clamp_above_from_relu"),
    "abs": (lambda: Function(torch.abs), "abs_from_relu"),
    "maximum with a multiple": (lambda: Function(lambda x: torch.maximum(0.2 * x, x)), "leaky_relu_as_prelu"),
    "where": (lambda: Function(lambda x: torch.where(x > 0, x, x * 0.2)), "leaky_relu_as_prelu"),
    "where below": (lambda: Function(lambda x: torch.where(x < 0, x * 0.2, x)), "leaky_relu_as_prelu"),
    "threshold at its value": (lambda: nn.Threshold(0.2, 0.2), ""),
    "maximum of two": (lambda: Function(lambda x: torch.maximum(x, x.relu() - 0.5)), "maximum_from_relu"),
    "minimum of two": (lambda: Function(lambda x: torch.minimum(x, x.relu() - 0.5)), "minimum_from_relu"),
    "difference": (lambda: Function(lambda x: x.relu() - x), "subtract_as_add"),
    "shrink": (lambda: Function(lambda x: (x - 0.1).relu() - (-x - 0.1).relu()), "subtract_as_add"),
    "scale": (lambda: Function(lambda x: x.relu() * 0.3 + 0.1), ""),
    "global mean": (lambda: Function(lambda x: x.mean((2, 3), keepdim=True)), "mean_as_average"),
    "adaptive pool": (lambda: nn.AdaptiveAvgPool2d(2), "adaptive_as_average"),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_become_convolutions_and_relu(name: str) -> None:
    make, rule = ACTIVATIONS[name]
    known = {"input": 1.0} if name.endswith("of two") else None  # of what may be large they would lose what is small
    _, rewrites = legal_and_right(between(make()), torch.randn(2, 3, 8, 10).clamp(-1, 1), known)
    if rule:
        assert rule in [rewrite["rule"] for rewrite in rewrites]
    for rewrite in rewrites:
        assert str(rewrite["why"]).startswith(f"the device has no such {rewrite['op']}; {rewrite['rule']} costs ")


def test_threshold_at_zero_is_relu() -> None:
    legal, rewrites = legal_and_right(between(nn.Threshold(0.0, 0.0)), torch.randn(1, 3, 8, 8))
    assert operators(legal) == ["conv2d", "relu", "conv2d"]
    assert rewrites == []


def test_concatenated_relu() -> None:
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3), Function(lambda x: torch.cat([x.relu(), (-x).relu()], 1)), nn.Conv2d(8, 4, 1)
    )
    legal_and_right(net, torch.randn(1, 3, 8, 8))


def test_clamp_costs_no_pass_of_its_own_between_convolutions() -> None:
    legal, _ = legal_and_right(between(nn.Hardtanh(0.2, 0.4)), torch.randn(1, 3, 8, 8))
    assert operators(legal) == ["conv2d", "relu", "conv2d", "relu", "conv2d"]


def test_batch_norms_fold_or_become_depthwise() -> None:
    legal, rewrites = legal_and_right(Residual(), torch.randn(2, 3, 6, 6))
    assert {rewrite["op"] for rewrite in rewrites} == {"prelu", "mul"}
    assert operators(legal)[-2:] == ["reshape", "linear"]


@pytest.mark.parametrize("shape", [(4, 6), (2, 6, 5), (2, 6, 3, 4), (1, 6, 2, 3, 2)])
def test_prelu_of_every_rank(shape: tuple[int, ...]) -> None:
    legal_and_right(prelu(-2.0, 0.0, 0.25, 1.0, 1.5, 1e-6), torch.randn(shape))


def test_prelu_of_dynamic_shapes() -> None:
    net = between(prelu(-2.0, 0.0, 0.25, 1.0, 1.5, 1e-6)).eval()
    sizes = {0: torch.export.Dim.AUTO, 2: torch.export.Dim.AUTO, 3: torch.export.Dim.AUTO}
    program = torch.export.export(net, (torch.randn(2, 3, 8, 9),), dynamic_shapes=(sizes,), strict=False)
    legal, rewrites = _core.legalize(_core.canonicalize(import_model(program).graph), LITTLE)
    assert len(rewrites) == 1
    x = torch.randn(3, 3, 11, 7)
    with torch.no_grad():
        want = net(x).numpy()
    (got,) = _core.interpret(legal, [x.numpy()])
    assert np.abs(got - want).max() <= 2e-6 * np.abs(want).max()


def test_disabled_rules_are_not_used() -> None:
    net = between(prelu(*[0.25] * 6)).eval()
    graph = _core.canonicalize(import_model(torch.export.export(net, (torch.randn(1, 3, 8, 8),), strict=False)).graph)
    depthwise = "depthwise_branches", "one_branch", "two_sides", "two_relus", "scaled_and_rest"
    disabled = [f"prelu_{form}" for form in depthwise]
    _, rewrites = _core.legalize(graph, LITTLE, disabled, {"input": 1.0})
    assert [rewrite["rule"] for rewrite in rewrites] == ["prelu_dense_branches"]


def test_every_rule_is_documented() -> None:
    rules = _core.rules()
    assert len({rule["name"] for rule in rules}) == len(rules) > 60
    assert {rule["pass"] for rule in rules} == {"canonicalize", "legalize", "fuse"}
    for rule in rules:
        assert all(rule[key] for key in ("equation", "pattern", "exactness")), rule["name"]


def test_a_form_that_is_the_input_itself_is_copied_out() -> None:
    """prelu(x, 1) = x, beside an output that is a constant, and twice."""
    text = """graph @g {stage = imported} (%x: f32[2,3,5,7]) -> (%a as "a", %y as "y", %z as "z") {
  %a = constant() {value = f32[3] {1, 1, 1}} : f32[3]
  %y = prelu(%x, %a) : f32[2,3,5,7]
  %z = prelu(%x, %a) : f32[2,3,5,7]
}
"""
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 7)).astype(np.float32)
    for rewrite in ("auto", "always", "off"):
        exe = hetnn.compile(text, "cpu+relu-only", rewrite=rewrite)
        a, y, z = exe(x)
        assert a.tolist() == [1, 1, 1]
        np.testing.assert_array_equal(y, x)
        np.testing.assert_array_equal(z, x)


@pytest.mark.parametrize("target", ["cpu+relu-only", "cpu+relu-only+systolic-16x16"])
@pytest.mark.parametrize("slopes", [(0.25,), (-0.5,), (1.5,), (0.5, 0.0, -2.0, 1.5, 1.0, 0.9)], ids=str)
def test_infinities_stay_where_they_are(target: str, slopes: tuple[float, ...]) -> None:
    x = torch.randn(1, 6, 4, 4)
    x[0, 0, 0, 0], x[0, 3, 1, 1], x[0, 4, 2, 2], x[0, 5, 3, 3] = torch.inf, -torch.inf, -torch.inf, torch.nan
    module = prelu(*slopes)
    got = hetnn.compile(module, target, args=(x,), strategy="take-all")(x)
    with torch.no_grad():
        torch.testing.assert_close(got, module(x), equal_nan=True)


@pytest.mark.parametrize("low", [-1e9, -torch.inf])
def test_a_maximum_beside_a_mask_is_right(low: float) -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return torch.maximum(mask, self.conv(x))

    x, mask = torch.randn(1, 3, 6, 6), torch.full((1, 4, 4, 4), low)
    module = Masked().eval()
    got = hetnn.compile(module, "cpu+relu-only", args=(x, mask), strategy="take-all")(x, mask)
    with torch.no_grad():
        torch.testing.assert_close(got, module(x, mask))


@pytest.mark.parametrize("options", [{"strict": "relu-only"}, {"pin": {"1": "relu-only"}}], ids=str)
def test_demands_speak_of_the_rewritten_graph(options: dict[str, object]) -> None:
    module, x = between(nn.PReLU(6)).eval(), torch.randn(1, 3, 8, 8)
    report = hetnn.compile(module, "cpu+relu-only", args=(x,), **options).report(format="dict")
    assert report["nodes_on"]["cpu"] == 0
    assert report["rewriting"]["predicted_us_after"] > 0
