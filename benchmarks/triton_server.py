"""Triton of the wheel nvidia-pytriton, with ONNX Runtime in its Python backend: what `hetnn serve` is measured beside.

The wheel lies in an environment of its own (`benchmarks/triton.txt`). Of it only the server and its backend are used:
pytriton's own way to functions in Python goes through sockets and is several times slower.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

_ASK = """
import importlib.util, json, sys, sysconfig
spec = importlib.util.find_spec("pytriton")
print(json.dumps({
    "package": spec and spec.submodule_search_locations[0],
    "onnxruntime": importlib.util.find_spec("onnxruntime") is not None,
    "version": "%d.%d" % sys.version_info[:2],
    "libraries": sysconfig.get_config_var("LIBDIR"),
    "site": sysconfig.get_path("purelib"),
}))
"""
_MODEL = """
import os
import onnxruntime
import triton_python_backend_utils as backend

class TritonPythonModel:
    def initialize(self, args):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        path = os.path.join(args["model_repository"], args["model_version"], "model.onnx")
        self.session = onnxruntime.InferenceSession(path, options)

    def execute(self, requests):
        out = []
        for request in requests:
            x = backend.get_input_tensor_by_name(request, "input").as_numpy()
            out.append(backend.InferenceResponse([backend.Tensor("y", self.session.run(None, {"input": x})[0])]))
        return out
"""
# The network takes one row a request, for hetnn too; neither side makes batches.
_CONFIG = """
backend: "python"
max_batch_size: 0
input [{ name: "input" data_type: TYPE_FP32 dims: [1, 16] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [1, 4] }]
instance_group [{ count: 1 kind: KIND_CPU }]
"""


class Absent(Exception):
    """Why Triton cannot run here, and what would change that."""


class Triton:
    """Triton in the environment of `python`, for a network from an ONNX file. Absent says why it is not to be had."""

    def __init__(self, python: Path | None, onnx: Path, folder: Path, name: str) -> None:
        if python is None or not python.exists():
            raise Absent(
                "no environment with nvidia-pytriton is given. Make one: python3 -m venv build/triton && "
                "build/triton/bin/pip install -r benchmarks/triton.txt; then --triton build/triton/bin/python."
            )
        found = json.loads(subprocess.run([python, "-c", _ASK], check=True, capture_output=True, text=True).stdout)
        if not found["package"] or not found["onnxruntime"]:
            raise Absent(f"{python} has no nvidia-pytriton and onnxruntime. pip install -r benchmarks/triton.txt.")
        server = Path(found["package"]) / "tritonserver"
        stub = server / "python_backend_stubs" / found["version"] / "triton_python_backend_stub"
        library = Path(found["libraries"]) / f"libpython{found['version']}.so.1.0"
        for needed in (server / "bin" / "tritonserver", stub, library):
            if not needed.exists():
                raise Absent(f"{needed} is not there, which Triton's Python backend needs. Take another Python.")
        self._backends = folder / "backends"
        shutil.copytree(server / "backends" / "python", self._backends / "python")
        shutil.copy(stub, self._backends / "python")
        self._models = folder / "models"
        model = self._models / name / "1"
        model.mkdir(parents=True)
        shutil.copy(onnx, model / "model.onnx")
        (model / "model.py").write_text(_MODEL)
        (model.parent / "config.pbtxt").write_text(_CONFIG)
        self._binary = server / "bin" / "tritonserver"
        # The backend's process is linked to Python's library, and must find that of its own standard library.
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("PYTHON")},
            "LD_LIBRARY_PATH": f"{found['libraries']}:{Path(found['site']) / 'nvidia_pytriton.libs'}",
            "PYTHONPATH": found["site"],
            "PATH": f"{python.parent}:{os.environ['PATH']}",
        }

    def command(self, http: int, remote: int) -> list[str]:
        """Of a server at these ports; its HTTP port answers when the network is there."""
        return [
            str(self._binary),
            f"--model-repository={self._models}",
            f"--backend-directory={self._backends}",
            f"--http-port={http}",
            f"--grpc-port={remote}",
            "--http-address=127.0.0.1",
            "--grpc-address=127.0.0.1",
            "--allow-metrics=false",
            "--log-info=false",
            "--log-warning=false",
        ]
