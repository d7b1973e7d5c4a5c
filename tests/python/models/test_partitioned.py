"""Networks shared between devices by every strategy give what they give on the CPU alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hetnn
from hetnn.targets import load_spec
from models import nets
from mtcnn import networks as mtcnn

# Largest difference, relative to the largest value of the result. NPUs sum in another order than the CPU.
TOLERANCE = 1e-4
STRATEGIES: list[tuple[str, dict[str, Any]]] = [
    ("topological", {}),
    ("topological", {"order": "index"}),
    ("depth", {}),
    ("merge", {"settle": "merge"}),
    ("merge", {"settle": "trim"}),
    ("merge", {"policy": "largest"}),
    ("merge", {"policy": "threshold", "threshold": 3}),
    ("merge", {"policy": "largest+threshold", "threshold": 3}),
    ("merge", {"policy": "balance", "measure": "time"}),
    ("cost", {}),
    ("cost", {"local_search": False}),
    ("take-all", {}),
    ("cpu-only", {}),
]
EVERY = 4
ACTIVATIONS = (nn.ReLU, nn.ReLU6, nn.PReLU)


def _crop(module: nn.Module, batch: int, side: int) -> nets.Case:
    torch.manual_seed(3)
    for layer in module.modules():
        if isinstance(layer, nn.PReLU):
            nn.init.uniform_(layer.weight, -0.5, 1.4)
    return module.eval(), (torch.randn(batch, 3, side, side),)


def _encoder() -> nets.Case:
    torch.manual_seed(3)
    sizes = {"vocab_size": 300, "hidden_size": 48, "num_hidden_layers": 4, "num_attention_heads": 4}
    module = nets.Encoder(None, intermediate_size=96, hidden_act="relu", **sizes).eval()
    return module, (torch.randint(0, 300, (1, 9)), torch.ones(1, 9, dtype=torch.int64))


NETS: dict[str, Callable[[], nets.Case]] = {
    "pnet": lambda: _crop(mtcnn.ProposalNet(), 1, 30),
    "rnet": lambda: _crop(mtcnn.RefinementNet(), 2, 24),
    "onet": lambda: _crop(mtcnn.OutputNet(), 1, 48),
    "resnet18": lambda: nets.vision("resnet18", 32),
    "mobilenet_v2": lambda: nets.vision("mobilenet_v2", 32, width_mult=0.25),
    "minilm": _encoder,
}


def _break_every_fourth_block(module: nn.Module) -> int:
    """Gives every fourth block, counted by its activation, one that no NPU here has; the number of them."""
    seen = broken = 0
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if not isinstance(child, ACTIVATIONS):
                continue
            seen += 1
            if seen % EVERY == 0:
                setattr(parent, name, nn.GELU())
                broken += 1
    return broken


@cache
def _case(name: str, broken: bool) -> tuple[torch.export.ExportedProgram, tuple[Tensor, ...], list[Tensor]]:
    """The exported network, its inputs, and what it gives unpartitioned, on the CPU."""
    module, inputs = NETS[name]()
    if broken:
        # P-Net has three activations; what its fourth block, the head, has for the CPU is the softmax.
        assert _break_every_fourth_block(module) >= (0 if name == "pnet" else 1)
    exported = torch.export.export(module, inputs, strict=False)
    return exported, inputs, hetnn.compile(exported, "cpu").run(inputs)


def _two_npus() -> dict[str, Any]:
    """The CPU and two NPUs that share little: one for products, one for sums and pooling; both have ReLU and moves."""
    devices: list[dict[str, Any]] = [{"name": "cpu", "kind": "cpu"}]
    for name, lacks in (("products", {"add", "max_pool2d"}), ("sums", {"conv2d", "linear", "matmul"})):
        spec = json.loads(json.dumps(load_spec("relu-mul")))
        spec["name"] = name
        spec["ops"] = {op: limits for op, limits in spec["ops"].items() if op not in lacks}
        devices.append({"name": name, "kind": "npu", "spec": spec})
    return {"name": "cpu+products+sums", "devices": devices}


def _difference(got: list[Any], want: list[Tensor]) -> float:
    # A maximum of tensors, not Python's: that one may lose a NaN.
    return float(torch.stack([(a - b).abs().max() / b.abs().max() for a, b in zip(got, want, strict=True)]).max())


def _equal_by_every_strategy(name: str, target: Any, broken: bool = False) -> dict[str, dict[str, Any]]:
    """Plans by each strategy and runs every plan that differs from those run before; the report by strategy."""
    exported, inputs, want = _case(name, broken)
    reports: dict[str, dict[str, Any]] = {}
    ran: set[str] = set()
    for strategy, options in STRATEGIES:
        label = " ".join([strategy, *(f"{key}={value}" for key, value in options.items())])
        settings: dict[str, Any] = {"strategy": strategy, "options": options, "rewrite": "always"}
        report = reports[label] = hetnn.plan(exported, target, **settings).report(format="dict")
        placement = json.dumps([report["subgraphs"], report["graph"]])
        if placement in ran:
            continue
        ran.add(placement)
        executable = hetnn.compile(exported, target, **settings)
        assert executable.report(format="dict")["subgraphs"] == report["subgraphs"], label
        assert _difference(executable.run(inputs), want) < TOLERANCE, label
    assert len(ran) > 1, "strategies differ"
    return reports


def _marked(mark: pytest.MarkDecorator, *names: str) -> list[Any]:
    return [pytest.param(name, marks=mark) if name in names else name for name in NETS]


ALL = _marked(pytest.mark.slow, "onet", "resnet18", "mobilenet_v2", "minilm")


@pytest.mark.parametrize("name", ALL)
def test_cpu_and_one_npu(name: str) -> None:
    reports = _equal_by_every_strategy(name, "cpu+relu-only")
    assert reports["take-all"]["nodes_on"]["relu-only"] > 0
    assert reports["cpu-only"]["nodes_on"]["relu-only"] == 0


@pytest.mark.parametrize("name", ALL)
def test_cpu_and_two_npus_that_need_each_other(name: str) -> None:
    reports = _equal_by_every_strategy(name, _two_npus())
    # Networks without sums or pooling between their products would not use the second.
    for label in ("take-all", "topological", "depth", "merge settle=merge"):
        assert all(reports[label]["nodes_on"][device] > 0 for device in ("products", "sums")), label
    between = {(row["from"], row["to"]) for row in reports["take-all"]["crossings"]}
    assert ("products", "sums") in between


@pytest.mark.parametrize("name", ALL)
def test_every_fourth_block_has_an_unsupported_operator(name: str) -> None:
    reports = _equal_by_every_strategy(name, "cpu+relu-only", broken=True)
    found = reports["take-all"]
    rows = [row for row in found["not_on_preferred"] if row["op"] == "gelu"]
    assert bool(rows) == (name != "pnet")
    assert all(row["loc"] and row["reasons"] for row in found["not_on_preferred"])
    npu = [part for part in found["subgraphs"] if part["device"] == "relu-only"]
    assert len(npu) >= found["lower_bound_subgraphs"]["relu-only"] >= (1 if name == "pnet" else 2)


@pytest.mark.parametrize("name", _marked(pytest.mark.long, "resnet18", "mobilenet_v2"))
def test_cpu_and_two_presets(name: str) -> None:
    """relu-mul can do all that relu-only can: equal costs leave the choice open, and the plan is the same each time."""
    _equal_by_every_strategy(name, "cpu+relu-only+relu-mul")
