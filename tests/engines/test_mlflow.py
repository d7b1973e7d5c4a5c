"""An executable as a model of MLflow, by the guide's own lines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hetnn

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "serving.md"
IR = """graph @net {stage = imported} (%x: f32[2,3]) -> (%y) {
  %y = relu(%x) : f32[2,3]
}"""


def test_the_guides_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hetnn.compile(IR).save("net.hetnn")
    (code,) = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    x = np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3)
    names: dict[str, Any] = {"x": x, "__name__": "__main__"}
    exec(compile(code, str(GUIDE), "exec"), names)
    np.testing.assert_array_equal(names["answer"], np.maximum(x, 0))
