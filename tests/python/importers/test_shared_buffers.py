"""Buffers of a torch module that lie in the same memory."""

from __future__ import annotations

import pytest
import torch

import hetnn


class Shared(torch.nn.Module):
    def __init__(self, other: str, writes: bool) -> None:
        super().__init__()
        memory = torch.arange(4.0)
        views = {"itself": memory, "a part": memory[:2], "a view": memory.view(2, 2), "a copy": memory.clone()}
        self.writes = writes
        self.a: torch.Tensor
        self.b: torch.Tensor
        self.register_buffer("a", memory)
        self.register_buffer("b", views[other])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.writes:
            self.a.add_(x)
        return self.b * x


@pytest.mark.parametrize("other", ["itself", "a part", "a view"])
def test_one_that_is_written_is_refused_with_the_other(other: str) -> None:
    x = torch.ones(1)
    text = r"the buffers '[ab]' and '[ab]' lie in the same memory.*at test_shared_buffers\.py:\d+.*`\.clone\(\)`"
    with pytest.raises(hetnn.InvalidModel, match=text):
        hetnn.compile(Shared(other, writes=True), args=(x,))
    net = Shared(other, writes=False)
    torch.testing.assert_close(hetnn.compile(net, args=(x,))(x), net(x))


def test_one_that_has_memory_of_its_own_is_taken() -> None:
    x, net = torch.ones(1), Shared("a copy", writes=True)
    exe = hetnn.compile(net, args=(x,))
    for _ in range(2):
        torch.testing.assert_close(exe(x), net(x))
