"""Runs Vela on one network in a process of its own, which imports nothing of hetnn: a fault there ends it alone.

`python vela_process.py FOLDER` reads request.json and the network from the folder; writes vela.npz, as Vela's own
`--output-format raw` does, or vela.tflite, and report.json, or error.txt where Vela refuses.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

_TENSORS = ("input", "output", "variable")


def _rows(table: Any) -> list[dict[str, str]]:
    return [dict(zip(table.header, row, strict=True)) for row in table.data]


def _report(model: Any) -> dict[str, Any]:
    """Cycles, of each operator with the place of the file's operator that it came from, and bytes of each memory."""
    tables, perf = model.opt_database.tables, model.perf_report
    places = {row["id"]: int(row.get("ext_key", -1)) for row in _rows(tables["source"])} if "source" in tables else {}
    operators = [
        {
            "place": places.get(row["source_id"], -1),
            "operator": row["operator"],
            "name": row["name"],
            "cycles": int(row["op_cycles"]),
            "npu_cycles": int(row["npu_cycles"]),
            "macs": int(row["mac_count"]),
        }
        for row in (_rows(tables["perf"]) if "perf" in tables else [])
    ]
    return {
        "cycles": int(perf.totalCycles),
        "npu_cycles": int(perf.npuCycles),
        "cpu_operators": int(perf.cpuOps),
        "npu_operators": int(perf.npuOps),
        "macs": int(perf.macCount),
        "peak_bytes": {name: int(memory.peakUsage) for name, memory in perf.memories.items()},
        "operators": operators,
    }


def _raw(model: Any) -> dict[str, Any]:
    """The arrays of Vela's raw output, by its own names; without quantization, which the graph around has."""
    arrays: dict[str, Any] = {
        "cmd_data": np.frombuffer(model.command_stream, np.uint8),
        "weight_data": np.frombuffer(model.read_only.data, np.uint8),
        "weight_region": model.read_only.region,
        "scratch_shape": [model.scratch.size],
        "scratch_region": model.scratch.region,
        "scratch_size": model.scratch.size,
        "scratch_fast_shape": [model.scratch_fast.size],
        "scratch_fast_region": model.scratch_fast.region,
        "scratch_fast_size": model.scratch_fast.size,
    }
    for kind in _TENSORS:
        tensors = getattr(model, f"{kind}s")
        for field, key in (("shape", "shape"), ("element_size", "elem_size"), ("region", "region")):
            arrays[f"{kind}_{key}"] = np.array([getattr(t, field) for t in tensors], np.int64)
        arrays[f"{kind}_offset"] = np.array([t.address for t in tensors], np.int64)
    return arrays


def main(folder: Path) -> None:
    """Compiles what the folder asks for."""
    request = json.loads((folder / "request.json").read_text())
    try:
        from ethosu import regor

        system = Path(request["config"] or Path(regor.__file__).parent / "config_files" / "Arm" / "vela.ini")
        system_text = request["system"] + system.read_text()
        network = (folder / "network").read_bytes()
        model = regor.compile(
            request["family"], network, request["format"], system_text, options=request["options"], verbose=False
        )
    except Exception as error:  # of several classes of Vela's
        (folder / "error.txt").write_text(f"{error}" or type(error).__name__)
        return
    if request["output"] == "Raw":
        np.savez(folder / "vela.npz", **_raw(model))
    else:
        (folder / "vela.tflite").write_bytes(model.model)
    (folder / "report.json").write_text(json.dumps(_report(model)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
