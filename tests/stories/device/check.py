"""The device is planned for, compiled for, saved, loaded and run, by code of its own kind and its own clock."""

import tempfile
from pathlib import Path

import numpy as np

import hetnn

TEXT = "graph @g {stage = imported} (%x: f32[4]) -> (%y) {\n  %a = exp(%x) : f32[4]\n  %y = neg(%a) : f32[4]\n}"
LINKS = [{"from": a, "to": b, "bytes_per_us": 1000, "latency_us": 1} for a, b in (("cpu", "idle"), ("idle", "cpu"))]
TARGET = {
    "name": "both",
    "devices": [{"name": "cpu", "kind": "cpu"}, {"name": "idle", "kind": "idle"}],
    "links": LINKS,
}

exe = hetnn.compile(TEXT, TARGET, strict="idle")
assert exe.report(format="dict")["nodes_on"] == {"cpu": 0, "idle": 2}
with tempfile.TemporaryDirectory() as folder:
    exe.save(Path(folder) / "both.hetnn")
    loaded = hetnn.load(Path(folder) / "both.hetnn")
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_allclose(loaded(x), -np.exp(x), rtol=1e-6)
    assert [row["cycles"] for row in loaded.last_times if row["device"] == "idle"] == [7], loaded.last_times
