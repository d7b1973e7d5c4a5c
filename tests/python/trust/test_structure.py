"""Outputs come back in the model's own structure, inputs go in nested and by keyword, in copies and files too."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hetnn
from hetnn import _runtime
from hetnn.structure import Record, Signature


@dataclasses.dataclass
class Found:
    boxes: Tensor
    scores: Tensor | None = None
    count: int = 3


class Pair(NamedTuple):
    first: Tensor
    second: Tensor


torch.export.register_dataclass(Found, serialized_type_name="test_structure.Found")

X = torch.tensor([[1.0, -2.0], [3.0, -4.0]])


class Returns(nn.Module):
    def __init__(self, make: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.make = make

    def forward(self, x: Tensor) -> Any:
        return self.make(x)


def compiled(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, **more: Any) -> Any:
    return hetnn.compile(torch.export.export(module.eval(), args, kwargs, strict=False, **more))


RETURNED: dict[str, Callable[[Tensor], Any]] = {
    "a tensor": lambda x: x.relu(),
    "a tuple of one": lambda x: (x.relu(),),
    "a list": lambda x: [x.relu(), x + 1],
    "a dict": lambda x: {"b": x.relu(), "a": x + 1},
    "nested": lambda x: {"t": ([x + 1, {"u": x + 2}], ()), "e": {}},
    "None, numbers and texts": lambda x: (x.relu(), None, 3, 2.5, True),
    "a dataclass": lambda x: Found(x + 1, None, 3),
    "a dataclass in a list": lambda x: [Found(x + 1, x + 2, 3)],
    "a named tuple": lambda x: Pair(x + 1, x + 2),
    "what an operator returns": lambda x: x.max(0),
    "an ordered dict": lambda x: OrderedDict(z=x + 1, a=x + 2),
    "one value twice": lambda x: (y := x + 1, [y, y]),
    "an input": lambda x: {"same": x, "more": x + 1},
}


def assert_alike(got: Any, want: Any) -> None:
    if isinstance(want, Tensor):
        torch.testing.assert_close(got, want)
    elif isinstance(want, OrderedDict):
        assert list(got) == list(want)
        assert_alike(list(got.values()), list(want.values()))
    elif dataclasses.is_dataclass(want):
        assert type(got) is type(want)
        for field in dataclasses.fields(want):
            assert_alike(getattr(got, field.name), getattr(want, field.name))
    else:
        assert type(got) is type(want)
        if isinstance(want, dict):
            assert list(got) == list(want)
            got, want = list(got.values()), list(want.values())
        if isinstance(want, (list, tuple)):
            assert len(got) == len(want)
            for one, other in zip(got, want, strict=True):
                assert_alike(one, other)
        else:
            assert got == want


def saved(exe: hetnn.Executable, folder: Path) -> hetnn.Executable:
    exe.save(folder / "model.hetnn")
    return hetnn.load(folder / "model.hetnn")


@pytest.mark.parametrize("name", RETURNED)
def test_outputs_have_the_structure_of_the_model(name: str, tmp_path: Path) -> None:
    module = Returns(RETURNED[name])
    exe = compiled(module, (X,))
    for one in (exe, saved(exe, tmp_path), pickle.loads(pickle.dumps(exe)), copy.deepcopy(exe)):
        assert_alike(one(X), module(X))


def test_a_model_output_of_transformers_comes_back() -> None:
    outputs = pytest.importorskip("transformers.modeling_outputs")
    exe = compiled(Returns(lambda x: outputs.BaseModelOutput(last_hidden_state=x + 1)), (X,))
    assert type(exe(X)) is outputs.BaseModelOutput
    torch.testing.assert_close(exe(X).last_hidden_state, X + 1)


def test_a_size_is_a_plain_number() -> None:
    batch = torch.export.Dim("batch", min=1, max=64)
    exe = compiled(Returns(lambda x: (x.relu(), x.shape[0], 2 * x.shape[0])), (X,), dynamic_shapes=({0: batch},))
    _, size, twice = exe(torch.zeros(5, 2))
    assert (type(size), size, twice) == (int, 5, 10)


def test_numpy_in_gives_numpy_out_in_the_same_structure() -> None:
    exe = compiled(Returns(lambda x: {"a": x + 1}), (X,))
    got = exe(X.numpy())
    assert isinstance(got["a"], np.ndarray)
    assert list(got) == ["a"]


class Takes(nn.Module):
    def forward(self, x: Tensor, more: dict[str, Any], *, scale: float = 2.0, extra: Tensor | None = None) -> Tensor:
        out = x * scale + more["u"][0] - more["v"]
        return out if extra is None else out + extra


MORE = {"u": (X + 1, X), "v": X * 3}


def test_inputs_go_in_nested_and_by_keyword(tmp_path: Path) -> None:
    exe = compiled(Takes(), (X, MORE), {"scale": 2.0, "extra": X})
    want = Takes()(X, MORE, scale=2.0, extra=X)
    for one in (exe, saved(exe, tmp_path), copy.deepcopy(exe)):
        torch.testing.assert_close(one(X, MORE, scale=2.0, extra=X), want)
        torch.testing.assert_close(one(X, MORE, extra=X), want)
        torch.testing.assert_close(one(extra=X, more=MORE, x=X), want)


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((X, MORE), {}, r"after 2 by position those by name must be scale, extra; got none"),
        ((X, MORE), {"extra": X, "scale": 3.0}, r"input 'scale' was exported as 2.0 and is fixed; got 3.0"),
        ((X, {"u": (X, X)}), {"extra": X}, r"input 'more' must be a dict of u, v; got a dict of u"),
        ((X, {"u": X, "v": X}), {"extra": X}, r"input 'more\['u'\]' must be a tuple of 2; got Tensor"),
        ((X, MORE, X), {"extra": X}, r"takes 2 inputs by position; got 3"),
        ((X, MORE), {"extra": X, "colour": X}, r"must be scale, extra; got extra, colour"),
    ],
)
def test_inputs_of_another_structure_are_named(args: Any, kwargs: Any, message: str) -> None:
    exe = compiled(Takes(), (X, MORE), {"scale": 2.0, "extra": X})
    with pytest.raises(hetnn.InvalidModel, match=message):
        exe(*args, **kwargs)


def test_dataclasses_go_in() -> None:
    class Sum(nn.Module):
        def forward(self, found: Found) -> Tensor:
            return found.boxes + 1

    exe = compiled(Sum(), (Found(X),))
    torch.testing.assert_close(exe(Found(X * 2)), X * 2 + 1)
    torch.testing.assert_close(exe(found={"boxes": X, "scores": None, "count": 3}), X + 1)


def signature_of(outputs: dict[str, Any]) -> Signature:
    return Signature(json.dumps({"args": [], "names": [], "kwargs": [], "outputs": outputs}), [])


def test_a_record_whose_class_is_not_there_has_its_fields() -> None:
    tree = {"record": "nowhere:Thing", "fields": [["boxes", {"value": 0}], ["count", {"fixed": 3}]]}
    made = signature_of(tree).build([], [7])
    assert type(made) is Record
    assert (made.boxes, made["count"]) == (7, 3)
    with pytest.raises(AttributeError, match="no field 'scores'; there are boxes, count"):
        _ = made.scores


@pytest.mark.parametrize("record", ["subprocess:Popen", "os:system", "builtins:eval", "hetnn:compile", "a.b:c"])
def test_a_file_cannot_name_a_class_to_be_called(record: str) -> None:
    tree = {"record": record, "fields": [["args", {"value": 0}]]}
    assert type(signature_of(tree).build([], ["true"])) is Record


def test_a_class_that_needs_other_fields_is_not_called() -> None:
    tree = {"record": f"{__name__}:Pair", "fields": [["first", {"value": 0}]]}
    assert type(signature_of(tree).build([], [7])) is Record


@dataclasses.dataclass
class Choosy:
    count: int

    def __post_init__(self) -> None:
        raise ValueError("not in this process")


def test_a_class_that_refuses_its_values_leaves_the_fields() -> None:
    tree = {"record": f"{__name__}:Choosy", "fields": [["count", {"value": 0}]]}
    made = signature_of(tree).build([], [7])
    assert type(made) is Record
    assert made.count == 7


WHOLE = {"args": [{"value": 0}], "names": ["x"], "kwargs": [], "outputs": {"tuple": [{"value": 0}, {"size": 1}]}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (3, "signature must be an object; found 3"),
        ({"more": 1}, "has the unknown key 'more'"),
        ({"outputs": None}, "outputs must be an object; found null"),
        ({"names": ["x", "y"]}, "names has more names than there are arguments"),
        ({"names": [1]}, r"names\[0\] must be a text"),
        ({"args": [], "names": []}, "takes 0 inputs; the program has 1"),
        ({"args": [{"value": 0}, {"value": 0}]}, r"args\[1\].value takes input 0 a second time"),
        ({"args": [{"size": 0}]}, r"args\[0\].size is no input of rank 0"),
        ({"kwargs": [["x", {"fixed": 1}]]}, r"kwargs\[0\]\[0\] stands twice"),
        ({"kwargs": [["x"]]}, r"kwargs\[0\] must be a key and a tree"),
        ({"outputs": {"value": -1}}, r"outputs.value must be an integer in \[0, 1\]; found -1"),
        ({"outputs": {"value": 2}}, r"outputs.value must be an integer in \[0, 1\]; found 2"),
        ({"outputs": {"size": 0}}, "outputs.size is no output of rank 0"),
        ({"outputs": {"call": 1}}, "unknown key 'call'"),
        ({"outputs": {}}, "outputs must be one of value, size, complex, sequence, shaped, text"),
        (
            {"outputs": {"value": 0, "size": 1}},
            "outputs must be one of value, size, complex, sequence, shaped, text, optional, rows, fixed",
        ),
        ({"outputs": {"sequence": [{"size": 0}, 1]}}, r"outputs.sequence\[0\] has the unknown key 'size'"),
        (
            {"outputs": {"sequence": [{"value": 0}, 1]}},
            r"outputs.sequence\[0\].value has the shape \[batch,2\], which must be of rank 1",
        ),
        (
            {"outputs": {"shaped": [{"value": 0}, 1]}},
            r"outputs.shaped\[0\].value has the shape \[batch,2\], which must be of rank 1",
        ),
        ({"args": [{"shaped": [{"value": 0}, 1]}]}, r"args\[0\].shaped stands among the inputs"),
        ({"outputs": {"optional": [0, {"value": 1}]}}, r"outputs.optional\[0\] "),
        ({"outputs": {"rows": [["a"]]}}, "outputs.rows must be keys, and a port of a matrix"),
        (
            {"outputs": {"rows": [["a"], 0]}},
            r"outputs.rows\[1\] has the shape \[batch,2\], which must have 1 columns",
        ),
        ({"outputs": {"rows": [["a", "a"], 0]}}, r"outputs.rows\[0\]\[1\] stands twice"),
        ({"args": [{"rows": [["a", "b"], 0]}]}, r"args\[0\].rows stands among the inputs"),
        ({"outputs": {"text": [0, 1]}}, r"outputs.text\[0\] "),
        ({"outputs": {"fields": []}}, "outputs must be one of value, size, complex, sequence, shaped, text"),
        (
            {"outputs": {"record": "a:b"}},
            "outputs must be one of value, size, complex, sequence, shaped, text, optional, rows, fixed",
        ),
        ({"outputs": {"record": "a:b", "fields": [[1, {"fixed": 1}]]}}, "must be a text that is not empty; found 1"),
        ({"outputs": {"dict": [[[], {"fixed": 1}]]}}, "must be a number, a text, a truth or null"),
        ({"outputs": {"dict": [["a", {"fixed": 1}], ["a", {"fixed": 2}]]}}, r"dict\[1\]\[0\] stands twice"),
        ({"outputs": {"fixed": {}}}, "outputs.fixed must be a number, a text, a truth or null"),
        ({"outputs": json.loads('{"list": [' * 100 + "]}" * 100)}, "nested too deep; at most 128 levels"),
    ],
)
def test_a_signature_that_is_none_is_refused(changes: Any, message: str) -> None:
    batch = torch.export.Dim("batch", min=1, max=64)
    exe = compiled(Returns(lambda x: (x.relu(), x.shape[0])), (X,), dynamic_shapes=({0: batch},))
    pieces = _runtime.take_apart(exe._engine.image())
    program = json.loads(pieces["program"])
    assert program["signature"] == WHOLE
    program["signature"] = {**WHOLE, **changes} if isinstance(changes, dict) else changes
    with pytest.raises(hetnn.InvalidModel, match=message):
        hetnn.Executable.from_image(_runtime.put_together(**{**pieces, "program": json.dumps(program)}))


def test_an_integer_that_is_an_open_size_is_given_as_a_number(tmp_path: Path) -> None:
    class Padded(nn.Module):
        def forward(self, x: torch.Tensor, n: int) -> torch.Tensor:
            return torch.cat([x, torch.zeros(n, 3)]) * n

    model, x = Padded().eval(), torch.randn(2, 3)
    program = torch.export.export(model, (x, 4), dynamic_shapes={"x": None, "n": torch.export.Dim.DYNAMIC})
    hetnn.compile(program).save(tmp_path / "m.hetnn")
    run = hetnn.load(tmp_path / "m.hetnn")
    for n in (4, 7, 2):
        torch.testing.assert_close(run(x, n), model(x, n))
    with pytest.raises(hetnn.InvalidModel, match="must be an integer; got"):
        run(x, 2.5)
