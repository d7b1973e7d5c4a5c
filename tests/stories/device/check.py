"""Plans see the device: where everything must run on it, everything does."""

import hetnn

TEXT = "graph @g {stage = imported} (%x: f32[4]) -> (%y) {\n  %a = exp(%x) : f32[4]\n  %y = neg(%a) : f32[4]\n}"
LINKS = [{"from": a, "to": b, "bytes_per_us": 1000, "latency_us": 1} for a, b in (("cpu", "idle"), ("idle", "cpu"))]
TARGET = {
    "name": "both",
    "devices": [{"name": "cpu", "kind": "cpu"}, {"name": "idle", "kind": "idle"}],
    "links": LINKS,
}

report = hetnn.plan(TEXT, TARGET, strict="idle").report(format="dict")
assert report["nodes_on"] == {"cpu": 0, "idle": 2}, report["nodes_on"]
