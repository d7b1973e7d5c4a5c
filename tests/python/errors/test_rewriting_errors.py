"""What rewriting is asked and cannot do: typed errors with what was found, and models at the edge that must compile."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import hetnn
from hetnn.cli import main

TARGET = "cpu+relu-only"


def prelu_text(slopes: str, shape: str = "1,3,4,2") -> str:
    count = slopes.count(",") + 1
    return f"""graph @g {{stage = imported}} (%x: f32[{shape}]) -> (%y) {{
  %a = constant() {{value = f32[{count}] {{{slopes}}}}} : f32[{count}]
  %y = prelu(%x, %a) : f32[{shape}]
}}
"""


@pytest.mark.parametrize("slopes", ["0.5, 0.25", "1, 2, 3, 4"])
def test_a_wrong_number_of_slopes(slopes: str) -> None:
    count = slopes.count(",") + 1
    with pytest.raises(hetnn.InvalidModel) as raised:
        hetnn.compile(prelu_text(slopes), TARGET)
    assert (
        f"prelu 'y': slope must have shape [1] or one value a channel, [3]; got [{count}]. "
        "Check num_parameters. (prelu_c2)" in str(raised.value)
    )


@pytest.fixture(scope="module")
def exported() -> torch.export.ExportedProgram:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.PReLU(4)).eval()
    return torch.export.export(net, (torch.randn(1, 3, 8, 8),), strict=False)


@pytest.mark.parametrize("target", ["cpu", TARGET])
def test_a_disabled_rule_that_is_not_there(exported: torch.export.ExportedProgram, target: str) -> None:
    with pytest.raises(hetnn.InvalidModel) as raised:
        hetnn.compile(exported, target, disabled_rules=["prelu_one_branch", "prelu_two_side"])
    assert str(raised.value).startswith(
        "disabled_rules: legalization has no rule 'prelu_two_side'; the nearest names are prelu_two_sides, "
    )


def test_a_disabled_rule_that_is_not_there_on_the_command_line(
    exported: torch.export.ExportedProgram, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "net.pt2"
    torch.export.save(exported, path)
    assert main(["plan", str(path), "--target", TARGET, "--disable-rule", "abs_from_rely", "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["kind"] == "InvalidModel"
    assert "the nearest names are abs_from_relu, " in error["message"]


@pytest.mark.parametrize("slopes", [[math.nan, 0.5, 1.0], [0.25, math.inf, 1.0], [-math.inf, 0.5, 2.0]])
def test_slopes_that_are_no_numbers_stay_on_the_cpu(slopes: list[float]) -> None:
    exe = hetnn.compile(prelu_text(", ".join(map(str, slopes))), TARGET, rewrite="always", strategy="take-all")
    report = exe.report(format="dict")
    assert report["rewrites"] == []
    assert report["nodes_on"] == {"cpu": 1, "relu-only": 0}
    x = np.linspace(-2, 2, 24, dtype=np.float32).reshape(1, 3, 4, 2)
    with np.errstate(invalid="ignore"):
        want = np.where(x > 0, x, x * np.array(slopes, np.float32).reshape(3, 1, 1))
    np.testing.assert_array_equal(exe(x), want)


@pytest.mark.parametrize("shape", [(0, 3, 4, 2), (2, 3, 0, 2), (2, 3, 4, 0), (0, 3)])
def test_empty_tensors(shape: tuple[int, ...]) -> None:
    text = prelu_text("0.5, 2, -1", ",".join(map(str, shape)))
    exe = hetnn.compile(text, TARGET, rewrite="always", strategy="take-all")
    assert exe(np.zeros(shape, np.float32)).shape == shape
