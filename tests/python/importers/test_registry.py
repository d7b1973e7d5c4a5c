"""The registry of importers: a name stands in an operator's file or has a rule, never both."""

from __future__ import annotations

import importlib
from typing import Any

import onnx
import pytest
import torch
import torch.ao.quantization.fx._decomposed  # registers operators of quantized graphs
from tflite.utils import BUILTIN_OPCODE2NAME
from torch import nn

import hetnn
import hetnn.importers.onnx.graph  # registers the rules
from hetnn.errors import InternalError
from hetnn.importers import import_model
from hetnn.importers.onnx.rules import load_rare
from hetnn.importers.onnx.rules.call import ONNX
from hetnn.importers.onnx.rules.declare import ADDED
from hetnn.importers.registry import Front
from hetnn.importers.tflite.rules import INTEGERS, TFLITE
from hetnn.importers.torch.rules import DTYPES
from hetnn.importers.torch.rules.call import TORCH
from importers import torchao_operators

load_rare()


def test_no_rule_shadows_a_row() -> None:
    assert DTYPES  # the rules are there
    assert len(TORCH.rows) > 50
    assert len(TORCH.rules) > 50
    assert TORCH.shadowed() == []


def test_no_rule_shadows_a_row_of_onnx() -> None:
    assert len(ONNX.rows) > 40
    assert len(ONNX.rules) > 80
    assert ONNX.shadowed() == []
    assert [name for name in ONNX.ruled() if name not in ONNX.rules] == []


def test_every_rule_is_of_an_operator() -> None:
    standard = {(schema.domain, schema.name) for schema in onnx.defs.get_all_schemas_with_history()}
    known = {f"{domain}.{name}".removeprefix(".") for domain, name in standard | ADDED.keys()}
    assert {name.partition("<")[0] for name in ONNX.rules} <= known


def schemas(name: str, since: int) -> list[Any]:
    """What the operator was from `since` on."""
    found = [each for each in onnx.defs.get_all_schemas_with_history() if each.name == name and each.domain == ""]
    latest = max((each.since_version for each in found if each.since_version <= since), default=0)
    return [each for each in found if each.since_version >= latest]


# Of operator sets before 7: which axes of the first operand the second one has, and a hint about memory.
LEGACY = {"axis", "broadcast", "consumed_inputs"}


@pytest.mark.parametrize("name", sorted(ONNX.rows))
def test_a_row_names_every_argument_of_the_onnx_operator(name: str) -> None:
    row = ONNX.rows[name]
    found = schemas(name, row.since)
    assert found
    words = [word.partition(":") for word in row.arguments if "=" not in word]
    attrs = {theirs or ours for ours, _, theirs in words if ours in row.attr_kinds}
    inputs = [ours for ours, _, _ in words if ours not in row.attr_kinds]
    assert all(ours == "-" or ours in row.inputs for ours in inputs)
    assert attrs == set(max(found, key=lambda each: each.since_version).attributes)
    for schema in found:
        assert set(schema.attributes) - attrs <= (LEGACY if row.elementwise else set())
        assert len(schema.inputs) <= len(inputs)


def test_a_rule_for_older_operator_sets_stands_beside_a_row_for_newer_ones() -> None:
    assert "Softmax" in ONNX.rows
    assert "Softmax<13" in ONNX.rules
    front: Front[Any] = Front("onnx")
    front.rule("Softmax<13")(lambda call: call)
    assert front.shadowed() == []
    front.rule("Softmax<14")(lambda call: call)
    assert front.shadowed() == ["Softmax<14"]


def test_every_torch_name_is_an_overload_of_this_torch() -> None:
    importlib.import_module("transformers.integrations.moe")  # declares operators of its own
    torchao_operators.declare()
    for name in (*TORCH.rows, *TORCH.rules):
        if "." not in name:  # control flow
            assert hasattr(torch.ops.higher_order, name), name
            continue
        namespace, packet, overload = name.split(".")
        assert overload in getattr(getattr(torch.ops, namespace), packet).overloads(), name


def test_every_tflite_name_is_an_operator_of_the_schema() -> None:
    assert len(TFLITE.rules) > 100
    assert TFLITE.rules.keys() - set(BUILTIN_OPCODE2NAME.values()) == set()
    assert INTEGERS.keys() - TFLITE.rules.keys() == set()


def test_a_name_has_one_rule() -> None:
    front: Front[Any] = Front("torch")
    front.rule("aten.twice.default")(lambda call: call)
    with pytest.raises(InternalError, match=r"torch 'aten\.twice\.default' has two rules; a name has one"):
        front.rule("aten.twice.default")(lambda call: call)


def test_a_rule_beside_a_row_is_named() -> None:
    front: Front[Any] = Front("torch")
    front.rule("aten.relu.default")(lambda call: call)
    assert front.shadowed() == ["aten.relu.default"]


class Chosen(nn.Module):
    def forward(self, condition: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.where(condition > 0, a, b)


def test_where_promotes_both_of_its_operands() -> None:
    inputs = torch.tensor([1.0, -1.0, 2.0]), torch.tensor([True, True, False]), torch.tensor([0.5, 1.5, 2.5])
    exe = hetnn.compile(torch.export.export(Chosen(), inputs))
    torch.testing.assert_close(exe(*inputs), Chosen()(*inputs))


class Logical(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return torch.logical_and(a, b), torch.logical_or(a, b), torch.logical_xor(a, b)


@pytest.mark.parametrize("dtypes", [(torch.float32, torch.float32), (torch.bool, torch.float32), (torch.int64,) * 2])
def test_logical_operators_take_any_type(dtypes: tuple[torch.dtype, torch.dtype]) -> None:
    inputs = torch.tensor([0, 1, 0, 2]).to(dtypes[0]), torch.tensor([0, 0, 3, 4]).to(dtypes[1])
    for mine, wanted in zip(
        hetnn.compile(torch.export.export(Logical(), inputs))(*inputs), Logical()(*inputs), strict=True
    ):
        torch.testing.assert_close(mine, wanted)


class OfIntegers(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
        leaving = [torch.exp(a), torch.sqrt(b), torch.sigmoid(a), torch.reciprocal(b), torch.erfc(a), a / b, a**0.5]
        return [*leaving, torch.abs(a), torch.floor(a), torch.logical_not(a), torch.clamp(a, min=0.5), a**2]


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_integers_become_reals_where_torch_promotes_them(dtype: torch.dtype) -> None:
    inputs = torch.tensor([0, 1, 7]).to(dtype), torch.tensor([1, 4, 9]).to(dtype)
    for mine, wanted in zip(
        hetnn.compile(torch.export.export(OfIntegers(), inputs))(*inputs), OfIntegers()(*inputs), strict=True
    ):
        torch.testing.assert_close(mine, wanted)


class Unknown(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (
            torch.linalg.eig(torch.linalg.eig(x.outer(x)).eigenvalues.real.outer(x)).eigenvectors.to_sparse().values()
        )


def test_what_reads_an_unknown_operator_is_named_too() -> None:
    program = torch.export.export(Unknown(), (torch.ones(3),))
    with pytest.raises(hetnn.Unsupported, match=r"linalg_eig(.|\n)*to_sparse"):
        import_model(program)
