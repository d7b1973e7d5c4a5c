"""The overloads of core ATen alone, each on two element types: as in torch, or refused with a reason."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


def _tool() -> ModuleType:
    path = Path(__file__).parents[3] / "tools" / "core_aten.py"
    spec = importlib.util.spec_from_file_location("core_aten", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL = _tool()
NAMES = sorted(TOOL.CASES)


@pytest.mark.parametrize("part", range(8))
def test_runs_as_in_torch_or_says_why_not(part: int) -> None:
    """Every overload on f32 and on one of the other types."""
    for k, name in list(enumerate(NAMES))[part::8]:
        for kind in {"float32", TOOL.DTYPES[k % len(TOOL.DTYPES)]}:
            what = TOOL.tried((name, kind))[2]
            assert what in ("runs", "none") or what.startswith(
                ("Unsupported: ", "InvalidModel: ", "torch.export refuses")
            ), f"{name} {kind}: {what}"


def test_every_overload_of_core_aten_is_tried() -> None:
    import torch

    def is_core(overload: object) -> bool:
        return torch.Tag.core in getattr(overload, "tags", ())

    packets = [getattr(torch.ops.aten, name) for name in dir(torch.ops.aten) if not name.startswith("__")]
    overloads = [
        getattr(packet, name) for packet in packets if hasattr(packet, "overloads") for name in packet.overloads()
    ]
    assert {str(one).removeprefix("aten.") for one in overloads if is_core(one)} <= set(NAMES)
