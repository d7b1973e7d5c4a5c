"""ONNX Runtime's execution providers as devices: `cpu+onnxruntime-cpu`, `-cuda`, `-qnn`, `-coreml` and all others that
the installed package has. Needs `hetnn[onnxruntime]`, and `hetnn[onnx]` to compile."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hetnn.backends.backend import Backend, Port, Reason, Run
from hetnn.errors import Unavailable
from hetnn.machine import default_threads

if TYPE_CHECKING:
    from hetnn import _core

_CPU = "CPUExecutionProvider"  # to which every session falls back
_CONTEXT = "EPContext"  # the operator that holds what a provider has compiled


class OnnxRuntime(Backend):
    """An execution provider. The spec: `variant`, its name there in small letters and without ExecutionProvider (cpu
    where it is absent), and `options`, the provider's own, as {"device_id": 1}."""

    measures = True

    def __init__(self, name: str, spec: Mapping[str, Any]) -> None:
        super().__init__(name, spec)
        try:
            import onnxruntime
        except ModuleNotFoundError as error:
            raise Unavailable(f"device '{name}' needs ONNX Runtime. Run pip install 'hetnn[onnxruntime]'.") from error
        self._onnxruntime = onnxruntime
        wanted = str(self.spec.get("variant", "cpu")).lower()
        there = {_short(provider): provider for provider in onnxruntime.get_available_providers()}
        if wanted not in there:
            raise Unavailable(
                f"device '{name}': this ONNX Runtime has no provider '{wanted}'; it has {', '.join(there)}. "
                "Install the package of ONNX Runtime that brings it."
            )
        self._provider = there[wanted]
        if wanted == "cuda" and hasattr(onnxruntime, "preload_dlls"):
            onnxruntime.preload_dlls()  # NVIDIA's libraries, where they are Python packages

    @property
    def version(self) -> str:
        """ONNX Runtime's own."""
        return str(self._onnxruntime.__version__)

    def reads(self, version: str) -> bool:
        """ONNX models are read by every version; what a provider has compiled it checks itself."""
        return True

    def supports(self, node: _core.Graph) -> Iterable[Reason | str]:
        """What ONNX has no form for, and what the provider leaves to another."""
        from hetnn.exporters.onnx import export, refusal

        op = node.nodes()[-1]["op"]
        why = refusal(node)
        if why is not None:
            return [Reason("no_onnx_form", op, "an operator of ONNX", why)]
        try:
            self._session(export(node).SerializeToString(), alone=True)
        except Exception as error:  # ONNX Runtime's errors have no common class
            return [Reason("onnxruntime_refuses", op, f"what {self._provider} takes", _first_line(error))]
        return []

    def compile(self, graph: _core.Graph) -> bytes:
        """The ONNX model, or, where the provider writes one, the model that holds what it has compiled."""
        from hetnn.exporters.onnx import export

        model = export(graph).SerializeToString()
        with tempfile.TemporaryDirectory() as folder:
            written = Path(folder) / "context.onnx"
            entries = {"ep.context_enable": "1", "ep.context_file_path": str(written), "ep.context_embed_mode": "1"}
            self._session(model, entries=entries)
            return written.read_bytes() if written.is_file() and _CONTEXT.encode() in written.read_bytes() else model

    def open(self, code: bytes, inputs: Sequence[Port], outputs: Sequence[Port]) -> Run:
        """A session of the model."""
        try:
            session = self._session(code)
        except Exception as error:  # likewise
            raise Unavailable(f"device '{self.name}': {_first_line(error)}") from error
        names = [port.name for port in session.get_inputs()]

        def run(arrays: list[Any]) -> Sequence[Any]:
            found: Sequence[Any] = session.run(None, dict(zip(names, arrays, strict=True)))
            return found

        return run

    @cached_property
    def _options(self) -> dict[str, str]:
        return {
            key: value if isinstance(value, str) else json.dumps(value)
            for key, value in self.spec.get("options", {}).items()
        }

    def _session(self, model: bytes, alone: bool = False, entries: Mapping[str, str] | None = None) -> Any:
        options = self._onnxruntime.SessionOptions()
        options.intra_op_num_threads = default_threads()
        options.log_severity_level = 4  # refusals are told by errors
        for key, value in (entries or {}).items():
            options.add_session_config_entry(key, value)
        if alone and self._provider != _CPU:
            options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        session = self._onnxruntime.InferenceSession(model, options, providers=[(self._provider, self._options)])
        if self._provider not in session.get_providers():  # it would compute on the CPU, and say so in a log alone
            raise Unavailable(
                f"ONNX Runtime could not start {self._provider} and offers {', '.join(session.get_providers())}; its "
                "libraries or its device are missing. Install what the provider needs."
            )
        return session


def _short(provider: str) -> str:
    return provider.removesuffix("ExecutionProvider").lower()


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
