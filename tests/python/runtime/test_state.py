"""Models that update their buffers: the executable keeps what they keep, from call to call."""

from __future__ import annotations

import copy
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hetnn


class Counter(nn.Module):
    """Counts its calls, and returns the input with the count before this one."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Tensor
        self.register_buffer("calls", torch.full((1,), 3.0))

    def forward(self, x: Tensor) -> Tensor:
        before = x + self.calls
        self.calls.add_(1)
        return before


class Cache(nn.Module):
    """One step of an attention over what came before: keys and values move up, the newest comes last."""

    def __init__(self, length: int = 4, width: int = 8) -> None:
        super().__init__()
        self.keys: Tensor
        self.values: Tensor
        self.project = nn.Linear(width, 3 * width)
        self.register_buffer("keys", torch.zeros(1, length, width))
        self.register_buffer("values", torch.zeros(1, length, width))

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.project(x).chunk(3, dim=-1)
        keys = torch.cat([self.keys[:, 1:], key], 1)
        values = torch.cat([self.values[:, 1:], value], 1)
        self.keys.copy_(keys)
        self.values.copy_(values)
        weights = torch.softmax(query @ keys.transpose(1, 2) / 8**0.5, -1)
        return weights @ values


def compiled(module: nn.Module, x: Tensor, target: str = "cpu") -> hetnn.Executable:
    return hetnn.compile(torch.export.export(module.eval(), (x,), strict=False), target)


@pytest.mark.parametrize("target", ["cpu", "cpu+relu-only", "reference"])
def test_a_cache_fills_as_in_torch(target: str) -> None:
    torch.manual_seed(0)
    module = Cache()
    steps = torch.randn(6, 1, 1, 8)
    exe = compiled(module, steps[0], target)
    assert exe.states == ["keys", "values"]
    assert [port.name for port in exe.inputs] == ["x"]
    assert len(exe.outputs) == 1
    for x in steps:
        with torch.no_grad():
            want = module(x)
        assert torch.allclose(exe(x), want, rtol=1e-5, atol=1e-6)


def test_states_begin_again_from_the_models_own(tmp_path: Path) -> None:
    x = torch.zeros(2)
    exe = compiled(Counter(), x)
    assert [float(exe(x)[0]) for _ in range(3)] == [3.0, 4.0, 5.0]
    exe.save(tmp_path / "counter.hetnn")  # with its state as it is
    exe.reset()
    assert float(exe(x)[0]) == 3.0
    for fresh, count in ((hetnn.load(tmp_path / "counter.hetnn"), 6.0), (pickle.loads(pickle.dumps(exe)), 4.0)):
        assert [float(fresh(x)[0]) for _ in range(2)] == [count, count + 1]
        fresh.reset()
        assert float(fresh(x)[0]) == count


class CopiesItself(nn.Module):
    """Writes its state into itself before it goes on with it."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: Tensor
        self.register_buffer("kept", torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        before = self.kept.clone()
        self.kept.copy_(self.kept)
        self.kept.copy_(before)
        self.kept.add_(x)
        return self.kept * 2


def test_a_state_that_is_written_into_itself_goes_on() -> None:
    model, x = CopiesItself(), torch.ones(2)
    exe = hetnn.compile(torch.export.export(copy.deepcopy(model), (x,)))
    for _ in range(3):
        assert torch.equal(exe(x), model(x))


def test_threads_take_turns() -> None:
    x = torch.zeros(1)
    exe = compiled(Counter(), x)
    seen: list[float] = []
    threads = [threading.Thread(target=lambda: seen.extend(float(exe(x)[0]) for _ in range(50))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [3.0 + k for k in range(200)]


def test_sessions_share_nothing() -> None:
    x = torch.zeros(1)
    exe = compiled(Counter(), x)
    one, other = exe.session(), exe.session()
    assert [float(one(x)[0]) for _ in range(3)] == [3.0, 4.0, 5.0]
    assert float(other(x)[0]) == 3.0
    assert float(exe(x)[0]) == 3.0
    assert float(one.run([x])[0][0]) == 6.0
    one.reset()
    assert float(one(x=x)[0]) == 3.0
    assert float(other(x)[0]) == 4.0
    with pytest.raises(hetnn.InvalidModel, match="the session has the states of another executable"):
        exe.run([x], session=compiled(Cache(), torch.zeros(1, 1, 8)).session())


def test_a_call_that_fails_leaves_the_state() -> None:
    exe = compiled(Counter(), torch.zeros(2))
    exe(torch.zeros(2))
    with pytest.raises(hetnn.InvalidModel, match="input 'x' must be"):
        exe(torch.zeros(3))
    assert float(exe(torch.zeros(2))[0]) == 4.0


class WritesItsInput(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x.add_(1)
        return x * 2


def test_what_the_model_writes_into_its_input_is_there_after_a_call(tmp_path: Path) -> None:
    exe = compiled(WritesItsInput(), torch.zeros(2))
    exe.save(tmp_path / "writes.hetnn")
    for run in (exe, hetnn.load(tmp_path / "writes.hetnn")):
        x, array = torch.tensor([1.0, 2.0]), np.array([1.0, 2.0], np.float32)
        assert run(x).tolist() == run(array).tolist() == [4.0, 6.0]
        assert x.tolist() == array.tolist() == [2.0, 3.0]
        array.setflags(write=False)
        with pytest.raises(hetnn.InvalidModel, match=r"writes into an input, which cannot be written.*Pass a copy"):
            run(array)


def test_state_of_another_type_is_refused() -> None:
    graph = """graph @g {stage = imported, mutates "s" by "y" from f32[3] {1, 2, 3}} (%s: f32[2]) -> (%y) {
      %y = relu(%s) : f32[2]
    }"""
    with pytest.raises(hetnn.InvalidModel, match=r"the state 's' must keep one type of fixed shape; it is f32\[2\]"):
        hetnn.compile(graph)


SUM = """
graph @sum {stage = imported} (%x: f32[2], %total: f32[2]) -> (%y, %next) {
  %next = add(%total, %x) : f32[2]
  %y = relu(%next) : f32[2]
}
"""


def test_an_option_makes_an_input_a_state() -> None:
    exe = hetnn.compile(SUM, states={"total": "next"})
    assert [port.name for port in exe.inputs] == ["x"]
    for k in range(1, 4):
        np.testing.assert_array_equal(exe(np.array([1, -1], np.float32)), [k, 0])
    with pytest.raises(hetnn.InvalidModel, match="the state 'sum' must be an input of the graph, and 'next' one of"):
        hetnn.compile(SUM, states={"sum": "next"})
    exported = torch.export.export(nn.ReLU(), (torch.zeros(2),))
    with pytest.raises(hetnn.Unsupported, match="a torch module keeps its buffers"):
        hetnn.compile(exported, states={"input": "relu"})


def test_states_are_read_and_set_and_kept_by_what_copies_them(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module, steps = Cache(), torch.randn(4, 1, 1, 8)
    exe = compiled(module, steps[0])
    with torch.no_grad():
        for x in steps[:2]:
            module(x), exe(x)
    held = exe.state_dict()
    assert set(held) == {"keys", "values"}
    for name, value in held.items():
        assert np.allclose(value, getattr(module, name).numpy(), rtol=1e-5, atol=1e-6)
    held["keys"][:] = 7  # a copy
    assert not (exe.state_dict()["keys"] == 7).any()

    exe.save(tmp_path / "m.hetnn")
    copies = [hetnn.load(tmp_path / "m.hetnn"), pickle.loads(pickle.dumps(exe)), copy.deepcopy(exe)]
    with torch.no_grad():
        want = module(steps[2])
    for one in [exe, *copies]:
        assert torch.allclose(one(steps[2]), want, rtol=1e-5, atol=1e-6)
    copies[0].reset()  # to what the file holds
    assert torch.allclose(copies[0](steps[2]), want, rtol=1e-5, atol=1e-6)

    session = exe.session()
    session.load_state_dict({name: getattr(module, name) for name in exe.states})
    with torch.no_grad():
        assert torch.allclose(session(steps[3]), module(steps[3]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"key": np.zeros((1, 4, 8), np.float32)}, "no state 'key'; the model keeps keys, values"),
        ({"values": np.zeros((1, 5, 8), np.float32)}, r"'values' is float32\[1, 4, 8\]; got float32\[1, 5, 8\]"),
        ({"values": np.zeros((1, 4, 8))}, r"'values' is float32\[1, 4, 8\]; got float64"),
    ],
)
def test_states_that_do_not_fit_change_none(given: dict[str, Any], why: str) -> None:
    exe = compiled(Cache(), torch.randn(1, 1, 8))
    with pytest.raises(hetnn.InvalidModel, match=why):
        exe.load_state_dict({"keys": np.ones((1, 4, 8), np.float32), **given})
    assert not exe.state_dict()["keys"].any()
